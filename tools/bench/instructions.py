"""User instructions a chunk: the engine's trunc, splice and mmap beside loops of the same system
calls written by hand (loops.c).

Counted by valgrind's callgrind, which runs both programs as they are. Another load on the machine
changes next to nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from netbench.conductor.exchange import exchange
from netbench.conductor.job import Options
from netbench.engine.binding import Edge
from netbench.engine.build_native import CFLAGS, compiler, worker_name
from netbench.engine.heartbeat import Heartbeat
from netbench.engine.worker import Outcome, Worker
from netbench.hosts.local import LocalChannel
from tools.bench.table import Part, Row

ROOT = Path(__file__).resolve().parents[2]
WORKER = ROOT / "netbench" / "engine" / worker_name()
LOOPS = Path(__file__).with_name("loops.c")
CHUNK = 16 * 1024
SHORT, LONG = 2048 * CHUNK, 6144 * CHUNK  # bytes of the two jobs whose difference is taken
REPEATS = 2
BUDGET = 1.05
PATIENCE = 60.0  # seconds; no job here comes near it
PLACES = {"thread": "a loop in a thread", "main": "a loop in a program without threads"}
THREADS = {"thread": 2, "main": 1}  # by callgrind's count, which begins with 1
CALLGRIND = (
    "--tool=callgrind",
    "--cache-sim=no",
    "--separate-threads=yes",
    "--compress-strings=no",
    "--compress-pos=no",
)

TITLE = "User instructions a chunk"
HOW = (
    "Both programs are static, built by the same compiler with the same flags, and run under"
    " valgrind's callgrind, which counts every instruction outside the kernel, libc's included, of"
    " the one thread that moves the data over loopback. Each job is run with about"
    f" {SHORT // CHUNK} and with about {LONG // CHUNK} chunks of {CHUNK // 1024} KiB; the"
    " difference of the counts is divided by the difference of the chunks that were really moved"
    " (the engine's proofs, the loop's own count), so that what a job costs once falls out."
    f" Everything was done {REPEATS} times. The loops (`tools/bench/loops.c`) make the same calls,"
    " count chunks and bytes, and nothing else; what splice and mmap sent was compared byte for"
    " byte with what arrived."
)
NOTE = (
    "libc's recv, write and splice take a longer way, with two locked instructions a call, in any"
    " program that has threads. The budget is held against a loop that calls them in a thread, as"
    " one would write it in a program like the engine; the engine itself makes them by the"
    " processor's instruction, and that makes up for much of what its own code costs. The same loop"
    " in a program without threads, where libc takes the short way too, is shown beside it without"
    " a budget. Neither loop has a flag that stops it, a source that wraps, or counters that"
    " another thread reads."
)


@dataclass(frozen=True)
class Method:
    """A method of the engine, the one at the other end, and its proofs: of chunks, and of calls
    that moved less than asked.
    """

    name: str
    role: str
    other: str
    chunks: str
    short: str = ""


METHODS = (
    Method("trunc", "receive", "write", "recv_calls"),
    Method("splice", "send", "read", "splice_in_calls", "short_splices"),
    Method("mmap", "send", "read", "mmap_calls", "short_writes"),
)


@dataclass(frozen=True)
class Count:
    """Of one job: user instructions by function of the thread that moved the data, chunks, calls
    that moved less than asked.
    """

    functions: Counter[str]
    chunks: int
    shorts: int


@dataclass(frozen=True)
class Cost:
    """Instructions a chunk by function, from two jobs, and the short calls by which they differ."""

    functions: dict[str, float]
    shorts: int

    @property
    def total(self) -> float:
        return sum(self.functions.values())

    @staticmethod
    def of(less: Count, more: Count) -> Cost:
        chunks = more.chunks - less.chunks
        if chunks <= 0:
            raise ValueError(
                f"the longer job moved {more.chunks} chunks, the shorter {less.chunks}: nothing to"
                " divide by"
            )
        names = sorted(more.functions | less.functions)
        return Cost(
            {n: (more.functions[n] - less.functions[n]) / chunks for n in names},
            more.shorts - less.shorts,
        )


def callgrind(folder: Path, argv: Sequence[str]) -> tuple[str, ...]:
    """The command that counts a program's instructions, by thread, into files of a folder."""
    return (
        "valgrind",
        "-q",
        *CALLGRIND,
        f"--callgrind-out-file={folder}/counted",
        f"--log-file={folder}/log",
        *argv,
    )


