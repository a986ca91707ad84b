"""What a lab is: its hosts, kernels, state and specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

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


class LabSpec(NamedTuple):
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
    ready: Mapping[str, LabKernel] = {}
    accelerator: Accelerator = EMULATION


class Kind(NamedTuple):
    """A kind of lab: the tools that a spec needs, and how it is made in an empty folder. Everything
    that is made can be found again by its name.

    `prepare`, if there is one, does what takes long before labs are locked, and leaves only a
    cache: it returns the spec with kernels that are ready.
    """

    needs: Callable[[LabSpec], Sequence[str]]
    make: Callable[[LabSpec, Path, Tools], Lab]
    prepare: Callable[[LabSpec, Tools], LabSpec] | None = None
