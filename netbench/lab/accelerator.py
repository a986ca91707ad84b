"""What executes instructions of guests: KVM, where a trial shows that it works, or QEMU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

KVM, TCG = "kvm", "tcg"  # as QEMU calls them
# MiB, of which a guest touches what it needs; with less, the kernel's TCP limits differ from boot
# to boot
MEMORY = 1536
_MOST_CPUS = 64  # of a guest: it has 1.5 GiB for their queues
# A guest that panics reboots at once; its console keeps the panic. The kernel's self-tests of
# ciphers take a sixth of a boot under emulation.
_APPEND = "console=ttyS0 quiet panic=-1"
_TESTS = "cryptomgr.notests"


@dataclass(frozen=True)
class Accelerator:
    """What a lab's guests run on, the same for all of them as long as the lab is up.

    `name` is QEMU's word; `why` says why it is not KVM. `cpus` are this machine's CPUs for each
    guest, in the order of the lab's hosts: a guest has as many, and each of its CPUs runs on one of
    them alone; none: one CPU, wherever the scheduler likes. `vhost`: the kernel moves the packets
    of the data link, not QEMU.
    """

    name: str = TCG
    why: str = ""
    vhost: bool = False
    cpus: tuple[tuple[int, ...], ...] = ()

    @property
    def fact(self) -> str:
        """The fact `lab_guest` of the lab's guests."""
        if self.name == TCG:
            return "QEMU TCG"
        return "KVM, vhost-net" if self.vhost else "KVM"

    @property
    def append(self) -> str:
        """The beginning of a guest's command line. Under KVM a kernel chooses clock and mitigations
        itself, as anywhere.
        """
        if self.name == KVM:
            return f"{_APPEND} random.trust_cpu=on {_TESTS}"
        return f"{_APPEND} tsc=reliable random.trust_cpu=on mitigations=off {_TESTS}"

    def of(self, guest: int) -> tuple[int, ...]:
        """This machine's CPUs for a guest, by its place in the lab."""
        return self.cpus[guest] if self.cpus else ()

    def queues(self, guest: int) -> int:
        """Of the guest's data link: one for each of its CPUs."""
        return max(1, len(self.of(guest)))

    def machine(self, guest: int) -> tuple[str, ...]:
        """QEMU's arguments for machine, CPUs and memory.

        The accelerator is never a list of two (`kvm:tcg`): where a machine is itself a guest, KVM
        may start and the kernel never run.
        """
        if self.name == KVM:
            words = ("-accel", "kvm", "-cpu", "host")
        else:
            words = ("-accel", "tcg,thread=multi,tb-size=64", "-cpu", "max")
        plain = ("-nodefaults", "-no-user-config", "-display", "none")
        return ("-M", "pc", *words, "-smp", str(self.queues(guest)), "-m", str(MEMORY), *plain)


def shares(available: Iterable[int], guests: int) -> tuple[tuple[int, ...], ...]:
    """CPUs for each guest: equal parts of all but the first, which is left to the controller. Where
    guests are more than those, they take them in turn.
    """
    cpus = sorted(available)
    free = cpus[1:] or cpus
    each = min(len(free) // guests, _MOST_CPUS)
    if not each:
        return tuple((free[i % len(free)],) for i in range(guests))
    return tuple(tuple(free[i * each : (i + 1) * each]) for i in range(guests))


EMULATION = Accelerator()
