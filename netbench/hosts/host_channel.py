"""What a host can do, however it is reached: run a command, copy a file, start a program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol


class Result(NamedTuple):
    """A finished command: its argv, exit status and output."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str


class Process(Protocol):
    """A started program, with its standard input and output."""

    def read(self, timeout: float) -> bytes:
        """What is available in `timeout` seconds; b"" at the end. Errors: TimeoutError."""

    def write(self, data: bytes) -> None:
        """Write all of it. Errors: OSError when the program is gone."""

    def finish(self, timeout: float) -> int | None:
        """Close its input and wait; its exit status, or None when it had to be killed."""

    def complaint(self) -> str:
        """The last lines that it wrote on standard error."""


class Channel(Protocol):
    """The connection to one host."""

    name: str

    def start_mover(self, run_as: str = "") -> Process:
        """One that moves data: as the login's user, or whom root becomes. Errors: HostError."""

    def start_helper(self) -> Process:
        """A worker that changes the host: as root, or by `sudo -n`. Errors: HostError."""

    def close(self) -> None:
        """Disconnect from the host."""


class RemoteChannel(Channel, Protocol):
    """That to a host that may be booted: another machine."""

    def run(self, argv: Sequence[str], timeout: float = 30.0) -> Result:
        """Run a command to its end. Errors: HostError, also after `timeout` seconds."""

    def put(self, source: Path, target: str, mode: int = 0o644) -> None:
        """Copy a file to the host. Errors: HostError."""
