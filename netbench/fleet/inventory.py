"""Hosts and groups of another file: a list of names, or what `ansible-inventory --list` prints.

Source: Ansible, "How to build your inventory" and ansible-inventory(1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic_core import PydanticCustomError

from netbench.base.errors import CampaignError, Problem
from netbench.base.hostlist import NAMES_MAX, expand
from netbench.base.names import HOST as NAME
from netbench.campaign.messages import nearest
from netbench.campaign.schema import kinds
from netbench.campaign.schema.hosts import ADDRESS, BOOT, DESTINATION, GROUP, INTERFACE, USER
from netbench.campaign.tree import Plain, describe
from netbench.campaign.yaml_tree import BYTES_MAX, decode, refuse_unprintable

OWN = "netbench_"
_COMMAND = "`ansible-inventory -i FILE --list > hosts.json`"
_HOST = kinds.matching("a host's name or address", r"[^\s\0@/\[\]{}-][^\s\0@/\[\]{}]*")
_LOGIN = kinds.matching("the name of an account such as bench", r"[^\s\0@:/{}-][^\s\0@:/{}]*")
_CONNECTIONS = ("ssh", "local", "smart", "paramiko", "paramiko_ssh")
VARIABLES: Mapping[str, Callable[[Plain], Any]] = {
    "ansible_host": _HOST.parse,
    "ansible_user": _LOGIN.parse,
    "ansible_port": kinds.number("a port", 1, 65535).parse,
    "ansible_connection": kinds.choice("a connection", _CONNECTIONS).parse,
    f"{OWN}address": ADDRESS.parse,
    f"{OWN}interface": INTERFACE.parse,
    f"{OWN}ssh": DESTINATION.parse,
    f"{OWN}run_as": USER.parse,
    f"{OWN}boot": BOOT.parse,
}
"""Which variables of a host mean something to netbench, and what they may hold."""


TOO_MANY = f"expected at most {NAMES_MAX} hosts, got more"


@dataclass(frozen=True)
class Inventory:
    """`hosts` has the keys of each host of the campaign file, as words; `groups` the hosts of each
    that has some; `problems` is what is wrong with the file.
    """

    hosts: dict[str, dict[str, str]] = field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_inventory(path: Path) -> Inventory:
    """The inventory of a file, with all that is wrong with it."""
    inventory = Inventory()

    def wrong(message: str, where: str = "", hint: str = "", line: int = 0) -> None:
        inventory.problems.append(Problem(line, where, message, hint, str(path)))

    try:
        with path.open("rb") as file:
            text = decode(file.read(BYTES_MAX + 1), str(path))
        refuse_unprintable(text, str(path))
        if text.lstrip().startswith("{"):
            _read_groups(json.loads(text), inventory, wrong)
        else:
            _read_names(text, inventory, wrong)
        if not inventory.hosts and not inventory.problems:
            wrong("expected hosts, got none")
    except OSError as error:
        wrong(f"cannot be read: {error.strerror}; give the path of an inventory")
    except CampaignError as error:
        inventory.problems.extend(one._replace(source=str(path)) for one in error.problems)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):  # not Ansible's JSON
        wrong(f"expected what Ansible prints: {_COMMAND}")
    return inventory


def _read_names(text: str, found: Inventory, wrong: Callable[..., None]) -> None:
    """Names, or notations of several, one a line."""
    for number, line in enumerate(text.splitlines(), 1):
        word = line.partition("#")[0].strip()
        try:
            names = expand(word) if word else []
        except ValueError:
            names = [word]
        if bad := next((name for name in names if not re.fullmatch(NAME, name)), None):
            what = f"expected a host's name, or several as in node[01-64,70], got {describe(bad)}"
            wrong(
                f"{what}; of an inventory of Ansible's write what it finds: {_COMMAND}", line=number
            )
            return
        found.hosts.update((name, {"ssh": name}) for name in names)
        if len(found.hosts) > NAMES_MAX:
            wrong(TOO_MANY, line=number)
            return


def _read_groups(written: Any, found: Inventory, wrong: Callable[..., None]) -> None:
    """The groups with their hosts, and all variables of each host, those of its groups among them.
    Errors: ValueError, TypeError, AttributeError, KeyError for what Ansible does not print.
    """
    variables = written["_meta"]["hostvars"]

    @cache  # a group may be a child of many
    def within(group: str) -> dict[str, None]:
        entry = written.get(group, {})
        inside = dict.fromkeys(entry.get("hosts", ()))
        for child in entry.get("children", ()):
            inside |= within(child)
        return inside

    if len(within("all")) > NAMES_MAX:
        wrong(TOO_MANY)
        return
    for name in within("all"):
        if not re.fullmatch(NAME, name):
            wrong(f"expected a host's name, got {describe(name)}; an address is its ansible_host")
            continue
        known = {}
        for variable, value in variables.get(name, {}).items():
            if variable in VARIABLES and value is not None:
                try:
                    VARIABLES[variable](str(value))
                    known[variable] = str(value)
                except PydanticCustomError as error:
                    context = error.context or {}
                    wrong(context["text"], f"{name}.{variable}", context["nearest"])
            elif variable.startswith(OWN) and variable not in VARIABLES:
                own = [word for word in VARIABLES if word.startswith(OWN)]
                wrong("netbench has no such variable", f"{name}.{variable}", nearest(variable, own))
        found.hosts[name] = _keys(name, known)
    for group in written:
        if group not in ("_meta", "all", "ungrouped") and (members := within(group)):
            if not re.fullmatch(GROUP, group):
                wrong(f"expected a group's name of letters and digits, got {describe(group)}")
            found.groups[group] = tuple(members)


def _keys(name: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The keys of a host of the campaign file; without `ssh` it is this machine."""
    keys = {word.removeprefix(OWN): variables[word] for word in variables if word.startswith(OWN)}
    if "ssh" in keys or variables.get("ansible_connection") == "local":
        return keys
    host = variables.get("ansible_host", name)
    at = f"{variables['ansible_user']}@" if "ansible_user" in variables else ""
    if port := variables.get("ansible_port"):
        return keys | {"ssh": f"ssh://{at}{f'[{host}]' if ':' in host else host}:{port}"}
    return keys | {"ssh": f"{at}{host}"}
