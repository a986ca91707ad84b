"""Kernels that are installed on a host: their files, found by release."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from netbench.base.errors import BootError
from netbench.facts.comparison import version
from netbench.kernels.boot.machine import Machine
from netbench.kernels.boot.state import is_of
from netbench.model import Kernel

_IMAGE, _INITRD = "/boot/vmlinuz-{}", "/boot/initrd.img-{}"
_PREFIX = "vmlinuz-"


class Installed(NamedTuple):
    """An installed kernel; `initrd` is "" where it has none."""

    release: str
    image: str
    initrd: str


def releases(machine: Machine) -> list[str]:
    """Releases of the kernels that are installed, the oldest version first."""
    names = {
        name.removeprefix(_PREFIX) for name in machine.listing("/boot") if name.startswith(_PREFIX)
    }
    return sorted(names | set(machine.listing("/lib/modules")), key=version)


def find(machine: Machine, wanted: str) -> Installed:
    """The installed kernel of a release, or the newest that begins so. Errors: as releases."""
    present = releases(machine)
    for release in candidates(present, wanted):
        image, initrd = _IMAGE.format(release), _INITRD.format(release)
        if machine.exists(image):
            return Installed(release, image, initrd if machine.exists(initrd) else "")
    listed = f"only {', '.join(present)}" if present else "/boot and /lib/modules have no kernel"
    raise BootError(f"{machine.name}: no kernel {wanted} is installed, {listed}")


def candidates(known: Iterable[str], wanted: str) -> list[str]:
    """The releases that a word may mean, the best first. The previous kernel that an installation
    keeps (`.old`) is not among them.
    """
    loose = [
        release
        for release in known
        if is_of(release, wanted) and release != wanted and not release.endswith(".old")
    ]
    return [
        *(release for release in known if release == wanted),
        *sorted(loose, key=version, reverse=True),
    ]


def missing(machine: Machine, kernels: Iterable[Kernel]) -> str:
    """Which of the kernels are not installed, and which are; "" when none is missing."""
    problems = []
    for kernel in kernels:
        try:
            if kernel.release:
                find(machine, kernel.release)
        except BootError as error:
            problems.append(str(error).removeprefix(f"{machine.name}: "))
    return "; ".join(problems)
