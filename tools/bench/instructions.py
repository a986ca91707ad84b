"""User instructions a chunk: the engine's trunc, splice and mmap beside loops of the same system calls, written by hand (loops.c).

Counted by valgrind's callgrind, which runs both as they are: exact, and the same on a busy machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from netbench.conductor.exchange import exchange
from netbench.conductor.job import Options
from netbench.engine.binding import Edge
from netbench.engine.build_native import CFLAGS, compiler, worker_name
from netbench.engine.worker import Heart, Outcome, Worker
from netbench.hosts.local import LocalChannel
from tools.bench.table import Part, Row

ROOT = Path(__file__).resolve().parents[2]
WORKER = ROOT / "netbench" / "engine" / worker_name()
CHUNK = 64 * 1024
SHORT, LONG = 1024 * CHUNK, 3072 * CHUNK  # the two sizes of a job
REPEATS = 2
BUDGET = 1.05
PATIENCE = 60.0  # seconds; nothing here comes near it


@dataclass(frozen=True)
class Method:
    """What is compared: a method of the engine, the proof that counts its chunks and the one that counts what it did again."""

    name: str
    role: str
    other: str  # the method on the other side
    chunks: str
    short: str = ""


METHODS = (
    Method("trunc", "receive", "write", "recv_calls"),
    Method("splice", "send", "read", "splice_in_calls", "short_splices"),
    Method("mmap", "send", "read", "mmap_calls", "short_writes"),
)


@dataclass(frozen=True)
class Count:
    """Of one job: user instructions of the thread that moved the data, chunks, and calls that moved less than asked."""

    instructions: int
    chunks: int
    shorts: int


def callgrind(folder: Path, argv: Sequence[str]) -> tuple[str, ...]:
    """The command that counts a program's instructions by thread into files of a folder."""
    options = ("--tool=callgrind", "--cache-sim=no", "--separate-threads=yes", "--error-exitcode=9")
    return ("valgrind", "-q", *options, f"--callgrind-out-file={folder}/counted", f"--log-file={folder}/log", *argv)


def counted(folder: Path, thread: int) -> int:
    """Instructions of a thread, 1 being the first. Errors: OSError without a count of it, ValueError when the count is not one."""
    for line in (folder / f"counted-{thread:02}").read_text().splitlines():
        if line.startswith("totals:"):
            return int(line.split()[1])
    raise ValueError(f"valgrind counted no instructions of thread {thread}")


def proof(worker: Worker, outcome: Outcome, name: str) -> int:
    """A proof or counter at the end of a run, over all streams."""
    row = worker.catalogue.rows
    found = [v for v in outcome.result if row[v.row].name == name and v.edge == Edge.DRAINED]
    return sum(n or 0 for v in found for n in v.numbers)


@contextlib.contextmanager
def workers(watched: str, folder: Path) -> Iterator[dict[str, Worker]]:
    """A sender and a receiver; callgrind watches one. They have left when the context has."""
    heart = Heart()
    with contextlib.ExitStack() as stack:
        stack.callback(heart.stop)
        made: dict[str, Worker] = {}
        for role in ("send", "receive"):
            argv = callgrind(folder, [str(WORKER)]) if role == watched else (str(WORKER),)
            channel = LocalChannel(role, argv)
            made[role] = Worker(channel.start(channel.worker_argv()), role)
            stack.callback(made[role].close)
            heart.add(made[role])
            stack.callback(heart.remove, made[role])
        yield made


def by_engine(method: Method, source: Path, size: int, folder: Path) -> Count:
    """Send the source's first bytes through the engine, the side of the method under callgrind."""
    common: Options = {"token": os.urandom(16), "streams": 1, "address": "127.0.0.1", "bytes": size, "meters": ""}
    names = {"send": method.other, "receive": method.other} | {method.role: method.name}
    send: Options = {"role": "send", "method": names["send"], "chunk": CHUNK, "source": "file", "source_path": str(source)}
    receive: Options = {"role": "receive", "method": names["receive"], "receive_chunk": CHUNK}
    if names["send"] == "write":
        send |= {"source": "memory", "source_path": ""}
    with workers(method.role, folder) as pair:
        both = exchange(pair["send"], pair["receive"], common | send, common | receive)
        worker, outcome = pair[method.role], both.sender if method.role == "send" else both.receiver
        chunks = proof(worker, outcome, method.chunks)
        shorts = proof(worker, outcome, method.short) if method.short else 0
    return Count(counted(folder, 2), chunks, shorts)


class Peer:
    """The other end of a loop written by hand: sends so many bytes, or takes all that come and digests them."""

    def __init__(self, sends: int) -> None:
        self.digest = hashlib.blake2b()
        self.taken = 0
        self._sends = sends
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._door, self._door.accept()[0] as connection:
            block = bytes(CHUNK)
            for _ in range(self._sends // CHUNK):
                connection.sendall(block)
            connection.shutdown(socket.SHUT_WR)
            while got := connection.recv(1 << 20):
                self.taken += len(got)
                self.digest.update(got)

    def finish(self) -> None:
        """Wait until the loop has closed its end."""
        self._thread.join(PATIENCE)


def by_hand(loops: Path, method: Method, place: str, source: Path, size: int, folder: Path) -> Count:
    """Run the loop of loops.c in its main thread or one of its own. Errors: ValueError when it did not move the bytes."""
    receives = method.role == "receive"
    peer = Peer(size if receives else 0)
    argv = [str(loops), method.name, place, str(peer.port), str(size), str(CHUNK), *([] if receives else [str(source)])]
    done = subprocess.run(callgrind(folder, argv), capture_output=True, text=True, timeout=PATIENCE, check=False)
    peer.finish()
    if done.returncode:
        raise ValueError(f"the loop for {method.name} failed with status {done.returncode}: {done.stderr.strip()}")
    chunks, moved, shorts = map(int, done.stdout.split())
    if moved != size or not (receives or peer.digest.digest() == digest(source, size)):
        raise ValueError(f"the loop for {method.name} moved {moved} bytes, {peer.taken} arrived, of {size}")
    return Count(counted(folder, 2 if place == "thread" else 1), chunks, shorts)


def digest(source: Path, size: int) -> bytes:
    """Of the first bytes of a file."""
    with source.open("rb") as file:
        return hashlib.blake2b(file.read(size)).digest()
