"""How fast methods move data, and what CPU that takes, beside loops written by hand (loops/)."""

from __future__ import annotations

import math
import os
import random
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from netbench.engine.binding import Edge
from netbench.run.job import Options
from netbench.stats.intervals import Interval, mean_interval
from tests.support.engine_pair import open_pair
from tools.bench import hand_loops
from tools.bench.table import Part, Row

PAIRS = int(os.environ.get("NETBENCH_BENCH_PAIRS", "60"))
MOST, WIDE, SHARED_WIDE = 3 * PAIRS, 0.03, 0.01
"""More pairs, until the interval of the rate is that narrow; SHARED: of requests on one CPU."""
WARMUP_MS, WINDOW_MS, MANY_WINDOW_MS = 30, 150, 1000
SHARED_WARMUP_MS, SHARED_WINDOW_MS = 300, 200
FILE_BYTES, ENDLESS = 4 << 20, 1 << 60
METHODS = (
    ("write", "read"),
    ("sendfile", "read"),
    ("write", "trunc"),
    ("zerocopy", "read"),
    ("uring", "uring"),
    ("splice", "splice"),
    ("mmap", "mmap"),
)
FROM_FILE = {"sendfile", "splice", "mmap"}
CANNOT = {("mmap", 1 << 10), ("splice", 1 << 20)}
"""A mapping begins at a page; a pipe of more than 1 MiB needs CAP_SYS_RESOURCE."""
RATE, LOW, CPU, CPU_APART = 0.98, 0.96, 1.02, 1.05
LOWS = {"request": 0.98, "requests": 0.95, "connect": 0.98}
HOW = (
    f"{PAIRS} to {MOST} pairs a row, until the interval of the rate is ±{WIDE:.0%}, in each the"
    " engine and the loop in random order: static programs of the same compiler and flags, started"
    " anew, senders on CPU 0 and receivers on CPU 1, loopback, cubic,"
    f" {WARMUP_MS} ms of warm-up and a window of {WINDOW_MS} ms. The rate is the receiver's: the"
    " engine's own count, and tcpi_bytes_received of the loop's connections, less what they have"
    " not read. CPU is that of both processes, of user and system, for a byte. Ratios are means of"
    " paired logarithms with Student's t. A pair with a window in which nothing moved is counted,"
    " and made again."
)
OF_BULK = (
    "Files are in a tmpfs; a stream sends a part of its own. A loop has a thread a stream, the"
    f" engine one a CPU for all, of uring one each: their window is {MANY_WINDOW_MS} ms, as a turn"
    " of 64 threads takes 200."
)


@dataclass(frozen=True)
class Question:
    """A pair of methods, with so many bytes a call over so many streams."""

    send: str
    receive: str
    chunk: int
    streams: int
    apart: bool = True  # both ends on a CPU of their own

    @property
    def asks(self) -> bool:
        """Whether it is about requests, a chunk each way."""
        return self.send in ("request", "requests", "connect")

    @property
    def cpus(self) -> tuple[int, int]:
        return 0, int(self.apart)

    @property
    def shares_cpu(self) -> bool:
        """Whether both ends of requests share a CPU."""
        return self.asks and not self.apart

    @property
    def times_ms(self) -> tuple[int, int]:
        """Its warm-up, and its window."""
        many = self.streams > 1 and not self.asks
        bulk = WARMUP_MS, MANY_WINDOW_MS if many else WINDOW_MS
        return (SHARED_WARMUP_MS, SHARED_WINDOW_MS) if self.shares_cpu else bulk

    @property
    def title(self) -> str:
        if self.asks:
            each = ", one each" if self.send == "connect" else f": {self.streams}"
            where = "apart" if self.apart else "on one CPU"
            return f"requests of {self.chunk} B, connections{each}, {where}"
        return f"{self.send} -> {self.receive}, {self.chunk >> 10}K, streams: {self.streams}"


def questions() -> Iterator[Question]:
    for send, receive in METHODS:
        for chunk in (1 << 10, 16 << 10, 128 << 10, 1 << 20):
            if (send, chunk) not in CANNOT:
                yield Question(send, receive, chunk, 1)
    for send, receive in (("write", "read"), ("sendfile", "read"), ("uring", "uring")):
        for streams in (16, 64):
            yield Question(send, receive, 128 << 10, streams)


@dataclass(frozen=True)
class Moved:
    """Bytes a second, and seconds of CPU a byte; of a window in which none moved 0 and 0."""

    rate: float
    cpu: float

    @classmethod
    def of(cls, size: float, ns: float, used_us: float) -> Moved:
        return cls(size * 1e9 / ns, used_us / size if size else 0.0)


