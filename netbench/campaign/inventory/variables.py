"""Which variables of an inventory mean something to netbench, and what they may hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from netbench.campaign.schema import kinds
from netbench.campaign.schema.hosts import ADDRESS, BOOT, DESTINATION, INTERFACE, USER
from netbench.campaign.tree import Plain

OWN = "netbench_"
_HOST = kinds.matching("a host's name or address", r"[^\s\0@/\[\]{}-][^\s\0@/\[\]{}]*")
_LOGIN = kinds.matching("the name of an account such as bench", r"[^\s\0@:/{}-][^\s\0@:/{}]*")
_CONNECTIONS = ("ssh", "local", "smart", "paramiko", "paramiko_ssh")

KNOWN: Mapping[str, Callable[[Plain], Any]] = {
    "ansible_host": _HOST.parse,
    "ansible_ssh_host": _HOST.parse,
    "ansible_user": _LOGIN.parse,
    "ansible_ssh_user": _LOGIN.parse,
    "ansible_port": kinds.number("a port", 1, 65535).parse,
    "ansible_ssh_port": kinds.number("a port", 1, 65535).parse,
    "ansible_connection": kinds.choice("a connection", _CONNECTIONS).parse,
    "ansible_group_priority": kinds.number("a priority").parse,
    "address": ADDRESS.parse,
    "interface": INTERFACE.parse,
    f"{OWN}address": ADDRESS.parse,
    f"{OWN}interface": INTERFACE.parse,
    f"{OWN}ssh": DESTINATION.parse,
    f"{OWN}run_as": USER.parse,
    f"{OWN}boot": BOOT.parse,
}


def host_keys(name: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The keys of a host of the campaign file that its variables stand for; without `ssh` it is
    this machine.
    """

    def first(*names: str) -> str:
        return next((variables[one] for one in names if variables.get(one)), "")

    keys = {
        "ssh": first(f"{OWN}ssh") or _destination(name, first),
        "address": first(f"{OWN}address", "address"),
        "interface": first(f"{OWN}interface", "interface"),
        "run_as": first(f"{OWN}run_as"),
        "boot": first(f"{OWN}boot"),
    }
    return {key: word for key, word in keys.items() if word}


def _destination(name: str, first: Callable[..., str]) -> str:
    if first("ansible_connection") == "local":
        return ""
    host = first("ansible_host", "ansible_ssh_host") or name
    user = first("ansible_user", "ansible_ssh_user")
    port = first("ansible_port", "ansible_ssh_port")
    at = f"{user}@" if user else ""
    if not port:
        return f"{at}{host}"
    return f"ssh://{at}{f'[{host}]' if ':' in host else host}:{port}"