def by_function(text: str) -> Counter[str]:
    """Own instructions of each function, from callgrind's output without compression. Errors:
    ValueError if they miss its total.

    Format: valgrind's manual, "Callgrind Format Specification": a line of cost after `calls=` is
    what was spent in the callee.
    """
    found: Counter[str] = Counter()
    function, inclusive, total = "", False, -1
    for line in text.splitlines():
        if line.startswith("fn="):
            function = line[3:].partition("'")[0]
        elif line.startswith("calls="):
            inclusive = True
        elif line[:1].isdigit():
            if not inclusive:
                found[function] += int(line.split()[1])
            inclusive = False
        elif line.startswith("totals:"):
            total = int(line.split()[1])
    if found.total() != total:
        raise ValueError(
            f"callgrind counted {total} instructions, its functions have {found.total()}"
        )
    return found


def counted(folder: Path, thread: int) -> Counter[str]:
    """What callgrind counted of one thread. Errors: OSError without such a thread, ValueError."""
    return by_function((folder / f"counted-{thread:02}").read_text())


def proof(worker: Worker, outcome: Outcome, name: str) -> int:
    """A proof of a method at the end of its run; 0 for no name."""
    rows = worker.catalogue.rows
    found = [v for v in outcome.result if rows[v.row].name == name and v.edge == Edge.DRAINED]
    return sum(number or 0 for vector in found for number in vector.numbers)


@contextlib.contextmanager
def workers(watched: str, folder: Path) -> Iterator[dict[str, Worker]]:
    """A worker to send and one to receive, one of them under callgrind. Both have exited when the
    context has.
    """
    with contextlib.ExitStack() as stack:
        heartbeat = Heartbeat()
        stack.callback(heartbeat.stop)
        made: dict[str, Worker] = {}
        for role in ("send", "receive"):
            mover = [str(WORKER), "mover"]
            argv = callgrind(folder, mover) if role == watched else mover
            made[role] = Worker(LocalChannel(role).start(argv), role)
            stack.callback(made[role].close)
            heartbeat.add(made[role])
            stack.callback(heartbeat.remove, made[role])
        yield made


def by_engine(method: Method, source: Path, size: int, folder: Path) -> Count:
    """A job of the engine, the worker with the method under callgrind. Errors: NetbenchError,
    OSError, ValueError.
    """
    common: Options = {
        "token": os.urandom(16),
        "streams": 1,
        "address": "127.0.0.1",
        "bytes": size,
        "meters": "",
    }
    send: Options = {
        "role": "send",
        "method": method.name,
        "chunk": CHUNK,
        "source": "file",
        "source_path": str(source),
    }
    receive: Options = {"role": "receive", "method": method.other, "receive_chunk": CHUNK}
    if method.role == "receive":
        send = {"role": "send", "method": method.other, "chunk": CHUNK, "source": "memory"}
        receive |= {"method": method.name}
    with workers(method.role, folder) as pair:
        both = exchange(pair["send"], pair["receive"], common | send, common | receive)
        outcome = both.sender if method.role == "send" else both.receiver
        chunks, shorts = (
            proof(pair[method.role], outcome, name) for name in (method.chunks, method.short)
        )
    return Count(counted(folder, 2), chunks, shorts)


