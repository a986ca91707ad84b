"""What a lab is, whatever its hosts are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from netbench.errors import LabRefused
from netbench.lab.command import Tools

DEFAULT_NAME = "lab"
SWITCH = "switch"
HOSTS_MAX = 250  # both links are a /24
_LAB = re.compile(r"[A-Za-z0-9_]{1,12}\Z")  # a dash ends it in a namespace's name; nb-NAME is an interface
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")


@dataclass(frozen=True)
class LabHost:
    """A host of a lab.

    `ssh` is its alias in the lab's ssh_config. `address` (IPv4), `address6` (IPv6; "" where the kernel has none), `interface`
    are the data link's; `management` is the address that SSH goes to; `namespace` is the network namespace of its data link.
    """

    name: str
    ssh: str
    address: str
    address6: str
    interface: str
    namespace: str
    management: str


@dataclass(frozen=True)
class Lab:
    """Hosts that are up on this machine. `folder` holds keys, configurations and logs; `hosts` is in the order asked for."""

    name: str
    kind: str
    folder: Path
    hosts: Mapping[str, LabHost]
    ssh_config: Path

    def block(self) -> dict[str, Any]:
        """The keys of a campaign that runs on this lab."""
        hosts = {h.name: {"ssh": h.ssh, "address": h.address, "interface": h.interface} for h in self.hosts.values()}
        return {"hosts": hosts, "ssh_config": str(self.ssh_config)}

    def yaml(self) -> str:
        """The same as YAML, to be pasted into a campaign."""
        return yaml.safe_dump(self.block(), sort_keys=False, default_flow_style=None, width=1000)


@dataclass(frozen=True)
class HostStatus:
    """A host of a lab, and whether its namespace and its SSH server are still there."""

    host: LabHost
    namespace: bool
    sshd: bool


@dataclass(frozen=True)
class LabStatus:
    """What is there of a lab. `state`: `up`, `broken` (something is gone), `unfinished` (being made, or its maker died)."""

    name: str
    kind: str
    state: str
    folder: Path
    hosts: tuple[HostStatus, ...]
    namespaces: tuple[str, ...]


@dataclass(frozen=True)
class Wish:
    """A lab as asked for: `rate` in bits/s, `delay` in ns, of the data link, each way; None is as fast as the machine is."""

    kind: str
    name: str
    hosts: tuple[str, ...]
    rate: int | None
    delay: int | None


@dataclass(frozen=True)
class Kind:
    """A way to make hosts: the tools that a wish needs, and the making of it in an empty folder; names lead back to all of it."""

    needs: Callable[[Wish], Sequence[str]]
    make: Callable[[Wish, Path, Tools], Lab]


def interface_name(lab: str) -> str:
    """The only interface of a lab in the root namespace."""
    return f"nb-{lab}"


def namespace_name(lab: str, host: str) -> str:
    """The namespace of a lab's host, or of its switch."""
    return f"nb-{lab}-{host}"


def lab_name(name: str | None) -> str:
    """A lab's name, checked. Errors: LabRefused."""
    if name is None:
        return DEFAULT_NAME
    if not _LAB.match(name):
        raise LabRefused(f"expected a lab's name of 1 to 12 letters, digits and underscores, got {name!r}")
    return name


def host_names(hosts: Sequence[str] | int) -> tuple[str, ...]:
    """Names of hosts, checked; h1, h2, ... for a number. Errors: LabRefused."""
    if isinstance(hosts, str):
        raise LabRefused(f"expected a list of hosts or their number, got {hosts!r}")
    count = hosts if isinstance(hosts, int) else len(hosts)
    if not 1 <= count <= HOSTS_MAX:
        raise LabRefused(f"expected 1 to {HOSTS_MAX} hosts in a lab, got {count}")
    if isinstance(hosts, int):
        return tuple(f"h{i}" for i in range(1, hosts + 1))
    for i, name in enumerate(hosts):
        if not _HOST.match(name) or name == SWITCH:
            raise LabRefused(
                f"expected a host's name of at most 63 letters, digits, dots, dashes and underscores, not {SWITCH}, got {name!r}"
            )
        if name in hosts[:i]:
            raise LabRefused(f"expected each host once, got {name} again")
    return tuple(hosts)
