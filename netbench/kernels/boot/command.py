"""A program of the user's that boots a host: IPMI, PXE, a hypervisor."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

from netbench.base.errors import BootError
from netbench.base.names import RELEASE
from netbench.hosts.host_channel import Result
from netbench.kernels.boot.boot_method import BootMethod, Target
from netbench.kernels.boot.machine import Machine, complaint
from netbench.kernels.boot.state import State
from netbench.model import Kernel


class Command(BootMethod):
    """Runs on this machine, without a shell; {host} {kernel} {release} {append} in its words are
    replaced.

    `uname -r` must then print the kernel's `release`, or a release that begins with it. For the
    original kernel, {kernel} is `original`.
    """

    seconds = 600.0
    remote = True

    def why_not(self, machine: Machine, kernels: Sequence[Kernel]) -> str:
        nameless = [kernel.name for kernel in kernels if not kernel.release]
        if nameless:
            return (
                f"{', '.join(nameless)}: a command needs `release`, what `uname -r` will print,"
                " so that the boot can be checked"
            )
        return ""

    def prepare(self, machine: Machine, kernel: Kernel, original_kernel: State) -> Target:
        self.prepare_original(machine, original_kernel)  # the way back
        return Target(kernel.name, kernel.release, append=kernel.append, prefix=True)

    def prepare_original(self, machine: Machine, original_kernel: State) -> Target:
        """Refuses a release that is a word of another kind: the host says it, a command gets it."""
        if not re.fullmatch(RELEASE, original_kernel.release):
            why = f"its kernel calls itself {original_kernel.release!r}, which is no release"
            raise BootError(f"{machine.name}: {why}; boot another one first")
        return super().prepare_original(machine, original_kernel)

    def reboot(self, machine: Machine, target: Target) -> None:
        words = {
            "{host}": machine.name,
            "{kernel}": target.name or "original",
            "{release}": target.release,
            "{append}": target.append,
        }
        argv = [_filled(word, words) for word in machine.host.boot.argv]
        seconds = machine.host.boot.deadline / 1e9 if machine.host.boot.deadline else self.seconds
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                start_new_session=True,
                check=False,
                cwd="/",
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BootError(f"{machine.name}: cannot run {argv[0]}: {error}") from error
        if done.returncode:
            why = complaint(Result(tuple(argv), done.returncode, done.stdout, done.stderr))
            raise BootError(
                f"{machine.name}: {' '.join(argv)} failed (exit {done.returncode}): {why}"
            )


def _filled(word: str, words: dict[str, str]) -> str:
    for name, value in words.items():
        word = word.replace(name, value)
    return word
