"""Keys of hosts: how they are reached and booted."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any

from pydantic import BeforeValidator

from netbench.base.names import HOST as NAME
from netbench.campaign.messages import expected, nearest, wrong
from netbench.campaign.schema import kinds
from netbench.campaign.schema.keys import Keys, optional, required
from netbench.campaign.schema.kinds import Kind
from netbench.campaign.tree import Plain
from netbench.model import BootSpec, Lab

NAMES = r"[A-Za-z0-9_\[][A-Za-z0-9._, :\[\]-]*"  # of hosts, in any notation
GROUP = f"(?:_|(?={NAME}))[A-Za-z0-9._-]*"
LABS = ("netns", "qemu")
BOOT_METHODS = ("kexec", "grub")
HOST_NAME = kinds.matching(
    "a host's name of at most 63 letters, digits, dots, dashes and underscores", NAME
)
_LAB_NAME = kinds.matching("the name of a lab", NAME)
DESTINATION = kinds.matching("an SSH destination such as root@snd.example", r"[^\s\0-][^\s\0]*")
USER = kinds.matching("the name of an account such as bench", r"[A-Za-z_][A-Za-z0-9_.@-]{0,62}\$?")
INTERFACE = kinds.matching("an interface's name such as eth1", r"[^\s/]{1,15}")


def _address(value: Plain) -> str:
    try:
        address = ipaddress.ip_address(value if isinstance(value, str) else "")
    except ValueError:
        raise expected("an IP address such as 192.168.2.1 or fd00::1", value) from None
    if what := _not_of_one_host(address):
        raise wrong(f"expected the address of one host, got {value}, which is {what}")
    return str(value)


def _not_of_one_host(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """What an address is that data can neither be sent to nor received at; "" for others."""
    plain = getattr(address, "ipv4_mapped", None) or address
    if plain.is_unspecified:
        return "every address of a host: its data port would be open to all networks"
    if plain.is_multicast:
        return "a multicast address"
    if plain == ipaddress.IPv4Address("255.255.255.255"):
        return "the broadcast address"
    if isinstance(plain, ipaddress.IPv6Address) and plain.is_link_local and not plain.scope_id:
        return "link-local and names no interface; write one that is valid on all links"
    return ""


ADDRESS = Kind(_address, {"type": "string"})


class LabKeys(Keys):
    """Hosts that are made on this machine."""

    kind: Annotated[str, kinds.choice("", LABS)] = required("netns or qemu", "netns")
    rate: Annotated[int | None, kinds.rate()] = optional("rate of the data link", "1Gb/s")
    delay: Annotated[int | None, kinds.time(1)] = optional(
        "delay of the data link, each way", "5ms"
    )


LAB = kinds.word_or(
    {kind: Lab(kind) for kind in LABS},
    LabKeys,
    lambda keys: Lab(keys.kind, keys.rate, keys.delay),
    "netns, qemu or a mapping such as {kind: netns, rate: 1Gb/s}",
)


class BootKeys(Keys):
    """How a host is booted on another kernel: one of `method`, `qemu` and `command`."""

    method: Annotated[str | None, kinds.choice("a boot method", BOOT_METHODS)] = optional(
        "kexec or grub", "grub"
    )
    qemu: Annotated[str | None, _LAB_NAME] = optional("the lab whose guest the host is", "lab0")
    command: Annotated[tuple[str, ...] | None, kinds.argv()] = optional(
        "a program of this machine that boots {host} on {kernel}",
        ["reboot-host", "{host}", "{kernel}"],
    )
    deadline: Annotated[int | None, kinds.time(1)] = optional(
        "longest time that a boot takes; left out: that of the boot method", "5m"
    )


def _boot(keys: BootKeys) -> BootSpec:
    named = [key for key in ("method", "qemu", "command") if getattr(keys, key) is not None]
    if len(named) != 1:
        raise wrong(f"expected one of method, qemu or command, got {' and '.join(named) or 'none'}")
    kind = keys.method or ("qemu" if keys.qemu else "command")
    return BootSpec(kind, keys.qemu or "", keys.command or (), keys.deadline)


BOOT = kinds.word_or(
    {method: BootSpec(method) for method in BOOT_METHODS},
    BootKeys,
    _boot,
    "kexec, grub or a mapping such as {command: [reboot-host, '{host}', '{kernel}']}",
)


class HostKeys(Keys):
    """A host. Without `ssh` it is this machine."""

    ssh: Annotated[str | None, DESTINATION] = optional(
        "OpenSSH destination; aliases of ~/.ssh/config work; left out: this machine. Of several"
        " hosts: with `{host}`, each one's name, or with a notation of as many destinations",
        "root@snd.example",
    )
    address: Annotated[str | None, ADDRESS] = optional(
        "data address; of several hosts: a notation of as many, such as 10.0.0.[1-64]",
        "192.168.2.1",
    )
    interface: Annotated[str | None, INTERFACE] = optional(
        "network interface of the data address", "eth1"
    )
    boot: Annotated[BootSpec, BOOT] = optional(
        "how it is booted on another kernel", "grub", default="kexec"
    )
    run_as: Annotated[str, USER] = optional(
        "account as which data is sent and received, and tools run, where the login is root's;"
        " left out: as the login",
        "bench",
        default="",
    )


def _host(value: Plain) -> Any:
    if value == "local":
        return {}
    if isinstance(value, dict):
        return value
    raise expected(
        "local or a mapping such as {ssh: root@snd.example, address: 192.168.2.1}",
        value,
        nearest(value, ("local",)),
    )


_BY_NAME = Kind(HOST_NAME.parse, {"type": ["string", "number"], "pattern": f"^(from|{NAMES})$"})
HOSTS = dict[Annotated[str, _BY_NAME], Annotated[HostKeys, BeforeValidator(_host)]]