def by_engine(asked: Question, folder: Path) -> Moved:
    """A run of two fresh workers, as loops are fresh. Errors: NetbenchError."""
    send: Options = {"cpu": asked.cpus[0], "chunk": asked.chunk}
    if asked.send in FROM_FILE:
        send |= {"source": "file", "source_path": str(folder / "source")}
    receive: Options = {"cpu": asked.cpus[1], "receive_chunk": asked.chunk}
    if asked.receive == "mmap":
        receive |= {"sink": "file", "sink_path": str(folder / "sink")}
    common: dict[str, Any] = {
        "streams": asked.streams,
        "congestion": "cubic",
        "warmup": asked.times_ms[0] * 10**6,
    }
    method = asked.send.removesuffix("s")
    if asked.asks:
        common |= {"requests": asked.chunk, "responses": asked.chunk}
    if method == "request":
        common |= {"wait": "block" if asked.streams == 1 else "epoll"}
    names = (method, method) if asked.asks else (asked.send, asked.receive)
    with open_pair() as pair:
        ends = pair.run(*names, send, receive, duration=asked.times_ms[1] * 10**6, **common)
    _, received = ends
    meter, row = (method, "transactions") if asked.asks else ("flow", "bytes")
    size = received.moved(meter, row) * (asked.chunk if asked.asks else 1)
    used = (end.moved("rusage", row) for end in ends for row in ("user_us", "system_us"))
    return Moved.of(size, received.ns(Edge.CLOSE) - received.ns(Edge.OPEN), sum(used))


def by_hand(program: Path, asked: Question, folder: Path) -> Moved:
    """A run of two loops. Errors: ValueError where one fails."""
    times = (str(asked.chunk), "{}", *map(str, (asked.streams, *asked.times_ms)))

    def start(cpu: int, loop: str, port: str, size: int, file: str) -> subprocess.Popen[str]:
        words = [each.format(folder / file) for each in times]
        argv = ["taskset", "-c", str(cpu), str(program), loop, port, str(size), *words]
        pipe = subprocess.PIPE
        process = stack.enter_context(
            subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
        )
        stack.callback(process.kill)  # which else waits for one that has failed
        return process

    def line(of: subprocess.Popen[str]) -> str:
        if not of.stdout or not (text := of.stdout.readline()):
            raise ValueError(f"the loops of {asked.title} failed")
        return text.strip()

    with ExitStack() as stack:
        receiver = start(asked.cpus[1], f"receive_{asked.receive}", "0", 0, "sink")
        sender = start(asked.cpus[0], f"send_{asked.send}", line(receiver), ENDLESS, "source")
        told = [line(each) for each in (sender, receiver)]
    (_, _, sent_us), (size, ns, received_us) = (map(int, each.split()) for each in told)
    return Moved.of(size, ns, sent_us + received_us)


def _ratio(logs: Sequence[float]) -> tuple[Interval, str]:
    found = mean_interval(logs, 0.95)
    return found, "{:.3f} ({:.3f} to {:.3f})".format(
        *(math.exp(each) for each in (found.mean, found.low, found.high))
    )


def _width(pairs: Sequence[tuple[Moved, Moved]]) -> float:
    """Half of the interval of the logarithm of the rate."""
    found = mean_interval([math.log(ours.rate / loop.rate) for ours, loop in pairs], 0.95)
    return found.high - found.mean


def row(asked: Question, pairs: Sequence[tuple[Moved, Moved]]) -> Row:
    """One comparison, of the engine's runs with the loop's beside them."""
    rate, said = _ratio([math.log(ours.rate / loop.rate) for ours, loop in pairs])
    cpu, said_cpu = _ratio([math.log(ours.cpu / loop.cpu) for ours, loop in pairs])
    middle = sorted(loop.rate for _, loop in pairs)[len(pairs) // 2]
    low = LOWS.get(asked.send, LOW)
    held = rate.mean >= math.log(RATE) and rate.low >= math.log(low)
    budget, most = f"at least {max(RATE, low):g} ({low:g}), ", CPU
    if asked.asks and asked.apart:  # their rates differ by 15% from run to run
        held, budget, most = True, "", CPU_APART
    return Row(
        asked.title,
        f"{middle * 8e-9 * math.exp(rate.mean):.3g} Gb/s",
        f"{middle * 8e-9:.3g} Gb/s",
        f"{said}, CPU {said_cpu}",
        f"{budget}CPU at most {most:g}",
        held and cpu.mean <= math.log(most),
    )


def measure() -> Part:
    """A row each. Errors: ValueError, NetbenchError."""
    return Part("Methods beside loops by hand", f"{HOW} {OF_BULK}", tuple(rows(questions())))


def rows(questions: Iterable[Question]) -> Iterator[Row]:
    """A row each. Errors: ValueError, NetbenchError."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        program = hand_loops.build(folder)

        def measured(asked: Question, ours: bool) -> Moved:
            (folder / "sink").unlink(missing_ok=True)
            return by_engine(asked, folder) if ours else by_hand(program, asked, folder)

        for asked in questions:
            size = max(FILE_BYTES, 2 * asked.chunk * asked.streams)  # two chunks a stream at least
            (folder / "source").write_bytes(os.urandom(size))
            pairs: list[tuple[Moved, Moved]] = []
            stalled, most = {True: 0, False: 0}, SHARED_WIDE if asked.shares_cpu else WIDE
            while len(pairs) < PAIRS or (len(pairs) < MOST and _width(pairs) > most):
                order = random.sample((True, False), 2)
                both = {ours: measured(asked, ours) for ours in order}
                if all(each.rate for each in both.values()):
                    pairs.append((both[True], both[False]))
                for ours, each in both.items():
                    stalled[ours] += not each.rate
                if sum(stalled.values()) > PAIRS:
                    raise ValueError(f"{asked.title}: nothing moved in over {PAIRS} windows")
            note = "; windows in which nothing moved: {} and {}".format(*stalled.values())
            answer = row(asked, pairs)
            yield replace(answer, result=answer.result + note * any(stalled.values()))
