"""What a way to boot a host is: make sure that a kernel can be booted, then let the host go; and
the host that it is done to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from netbench.errors import BootError, HostError
from netbench.hosts.base import Channel, Result
from netbench.model import Host, Kernel

GLANCE_SECONDS = 10.0  # a kernel that is dying takes connections and answers nothing
CONSOLE_LINES = 50  # a panic's own, and those before
_STATE = ("/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/osrelease", "/proc/cmdline")
_LOADER_WORDS = ("BOOT_IMAGE=", "initrd=")  # a boot loader's own, of no effect in the kernel


@dataclass(frozen=True)
class State:
    """What a host runs: the boot, the release of its kernel (`uname -r`) and that kernel's command
    line.
    """

    boot_id: str
    release: str
    command_line: str

    def same_kernel(self, other: State) -> bool:
        """Whether the same kernel runs with the same command line, in whatever boot."""
        return (self.release, self.words) == (other.release, other.words)

    @property
    def words(self) -> str:
        """The command line without what the boot loader writes for itself."""
        return " ".join(
            word for word in self.command_line.split() if not word.startswith(_LOADER_WORDS)
        )


@dataclass(frozen=True)
class Target:
    """A kernel, ready to be booted: `name` as the campaign calls it ("" for the one that the host
    came with), the release that `uname -r` will say, and where the way needs them the files on the
    host and the command line.
    """

    name: str
    release: str
    image: str = ""
    initrd: str = ""
    command_line: str = ""
    append: str = ""  # words that its command line must hold, where the way makes the rest of it
    loose: bool = False  # `release` is the beginning of what `uname -r` will say

    def is_it(self, state: State) -> bool:
        """Whether that is what was to be booted: the release, and the command line as far as the
        way sets it.
        """
        right = is_of(state.release, self.release) if self.loose else state.release == self.release
        words = state.words.split()
        if self.command_line and not self.loose:
            right = right and words == self.command_line.split()
        return right and set(self.append.split()) <= set(words)


def is_of(release: str, wanted: str) -> bool:
    """Whether a release is the wanted one, or begins with it at a place where a number ends: 6.1.9
    is of 6.1, 6.12.3 is not.
    """
    return release == wanted or (
        release.startswith(wanted)
        and not (wanted[-1:].isdecimal() and release[len(wanted)].isdecimal())
    )


class Machine:
    """A host that can be talked to: programs, with root's rights where asked for, and files. No
    shell sees a value.
    """

    def __init__(self, host: Host, channel: Channel) -> None:
        self.host = host
        self.channel = channel
        self._root: bool | None = None

    @property
    def name(self) -> str:
        return self.host.name

    def attempt(self, *argv: str, seconds: float = 30.0, root: bool = False) -> Result:
        """Run a program to its end. Errors: HostError when that cannot be done."""
        if root and self._root is None:
            self._root = self.channel.run(("id", "-u")).stdout.strip() == "0"
        prefix = ("sudo", "-n", "--") if root and not self._root else ()
        return self.channel.run((*prefix, *argv), seconds)

    def run(self, *argv: str, seconds: float = 30.0, root: bool = False) -> str:
        """What a program prints. Errors: BootError with what it said where it fails; HostError."""
        done = self.attempt(*argv, seconds=seconds, root=root)
        if done.status:
            raise BootError(
                f"{self.name}: {argv[0]} failed (exit {done.status}): {complaint(done)}"
            )
        return done.stdout

    def has(self, program: str) -> bool:
        """Whether a program is there for root."""
        try:
            return (
                self.attempt(
                    "sh", "-c", 'PATH=$PATH:/usr/sbin:/sbin; command -v "$0"', program, root=True
                ).status
                == 0
            )
        except HostError:
            return False

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder, as root sees it."""
        return self.attempt("test", "-e", path, root=True).status == 0

    def listing(self, folder: str) -> list[str]:
        """The names in a folder; none where there is no such folder."""
        done = self.attempt("ls", "-1", "--", folder)
        return done.stdout.split("\n")[:-1] if done.status == 0 else []

    def state(self, seconds: float = 30.0) -> State:
        """What the host runs now. Errors: HostError."""
        done = self.channel.run(("cat", *_STATE), seconds)
        lines = done.stdout.split("\n")
        if done.status or len(lines) < len(_STATE):
            raise HostError(f"{self.name}: cannot read which kernel it runs: {complaint(done)}")
        return State(*(line.strip() for line in lines[: len(_STATE)]))


class BootMethod(Protocol):
    """A way to boot. `seconds`: how long a boot may take where the campaign says nothing; `remote`:
    whether it needs no help of the host.
    """

    seconds: float
    remote: bool

    def why_not(self, machine: Machine, kernels: Sequence[Kernel]) -> str:
        """Why this host cannot be booted so, on these kernels; "" where it can. Errors:
        HostError.
        """

    def prepare(self, machine: Machine, kernel: Kernel | None, original_kernel: State) -> Target:
        """Everything that can fail while the host is still well: find, copy and load the kernel;
        None is the one that the host came with. Errors: BootError, HostError.
        """

    def go(self, machine: Machine, target: Target) -> None:
        """Let the host go: it is on its way down. Errors: BootError, HostError."""

    def cancel(self, machine: Machine) -> None:
        """Take back what `prepare` left on a host that does not go, or has gone: its next reboot is
        one like any other.

        (A GRUB that cannot write keeps its choice.) Errors: HostError.
        """

    def back(self, machine: Machine, original_kernel: State) -> Target:
        """The same as prepare of the kernel that the host came with; the host need not answer.
        Errors: BootError, HostError.
        """

    def console(self, host: Host) -> list[str]:
        """The last lines of the host's console; none where it has none."""


def console_file(host: Host) -> list[str]:
    """The last lines of the file that a host's console is written to, where the campaign
    names one.
    """
    if not host.boot.console:
        return []
    try:
        with open(host.boot.console, errors="replace") as file:
            return [line.rstrip() for line in deque(file, CONSOLE_LINES)]
    except OSError as error:
        return [f"{host.boot.console}: {error.strerror}"]


def complaint(done: Result) -> str:
    """The last words of a program."""
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return " ".join(said[-3:]) or "it said nothing"
