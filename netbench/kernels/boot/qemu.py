"""Guests of a lab on this machine: QEMU is started anew on another kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from netbench.base.errors import BootError, LabError, RequestError
from netbench.kernels.boot.boot_method import CONSOLE_LINES, BootMethod, Target
from netbench.kernels.boot.machine import Machine
from netbench.kernels.boot.state import State
from netbench.lab.guest_console import console
from netbench.lab.guest_kernel import kernel_for
from netbench.lab.guests import boot, find
from netbench.lab.lab import LabKernel
from netbench.model import Host, Kernel


class Qemu(BootMethod):
    """Restarts a guest's emulator, which needs no help of the guest."""

    seconds = 60.0
    remote = True

    def __init__(self) -> None:
        self._ready: dict[str, LabKernel] = {}

    def why_not(self, machine: Machine, kernels: Sequence[Kernel]) -> str:
        try:
            lab = find(machine.host.boot.lab)
            for kernel in kernels:
                kernel_for(lab, kernel)
        except (LabError, RequestError) as error:
            return str(error)
        return ""

    def prepare(self, machine: Machine, kernel: Kernel, original_kernel: State) -> Target:
        with _as_boot_error(machine.host):
            return self._target(kernel.name, kernel_for(find(machine.host.boot.lab), kernel))

    def prepare_original(self, machine: Machine, original_kernel: State) -> Target:
        with _as_boot_error(machine.host):
            lab = find(machine.host.boot.lab)
            release = original_kernel.release
            own = (k for k in lab.kernels.values() if k.release == release)
            return self._target("", next(own, None) or kernel_for(lab, Kernel("", release=release)))

    def _target(self, name: str, kernel: LabKernel) -> Target:
        self._ready[name] = kernel
        return Target(name, kernel.release, append=kernel.append)

    def reboot(self, machine: Machine, target: Target) -> None:
        with _as_boot_error(machine.host):
            boot(machine.host.boot.lab, _guest(machine.host), self._ready[target.name])

    def console(self, host: Host) -> list[str]:
        try:
            return console(find(host.boot.lab), _guest(host), CONSOLE_LINES)
        except LabError:
            return []


@contextmanager
def _as_boot_error(host: Host) -> Iterator[None]:
    """Errors of the lab as BootError."""
    try:
        yield
    except (LabError, RequestError) as error:
        raise BootError(f"{host.name}: {error}") from error


def _guest(host: Host) -> str:
    """The lab's name of a host, with which its SSH alias ends; a campaign's may differ."""
    return (host.ssh or host.name).removeprefix(f"{host.boot.lab}-")
