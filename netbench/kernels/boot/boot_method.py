"""What a boot method is, and the kernel that it boots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from netbench.kernels.boot.machine import Machine
from netbench.kernels.boot.state import State, is_of
from netbench.model import Host, Kernel

CONSOLE_LINES = 50  # a panic's own, and those before it


class Target(NamedTuple):
    """A kernel, ready to be booted: `name` in the campaign ("" is the host's original kernel), the
    release that `uname -r` will print, and, for methods that need them, its files on the host and
    its command line.
    """

    name: str
    release: str
    image: str = ""
    initrd: str = ""
    command_line: str = ""
    append: str = ""  # words that its command line must hold; the method adds others
    prefix: bool = False  # `release` is the beginning of what `uname -r` will print

    def matches(self, state: State) -> bool:
        """Whether a host runs this kernel: the release, and the command line that is set."""
        right = is_of(state.release, self.release) if self.prefix else state.release == self.release
        words = state.words.split()
        if self.command_line and not self.prefix:
            right = right and words == self.command_line.split()
        return right and set(self.append.split()) <= set(words)


class BootMethod(ABC):
    """How a host is booted on another kernel: the base of each way.

    `seconds`: how long a boot may take by default. `remote`: whether it works without the host's
    help. `as_root`: the programs that it runs on the host as root.
    """

    seconds: float
    remote = False
    as_root: Sequence[str] = ()

    @abstractmethod
    def why_not(self, machine: Machine, kernels: Sequence[Kernel]) -> str:
        """Why this host cannot be booted on these kernels; "" where it can. Errors: HostError."""

    @abstractmethod
    def prepare(self, machine: Machine, kernel: Kernel, original_kernel: State) -> Target:
        """Do everything that can fail while the host still runs: find, copy and load the kernel.
        Errors: BootError, HostError.
        """

    def prepare_original(self, machine: Machine, original_kernel: State) -> Target:
        """The same for the original kernel; hosts need not answer. Errors: BootError, HostError."""
        return Target("", original_kernel.release)

    @abstractmethod
    def reboot(self, machine: Machine, target: Target) -> None:
        """Start the boot; the host goes down after this returns. Errors: BootError, HostError."""

    def cancel(self, machine: Machine) -> None:  # noqa: B027 - some have nothing to undo
        """Undo `prepare`, so that the host's next reboot is an ordinary one. Errors: HostError.

        A GRUB that cannot write its environment keeps the entry that was chosen.
        """

    def console(self, host: Host) -> list[str]:
        """The last lines of the host's console; none where it has none."""
        return []