class Peer:
    """The other end of a loop that was written by hand: sends so many bytes, then takes and digests
    all that come.
    """

    def __init__(self, sends: int) -> None:
        self.digest = hashlib.blake2b()
        self.taken = 0
        self._sends = sends
        self._door = socket.create_server(("127.0.0.1", 0))
        self._door.settimeout(PATIENCE)
        self.port: int = self._door.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        block = bytes(CHUNK)
        with contextlib.suppress(OSError), self._door, self._door.accept()[0] as connection:
            for _ in range(self._sends // CHUNK):
                connection.sendall(block)
            connection.shutdown(socket.SHUT_WR)
            while got := connection.recv(1 << 20):
                self.taken += len(got)
                self.digest.update(got)

    def finish(self) -> None:
        """Wait until the loop has closed its end."""
        self._thread.join(PATIENCE)


def digest(source: Path, size: int) -> bytes:
    """Of a file's first bytes."""
    with source.open("rb") as file:
        return hashlib.blake2b(file.read(size)).digest()


def by_hand(
    loops: Path, place: str, method: Method, source: Path, size: int, folder: Path
) -> Count:
    """The same job by a loop of loops.c. Errors: ValueError when it failed, or when other bytes
    arrived than it had; OSError.
    """
    receives = method.role == "receive"
    peer = Peer(size if receives else 0)
    argv = [
        str(loops),
        method.name,
        place,
        str(peer.port),
        str(size),
        str(CHUNK),
        *([] if receives else [str(source)]),
    ]
    done = subprocess.run(
        callgrind(folder, argv), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    if done.returncode:
        raise ValueError(
            f"the loop for {method.name} ended with status {done.returncode}: {done.stderr.strip()}"
        )
    peer.finish()
    chunks, moved, shorts = map(int, done.stdout.split())
    if moved != size or peer.taken != (0 if receives else size):
        raise ValueError(
            f"the loop for {method.name} says that it moved {moved} of {size} bytes; {peer.taken}"
            " arrived"
        )
    if not receives and peer.digest.digest() != digest(source, size):
        raise ValueError(f"the loop for {method.name} sent other bytes than the source has")
    return Count(counted(folder, THREADS[place]), chunks, shorts)


def build(folder: Path) -> Path:
    """Compile loops.c as the static worker is. Errors: CalledProcessError."""
    target = folder / "loops"
    subprocess.run([*compiler(), *CFLAGS, "-static", str(LOOPS), "-o", str(target)], check=True)
    return target


class Bench:
    """Where programs, source and counts are during a measurement."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loops = build(folder)
        self._source = folder / "source"
        self._source.write_bytes(os.urandom(LONG))

    def _count(self, who: str, method: Method, size: int) -> Count:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        if who == "engine":
            return by_engine(method, self._source, size, folder)
        return by_hand(self._loops, who, method, self._source, size, folder)

    def costs(self, who: str, method: Method) -> list[Cost]:
        """What a chunk costs the engine, or a loop in its place, as often as it is measured."""
        return [
            Cost.of(self._count(who, method, SHORT), self._count(who, method, LONG))
            for _ in range(REPEATS)
        ]


def mean(costs: Sequence[Cost]) -> float:
    return sum(cost.total for cost in costs) / len(costs)


def spread(costs: Sequence[Cost]) -> float:
    """The largest less the smallest of the repeats."""
    totals = [cost.total for cost in costs]
    return max(totals) - min(totals)


def row(method: Method, place: str, engine: Sequence[Cost], loop: Sequence[Cost]) -> Row:
    """One comparison; only the loop in a thread has a budget."""
    ratio, budgeted = mean(engine) / mean(loop), place == "thread"
    return Row(
        what=f"{method.name} ({method.role}) beside {PLACES[place]}",
        ours=f"{mean(engine):.1f} (repeats differ by {spread(engine):.1f})",
        peer=f"{mean(loop):.1f} (repeats differ by {spread(loop):.1f})",
        result=f"×{ratio:.2f} ({mean(engine) - mean(loop):+.1f} instructions)",
        budget=f"at most ×{BUDGET:.2f}" if budgeted else "",
        holds=ratio <= BUDGET if budgeted else None,
    )


def spent(who: str, cost: Cost) -> str:
    """Where the instructions of a chunk are, and whether there was more to do than a call of each
    kind.
    """
    parts = sorted(((n, name) for name, n in cost.functions.items() if n >= 0.5), reverse=True)
    text = f"{who}: " + ", ".join(f"{name} {n:.0f}" for n, name in parts)
    return text + (f" (and {cost.shorts} short calls made again)" if cost.shorts else "")


def measure() -> Part:
    """The three methods beside their loops. Errors: ValueError when a loop does not do what it
    says; NetbenchError; OSError.
    """
    if not shutil.which("valgrind"):
        return Part(
            TITLE,
            HOW,
            (
                Row(
                    "trunc, splice, mmap",
                    "",
                    "",
                    "not measured: valgrind is not installed",
                    "",
                    None,
                ),
            ),
        )
    rows, notes = [], [NOTE]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for method in METHODS:
            engine = bench.costs("engine", method)
            loops = {place: bench.costs(place, method) for place in PLACES}
            rows += [row(method, place, engine, loop) for place, loop in loops.items()]
            notes.append(
                f"{method.name}: {spent('the engine', engine[0])};"
                f" {spent(PLACES['thread'], loops['thread'][0])}."
            )
    return Part(TITLE, HOW, tuple(rows), tuple(notes))
