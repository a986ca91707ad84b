"""A host to be booted: its programs, with root's rights where needed, its files and its state."""

from __future__ import annotations

from netbench.boot.state import FILES, State
from netbench.errors import BootError, HostError
from netbench.hosts.base import Channel, Result
from netbench.model import Host


class Machine:
    """A host that is reached by a channel. No shell sees a value."""

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
        """What a program prints. Errors: BootError with its last words; HostError."""
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
