"""A host to be booted: its programs, with root's rights where needed, its files and its state."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from netbench.base.errors import BootError, EngineError, HostError, WorkerLost
from netbench.hosts.host_channel import RemoteChannel, Result
from netbench.kernels.boot.state import FILES, State
from netbench.model import Host

SLACK_SECONDS = 10.0  # in which a program that took too long is ended and told of


class Helper(Protocol):
    """Who runs programs as root (engine.worker.Worker). Errors: EngineError; those of losing it."""

    def operate(
        self, op: str, target: Iterable[str], *, seconds: float
    ) -> tuple[str, str | None]: ...


class Machine:
    """A host that is reached by a channel, and by a helper where root's rights are needed. No shell
    sees a value.
    """

    def __init__(
        self,
        host: Host,
        channel: RemoteChannel,
        helper: Callable[[], Helper],
        note_modules: Callable[[str, bool, bool], None] = lambda place, mounted, shown: None,
    ) -> None:
        """`note_modules`: writes down that modules are about to be shown at a place, by a mount or
        a link, or are not any more.
        """
        self.host = host
        self.channel = channel
        self._helper = helper
        self._note_modules = note_modules

    @property
    def name(self) -> str:
        return self.host.name

    def attempt(self, *argv: str, seconds: float = 30.0, root: bool = False) -> Result:
        """Run a program to its end. Errors: HostError when that cannot be done."""
        return self._as_root(argv, seconds) if root else self.channel.run(argv, seconds)

    def _as_root(self, argv: tuple[str, ...], seconds: float) -> Result:
        """By the helper, which the host may forbid it. A program that failed has its whole output
        in both streams.
        """
        try:
            text, _ = self._helper().operate("boot", argv, seconds=seconds + SLACK_SECONDS)
        except (EngineError, WorkerLost, TimeoutError) as error:
            raise HostError(str(error)) from error
        status, _, output = text.partition("\n")
        if not re.fullmatch(r"-?[0-9]{1,9}", status):
            raise HostError(f"{self.name}: {argv[0]}: its exit status is {status[:40]!r}")
        return Result(argv, int(status), output, output if int(status) else "")

    def run(self, *argv: str, seconds: float = 30.0, root: bool = False) -> str:
        """What a program prints. Errors: BootError with its last words; HostError."""
        done = self.attempt(*argv, seconds=seconds, root=root)
        if done.status:
            raise BootError(
                f"{self.name}: {argv[0]} failed (exit {done.status}): {complaint(done)}"
            )
        return done.stdout

    def has(self, program: str) -> bool:
        """Whether a program is there for root."""
        look = ("sh", "-c", 'PATH=$PATH:/usr/sbin:/sbin; command -v "$0"', program)
        try:
            return self.attempt(*look, root=True).status == 0
        except HostError:
            return False

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder, as root sees it."""
        return self.attempt("test", "-e", path, root=True).status == 0

    @contextmanager
    def showing_modules(self, folder: str, place: str) -> Iterator[None]:
        """A folder of modules at a place below /lib/modules: a mount over what is there, or a link.
        Errors: BootError, HostError.
        """
        mounted = self.exists(place)
        self._note_modules(place, mounted, True)
        try:
            if mounted:
                self.run("mount", "-o", "bind", folder, place, root=True)
            else:
                self.run("mkdir", "-p", "/lib/modules", root=True)
                self.run("ln", "-s", folder, place, root=True)
            yield
        finally:
            self.hide_modules(place, mounted)

    def hide_modules(self, place: str, mounted: bool) -> bool:
        """Take away what `showing_modules` made; whether it was there. Errors: as that."""
        look = ("grep", "-F", "-q", f" {place} ", "/proc/self/mountinfo")
        there = self.attempt(*(look if mounted else ("test", "-L", place)), root=True).status == 0
        if there:
            self.run("umount" if mounted else "rm", place, root=True)
        self._note_modules(place, mounted, False)
        return there

    def listing(self, folder: str) -> list[str]:
        """The names in a folder; none where there is no such folder."""
        done = self.attempt("ls", "-1", "--", folder)
        return done.stdout.split("\n")[:-1] if done.status == 0 else []

    def state(self, seconds: float = 30.0) -> State:
        """What the host runs now. Errors: HostError."""
        done = self.channel.run(("cat", *FILES), seconds)
        lines = done.stdout.split("\n")
        if done.status or len(lines) < len(FILES):
            raise HostError(
                f"{self.name}: cannot read the running kernel's release: {complaint(done)}"
            )
        return State(*(line.strip() for line in lines[: len(FILES)]))


def complaint(done: Result) -> str:
    """The last words of a program."""
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return " ".join(lines[-3:]) or "it printed nothing"
