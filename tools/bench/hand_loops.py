"""The loops that were written by hand (tools/bench/loops/), and the other end of a connection."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from netbench.engine.build_native import CFLAGS, compiler
from tools.bench import callgrind
from tools.bench.callgrind import Count

SOURCES = Path(__file__).with_name("loops")
PATIENCE = 60.0  # seconds; no job here comes near it
BLOCK = 1 << 20
THREAD = 2  # that moves the data, by callgrind's count; in the engine too


@dataclass(frozen=True)
class Job:
    """What a loop does: its name in loops/main.c, whether it sends a file or the first chunk of one
    over and over, what it sends or keeps, bytes in all and of a chunk.
    """

    loop: str
    from_memory: bool
    file: Path
    size: int
    chunk: int

    @property
    def sends(self) -> bool:
        return self.loop.startswith("send_")

    def sent(self) -> bytes:
        """What arrives when it sends as it should."""
        with self.file.open("rb") as file:
            if self.from_memory:
                return file.read(self.chunk) * (self.size // self.chunk)
            return file.read(self.size)


def build(folder: Path) -> Path:
    """Compile the loops as the static worker is. Errors: CalledProcessError."""
    target = folder / "loops"
    sources = map(str, sorted(SOURCES.glob("*.c")))
    subprocess.run([*compiler(), *CFLAGS, "-static", *sources, "-o", str(target)], check=True)
    return target


class Peer:
    """The other end of a loop: sends so many bytes, then keeps all that come."""

    def __init__(self, job: Job) -> None:
        self.port = 0
        self.taken = 0
        self._room = bytearray(job.size if job.sends else 1)
        self._sends = 0 if job.sends else job.size
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        block = memoryview(bytes(BLOCK))
        room = memoryview(self._room)
        with contextlib.suppress(OSError), self._listener, self._listener.accept()[0] as link:
            for start in range(0, self._sends, BLOCK):
                link.sendall(block[: self._sends - start])
            link.shutdown(socket.SHUT_WR)
            while got := link.recv_into(room[self.taken : self.taken + BLOCK]):
                self.taken += got

    def finish(self) -> bytearray:
        """Wait until the loop has closed its end. Returns what it sent."""
        self._thread.join(PATIENCE)
        return self._room[: self.taken]


def run(program: Path, job: Job, folder: Path | None = None) -> tuple[int, int]:
    """Run a job, with a folder under callgrind. Returns chunks, and calls beyond those that each
    chunk needs. Errors: ValueError when it failed, or when other bytes arrived than it had.
    """
    peer = Peer(job)
    size = job.size if job.sends else 0
    argv = (str(program), job.loop, *map(str, (peer.port, size, job.chunk, job.file)))
    done = subprocess.run(
        callgrind.command(folder, argv) if folder else argv,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        raise ValueError(
            f"the loop {job.loop} ended with status {done.returncode}: {done.stderr.strip()}"
        )
    arrived = peer.finish()
    chunks, moved, again = map(int, done.stdout.split())
    if moved != job.size:
        raise ValueError(f"the loop {job.loop} says that it moved {moved} of {job.size} bytes")
    if job.sends and arrived != job.sent():
        raise ValueError(f"the loop {job.loop} sent other bytes than it had: {len(arrived)} came")
    return chunks, again


def count(program: Path, job: Job, folder: Path) -> Count:
    """What a job costs under callgrind. Errors: as run(); OSError."""
    chunks, again = run(program, job, folder)
    return Count(callgrind.counted(folder, THREAD), chunks, again)
