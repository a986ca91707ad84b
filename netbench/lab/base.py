"""What a lab is, whatever its hosts are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from netbench.errors import LabRefused
from netbench.lab.command import Tools
from netbench.model import Kernel

DEFAULT_NAME = "lab"
SWITCH = "switch"
HOSTS_MAX = 250  # both links are a /24
_LAB = re.compile(
    r"[A-Za-z0-9_]{1,12}\Z"
)  # a dash ends it in a namespace's name; nb-NAME is an interface
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")


@dataclass(frozen=True)
class LabHost:
    """A host of a lab.

    `ssh` is its alias in the lab's ssh_config. `address` (IPv4), `address6` (IPv6; "" where the
    kernel has none), `interface` are the data link's; `management` and `port` are where SSH goes
    to; `namespace` is the network namespace of its data link.
    """

    name: str
    ssh: str
    address: str
    address6: str
    interface: str
    namespace: str
    management: str
    port: int = 22


@dataclass(frozen=True)
class LabKernel:
    """A kernel that a lab's guests can be started on, as files of this machine; `source` is what it
    was made from.

    `append` is added to the kernel's command line.
    """

    name: str
    release: str
    image: Path
    initrd: Path
    append: str = ""
    source: str = ""


@dataclass(frozen=True)
class Lab:
    """Hosts that are up on this machine. `folder` holds keys, configurations and logs; `hosts` is
    in the order asked for.

    `kernels`, of guests, by name: the first is what they start on. `versions`: the programs that
    guests are made with.
    """

    name: str
    kind: str
    folder: Path
    hosts: Mapping[str, LabHost]
    ssh_config: Path
    kernels: Mapping[str, LabKernel] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def block(self) -> dict[str, Any]:
        """The keys of a campaign that runs on this lab."""
        hosts: dict[str, dict[str, Any]] = {
            h.name: {"ssh": h.ssh, "address": h.address, "interface": h.interface}
            for h in self.hosts.values()
        }
        block: dict[str, Any] = {"hosts": hosts, "ssh_config": str(self.ssh_config)}
        if self.kernels:
            for host in hosts.values():
                host["boot"] = {self.kind: self.name}
            block["kernels"] = {name: _kernel(kernel) for name, kernel in self.kernels.items()}
        return block

    def yaml(self) -> str:
        """The same as YAML, to be pasted into a campaign."""
        return yaml.safe_dump(self.block(), sort_keys=False, default_flow_style=None, width=1000)


def _kernel(kernel: LabKernel) -> dict[str, str]:
    return {"release": kernel.release} | ({"append": kernel.append} if kernel.append else {})


@dataclass(frozen=True)
class HostStatus:
    """A host of a lab, and whether its namespace and its SSH server (of a guest: its emulator) are
    still there.
    """

    host: LabHost
    namespace: bool
    sshd: bool


@dataclass(frozen=True)
class LabStatus:
    """What is there of a lab. `state`: `up`, `broken` (something is gone), `unfinished` (being
    made, or its maker died).
    """

    name: str
    kind: str
    state: str
    folder: Path
    hosts: tuple[HostStatus, ...]
    namespaces: tuple[str, ...]


@dataclass(frozen=True)
class LabSpec:
    """A lab as asked for: `rate` in bits/s, `delay` in ns, of the data link, each way; None is as
    fast as the machine is.

    `kernels` are those of guests, `disk` gives each guest one; `ready` is what `Kind.prepare` has
    made of the kernels.
    """

    kind: str
    name: str
    hosts: tuple[str, ...]
    rate: int | None
    delay: int | None
    kernels: tuple[Kernel, ...] = ()
    disk: bool = False
    ready: Mapping[str, LabKernel] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """A way to make hosts: the tools that a spec needs, and the making of it in an empty folder;
    names lead back to all of it.

    `alive` says whether a host's server is there, from the lab's folder and the host's name.
    `prepare`, if there is one, does what takes long and leaves nothing but a cache, before labs are
    locked: a spec as it can be made.
    """

    needs: Callable[[LabSpec], Sequence[str]]
    make: Callable[[LabSpec, Path, Tools], Lab]
    alive: Callable[[Path, str], bool]
    prepare: Callable[[LabSpec, Tools], LabSpec] | None = None


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
        raise LabRefused(
            f"expected a lab's name of 1 to 12 letters, digits and underscores, got {name!r}"
        )
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
                "expected a host's name of at most 63 letters, digits, dots, dashes and"
                f" underscores, not {SWITCH}, got {name!r}"
            )
        if name in hosts[:i]:
            raise LabRefused(f"expected each host once, got {name} again")
    return tuple(hosts)
