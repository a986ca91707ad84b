"""User instructions a chunk: the engine's methods beside loops of the same calls (loops/)."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from netbench.engine.binding import Edge
from netbench.run.job import Options
from netbench.run.transfer import exchange
from tests.support.engine_pair import ADDRESS, WORKER, Side, open_pair
from tools.bench import callgrind, hand_loops
from tools.bench.callgrind import Cost, Count
from tools.bench.table import Part, Row

CHUNK = 16 * 1024
SHORT, LONG = 2048 * CHUNK, 6144 * CHUNK  # bytes of the two jobs whose difference is taken
NS_A_BYTE = 4  # of a job that is bounded by time
REPEATS = 2
AFTER_THE_RUN = ("resident_bytes",)  # what a flow's thread does once its stream has ended
BUDGET = 1.05

TITLE = "User instructions a chunk"
HOW = (
    "Both programs are static, built by the same compiler with the same flags, and run under"
    " valgrind's callgrind, which counts every instruction outside the kernel, libc's included, of"
    " the one thread that moves the data over loopback. Each job is run with about"
    f" {SHORT // CHUNK} and with about {LONG // CHUNK} chunks of {CHUNK // 1024} KiB; the"
    " difference of the counts is divided by the difference of the chunks that were really moved"
    " (the engine's counters, the loop's own count), so that what a job costs once falls out."
    f" Everything was done {REPEATS} times. The loops (`tools/bench/loops/`) make the same calls,"
    " wait for what has not left and look at what has completed as the methods do, count chunks"
    " and bytes, and nothing else; what they sent was compared byte for byte with what arrived."
)
NOTE = (
    "Most of libc's functions for these calls (write, read, splice, send, ...) are cancellation"
    " points: they take a longer way, with two locked instructions a call, in any program that has"
    " threads. The loops call them in a thread, as one would write it in a program like the engine;"
    " the engine itself makes them by the processor's instruction, and that makes up for much of"
    " what its own code costs. sendfile, mmap, ioctl and syscall (io_uring) are none, and there is"
    " nothing to make up with. No loop has a flag that stops it, a source that wraps, a histogram,"
    " or counters that another thread reads."
)


@dataclass(frozen=True)
class Method:
    """A method of the engine, and its counters: of chunks, and
    of calls beyond those that each chunk needs. `timed`: its thread waits in a call that valgrind
    lets no other thread pass, so no mark could reach the worker of a job that is bounded by bytes.
    Where the budget is missed, `why`.
    """

    name: str
    role: str
    again: tuple[str, ...] = ()
    source: str = "memory"
    chunks: str = "steps"
    sink: bool = False
    timed: bool = False
    why: str = ""

    @property
    def title(self) -> str:
        return f"{self.name} ({self.role})"

    @property
    def loop_name(self) -> str:
        return f"{self.role}_{self.name}"


NOTHING_TO_MAKE_UP_WITH = (
    "its call is no cancellation point, so that the loop by hand is a few instructions around it;"
    " the engine's are those of the loop of all methods (a flag that stops it, a limit, a call"
    " through the method's table, bytes and steps for other threads), a source of several files"
    " that wraps, and a histogram"
)
IN_CHAINS = (
    "io_uring's call is no cancellation point and is made once for a chain; a step keeps what it"
    " sends, since a chain that is cut short is sent again, and goes through the loop of all"
    " methods for each of its requests"
)
BY_COMPLETIONS = (
    "io_uring's call is no cancellation point and brings several completions; each of them goes"
    " through the loop of all methods"
)

METHODS = (
    Method("write", "send", ("short_writes",)),
    Method("readwrite", "send", ("short_writes",), source="file"),
    Method("sendfile", "send", ("short_sendfiles",), source="file", why=NOTHING_TO_MAKE_UP_WITH),
    Method("splice", "send", ("short_splices",), source="file"),
    Method("mmap", "send", ("short_writes",), source="file"),
    Method("zerocopy", "send", ("short_sends", "refused_sends", "poll_calls")),
    Method("uring", "send", ("short_sends",), why=IN_CHAINS),
    Method("read", "receive"),
    Method("trunc", "receive"),
    Method("mmap", "receive", chunks="mmap_calls", sink=True),
    Method("splice", "receive", ("short_splices",)),
    Method("uring", "receive", ("io_uring_enter_calls",), timed=True, why=BY_COMPLETIONS),
)


def by_engine(method: Method, source: Path, size: int, folder: Path) -> Count:
    """A job of the engine, the worker with the method under callgrind. Errors: NetbenchError,
    OSError, ValueError.
    """
    sends = method.role == "send"
    common: Options = {"token": os.urandom(16), "streams": 1, "address": ADDRESS, "meters": ""}
    common |= {"duration": size * NS_A_BYTE} if method.timed else {"bytes": size}
    send: Options = {"role": "send", "chunk": CHUNK, "source": method.source}
    if method.source == "file":
        send |= {"source_path": str(source)}
    receive: Options = {"role": "receive", "receive_chunk": CHUNK}
    if method.sink:
        receive |= {"sink": "file", "sink_path": str(folder / "sink")}
    send |= {"method": method.name} if sends else {"method": "write"}
    receive |= {"method": "read"} if sends else {"method": method.name}
    watched = callgrind.command(folder, WORKER)
    with open_pair(*((watched, WORKER) if sends else (WORKER, watched))) as pair:
        sent, received = exchange(pair.sender, pair.receiver, common | send, common | receive)
        outcome = sent if sends else received
        side = Side.of(pair.sender.catalogue, outcome.result)
    counted = Counter[str]()
    for owner, name, edge in side.vectors:
        counted[name] += side.total(owner, name) if edge == Edge.DRAINED else 0
    chunks, again = counted[method.chunks], sum(counted[name] for name in method.again)
    return Count(callgrind.counted(folder, hand_loops.THREAD, AFTER_THE_RUN), chunks, again)


def costs(who: str, method: Method, loops: Path, source: Path) -> list[Cost]:
    """What a chunk costs the engine, or the loop in its place, as often as it is measured."""

    def counted(size: int) -> Count:
        with tempfile.TemporaryDirectory(dir=source.parent) as name:
            folder = Path(name)
            if who == "engine":
                return by_engine(method, source, size, folder)
            file = source if method.role == "send" else folder / "sink"
            from_memory = method.source == "memory"
            job = hand_loops.Job(method.loop_name, from_memory, file, size, CHUNK)
            return hand_loops.count(loops, job, folder)

    return [Cost.of(counted(SHORT), counted(LONG)) for _ in range(REPEATS)]


def mean(costs: Sequence[Cost]) -> float:
    return sum(cost.total for cost in costs) / len(costs)


def spread(costs: Sequence[Cost]) -> float:
    """The largest less the smallest of the repeats."""
    totals = [cost.total for cost in costs]
    return max(totals) - min(totals)


def row(method: Method, engine: Sequence[Cost], loop: Sequence[Cost]) -> Row:
    """One comparison."""
    ratio = mean(engine) / mean(loop)
    return Row(
        what=method.title,
        ours=f"{mean(engine):.1f} (repeats differ by {spread(engine):.1f})",
        peer=f"{mean(loop):.1f} (repeats differ by {spread(loop):.1f})",
        result=f"×{ratio:.2f} ({mean(engine) - mean(loop):+.1f} instructions)",
        budget=f"at most ×{BUDGET:.2f}",
        holds=ratio <= BUDGET,
    )


def spent(who: str, cost: Cost) -> str:
    """Where the instructions of a chunk are, and whether calls were made again."""
    parts = sorted(((n, name) for name, n in cost.functions.items() if n >= 0.5), reverse=True)
    text = f"{who}: " + ", ".join(f"{name} {n:.0f}" for n, name in parts)
    return text + (f" (and {cost.again:.3f} further calls)" if cost.again >= 0.0005 else "")


def note(method: Method, engine: Cost, loop: Cost, missed: bool) -> str:
    """Where the instructions of a method are; of one that misses its budget, why."""
    text = f"{method.title}: {spent('the engine', engine)}; {spent('the loop', loop)}."
    return text + (f" Missed: {method.why}." if missed and method.why else "")


def measure(methods: Sequence[Method] = METHODS) -> Part:
    """The methods beside their loops. Errors: ValueError when a loop does not do what it says;
    NetbenchError; OSError.
    """
    if not shutil.which("valgrind"):
        why = "not measured: valgrind is not installed"
        return Part(TITLE, HOW, tuple(Row(m.title, "", "", why, "", None) for m in methods))
    rows, notes = [], [NOTE]
    with tempfile.TemporaryDirectory() as folder:
        loops, source = hand_loops.build(Path(folder)), Path(folder) / "source"
        source.write_bytes(os.urandom(LONG))
        for method in methods:
            engine, loop = (costs(who, method, loops, source) for who in ("engine", "loop"))
            rows.append(row(method, engine, loop))
            notes.append(note(method, engine[0], loop[0], rows[-1].holds is False))
    return Part(TITLE, HOW, tuple(rows), tuple(notes))
