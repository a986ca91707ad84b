"""One boot from another entry of GRUB's menu: grub-reboot(8). The default entry stays."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence

from netbench.base.errors import BootError
from netbench.kernels.boot import installed
from netbench.kernels.boot.boot_method import BootMethod, Target
from netbench.kernels.boot.kexec import restart
from netbench.kernels.boot.machine import Machine
from netbench.kernels.boot.state import State
from netbench.model import Kernel

CONFIGURATION = "/boot/grub/grub.cfg"
_ENTRY = re.compile(
    r"""\s*(menuentry|submenu)\s+(?:'([^']*)'|"([^"]*)")"""
    r"""(?:.*?(?:\$menuentry_id_option|--id)[ =]+(?:'([^']*)'|"?([^\s"]+)"?))?"""
)
_LINUX = re.compile(r"\s*linux(?:16|efi)?\s+(\S+)(.*)")
_RESCUE = {"single", "recovery", "nomodeset", "rescue"}  # words of arguments


class Grub(BootMethod):
    """`grub-reboot ENTRY`, then a reboot. For kernels that have an entry: installed ones."""

    seconds = 600.0
    as_root = (
        "cat grub.cfg",
        "grub-reboot ENTRY",
        "systemctl reboot (or reboot)",
        "grub-editenv - unset next_entry",
    )

    def why_not(self, machine: Machine, kernels: Sequence[Kernel]) -> str:
        if not machine.has("grub-reboot"):
            return (
                "the host has no grub-reboot; install grub2-common there, or name another way to"
                " boot"
            )
        if not machine.exists(CONFIGURATION):
            return f"the host has no {CONFIGURATION}; name another boot method"
        odd = [kernel.name for kernel in kernels if not kernel.release or kernel.append]
        if odd:
            return (
                f"{', '.join(odd)}: GRUB boots kernels that are installed (release, without"
                " append); name another boot method"
            )
        return installed.missing(machine, kernels)

    def prepare(self, machine: Machine, kernel: Kernel, original_kernel: State) -> Target:
        release = installed.find(machine, kernel.release).release
        self._choose(machine, release)
        return Target(kernel.name, release)

    def prepare_original(self, machine: Machine, original_kernel: State) -> Target:
        """By its own entry, since it need not have been the default one."""
        with contextlib.suppress(BootError):  # the default entry is the next best
            self._choose(machine, original_kernel.release)
        return Target("", original_kernel.release)

    def _choose(self, machine: Machine, release: str) -> None:
        entry = entry_of(machine.run("cat", CONFIGURATION, root=True), release)
        if not entry:
            raise BootError(
                f"{machine.name}: {CONFIGURATION} has no menu entry for {release}; run"
                " `update-grub` on the host"
            )
        machine.run("grub-reboot", entry, root=True)

    def reboot(self, machine: Machine, target: Target) -> None:
        restart(machine)

    def cancel(self, machine: Machine) -> None:
        machine.attempt("grub-editenv", "-", "unset", "next_entry", root=True)


def entry_of(text: str, release: str) -> str:
    """The menu entry of a grub.cfg that boots a release, as grub-reboot takes it: `submenu>entry`;
    "" where there is none.

    Ids never begin with a digit: GRUB would read that as a place in the menu. Recovery entries are
    passed over.
    """
    paths = [
        path
        for path, image, arguments in _entries(text)
        if image.rpartition("/")[2].partition("-")[2] == release
        and not _RESCUE & {*arguments.split()}
    ]
    return next(
        (path for path in paths if not any(name[:1].isdigit() for name in path.split(">"))), ""
    )


def _entries(text: str) -> Iterator[tuple[str, str, str]]:
    """(path in the menu, kernel, its arguments) of every entry."""
    path: list[tuple[int, str]] = []  # depth of braces that it was opened at, name
    depth = 0
    for line in text.splitlines():
        opened = _ENTRY.match(line)
        if opened:
            names = [name for name in (opened[4], opened[5], opened[2], opened[3]) if name]
            path.append((depth, _name(names)))
        elif (kernel := _LINUX.match(line)) and path:
            yield ">".join(name for _, name in path), kernel[1], kernel[2]
        if not line.lstrip().startswith("#"):
            bare = re.sub(r"""'[^']*'|"[^"]*"|\$\{[^{}]*\}""", "", line)
            depth += bare.count("{") - bare.count("}")
        while path and depth <= path[-1][0]:
            path.pop()


def _name(names: Sequence[str]) -> str:
    """The id of an entry, or its title where GRUB would take the id for a number."""
    return next((name for name in names if not name[:1].isdigit()), names[0])
