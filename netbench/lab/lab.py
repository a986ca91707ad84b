"""What a lab is: its hosts, kernels, state and specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from netbench.base.errors import LabRefused
from netbench.lab.accelerator import EMULATION, Accelerator
from netbench.lab.command import Tools
from netbench.model import Kernel


@dataclass(frozen=True)
class LabHost:
    """A host of a lab.

    `ssh` is its alias in the lab's ssh_config. `address` (IPv4), `address6` (IPv6; "" where the
    kernel has none), `interface` are the data link's; `management` is where SSH goes to;
    `namespace` is the network namespace that it is in: its own, or its guest's, the switch's.
    """

    name: str
    ssh: str
    address: str
    address6: str
    interface: str
    namespace: str
    management: str


@dataclass(frozen=True)
class LabKernel:
    """A kernel that a lab's guests can be started on, as files of this machine; `source` is where
    it comes from.

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
    """Hosts that are up on this machine. `folder` holds keys, configurations and logs; `hosts` are
    in the order of the request.

    `kernels`, of guests, by name: the first is what they start on. `accelerator`: what they run on.
    """

    name: str
    kind: str
    folder: Path
    hosts: Mapping[str, LabHost]
    ssh_config: Path
    kernels: Mapping[str, LabKernel] = field(default_factory=dict)
    accelerator: Accelerator = EMULATION

    def host(self, name: str) -> LabHost:
        """A host by name. Errors: LabRefused."""
        if name not in self.hosts:
            raise LabRefused(f"lab {self.name} has no host {name}, only {', '.join(self.hosts)}")
        return self.hosts[name]

    def number(self, host: LabHost) -> int:
        """A host's place, from 1: its addresses and its ports at the switch have it."""
        return list(self.hosts).index(host.name) + 1

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


ANSWERS, UNRESPONSIVE, STOPPED, GONE = "answers", "unresponsive", "stopped", "gone"
"""What a host's SSH server does: it answers; its process (of a guest: QEMU) runs, and it does not
answer: the kernel boots, hangs or has panicked; that process was stopped by a signal; it is not
there."""


@dataclass(frozen=True)
class HostStatus:
    """A host of a lab, whether its namespace exists, what its server does (`answers`,
    `unresponsive`, `stopped`, `gone`), and, of a guest that does not answer, the last line of its
    console.
    """

    host: LabHost
    namespace: bool
    server: str
    console: str = ""


@dataclass(frozen=True)
class LabStatus:
    """The state of a lab: `up` (all hosts answer), `unresponsive` (a host does not answer),
    `broken` (a namespace or server is missing), `unfinished` (being made, or the process that made
    it died). `accelerator` is what guests run on, "" of other kinds.
    """

    name: str
    kind: str
    state: str
    folder: Path
    hosts: tuple[HostStatus, ...]
    namespaces: tuple[str, ...]
    accelerator: str = ""

    def rows(self) -> list[dict[str, object]]:
        """A row a host, or one row where there is no host yet: what `lab status --json` prints."""
        row: dict[str, object] = {
            "lab": self.name,
            "kind": self.kind,
            "state": self.state,
            "folder": str(self.folder),
        }
        row |= {"accelerator": self.accelerator} if self.accelerator else {}
        hosts = [
            {
                "host": one.host.name,
                "address": one.host.address,
                "interface": one.host.interface,
                "server": one.server,
            }
            | ({"console": one.console} if one.console else {})
            for one in self.hosts
        ]
        return [row | host for host in hosts] or [row]


@dataclass(frozen=True)
class LabSpec:
    """A lab to be made: `rate` in bits/s and `delay` in ns of the data link, each way; None is as
    fast as the machine is.

    `kernels` are those of guests, `disk` gives each guest a disk; `ready` are the kernels that
    `Kind.prepare` has built, and `accelerator` is what it has found to run them.
    """

    kind: str
    name: str
    hosts: tuple[str, ...]
    rate: int | None
    delay: int | None
    kernels: tuple[Kernel, ...] = ()
    disk: bool = False
    ready: Mapping[str, LabKernel] = field(default_factory=dict)
    accelerator: Accelerator = EMULATION


@dataclass(frozen=True)
class Kind:
    """A kind of lab: the tools that a spec needs, and how it is made in an empty folder. Everything
    that is made can be found again by its name.

    `prepare`, if there is one, does what takes long before labs are locked, and leaves only a
    cache: it returns the spec with kernels that are ready. `require` is the part of it that finds
    out whether this machine can have such hosts.
    """

    needs: Callable[[LabSpec], Sequence[str]]
    make: Callable[[LabSpec, Path, Tools], Lab]
    prepare: Callable[[LabSpec, Tools], LabSpec] | None = None
    require: Callable[[Tools], object] | None = None
