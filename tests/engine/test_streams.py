"""Streams of a side: a thread each, or threads that serve several: pinned ones, and `threads`."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from netbench.base.errors import EngineError
from netbench.engine.binding import Edge, lib
from netbench.engine.own_engine import local
from netbench.settings.setting import fields
from tests.support.engine_pair import (
    ADDRESS,
    MS,
    PATIENCE,
    WORKER,
    Pair,
    Side,
    data_methods,
    open_pair,
    scheduled_ns,
)
from tests.support.local import out

STREAMS = 4
SENDS = [name for name in data_methods(local(), "send") if not local().send[name].has("alone")]
CPUS = tuple(sorted(os.sched_getaffinity(0)))
CPU = CPUS[0]
PINS = pytest.mark.parametrize("pin", [{}, {"cpu": CPU}], ids=["unpinned", "pinned"])


def threads(pid: int) -> list[set[int]]:
    """The CPUs of each thread of a process, without those that end: PF_EXITING, linux/sched.h."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if not int((task / "stat").read_text().rpartition(")")[2].split()[6]) & 0x4:
                found.append(os.sched_getaffinity(int(task.name)))
    return found


@PINS
def test_pinned_streams_share_a_thread_and_all_move(pair: Pair, pin: dict[str, int]) -> None:
    window = {"duration": 100 * MS, "warmup": 10 * MS, "bytes": 0}
    pair.prepare("write", "read", {"chunk": 100}, streams=STREAMS, **window, **pin)
    flows = [len(threads(worker.hello.pid)) - 1 for worker in (pair.sender, pair.receiver)]
    assert flows == ([1, 1] if pin else [STREAMS, STREAMS])
    if pin:
        assert threads(pair.sender.hello.pid).count({CPU}) == 1
    pair.start(bounded=False)
    sent, received = pair.finish(bounded=False)
    opened, closed = (received.numbers("flow", "bytes", edge) for edge in (0, 1))
    assert all(b > a for a, b in zip(opened, closed, strict=True)), "every stream moved within it"
    assert sent.numbers("flow", "bytes") == received.numbers("flow", "bytes"), "and all arrived"


@pytest.mark.skipif(len(CPUS) < 2, reason="this machine lets us use one CPU alone")
@pytest.mark.parametrize(
    ("send", "receive", "unasked"), [("write", "read", [1, 1]), ("uring", "uring", [3, 2])]
)
def test_threads_take_cpus_in_turn(pair: Pair, send: str, receive: str, unasked: list[int]) -> None:
    """A thread a CPU, which has its share of the streams, or one a stream."""
    cpus = CPUS[1::-1]
    for asked, expected in ({}, unasked), ({"threads": 5}, [3, 2]), ({"threads": 1}, [1, 0]):
        window = {"duration": 0, "warmup": 10 * MS, "bytes": 40 * 2**20}
        pair.prepare(send, receive, streams=5, cpu=cpus, **window, **asked)
        for worker in (pair.sender, pair.receiver):
            found = threads(worker.hello.pid)
            assert [found.count({cpu}) for cpu in cpus] == expected
        pair.start(bounded=True)
        sent, received = pair.finish(bounded=True)
        assert all(sent.numbers("flow", "bytes"))
        assert sent.numbers("flow", "bytes") == received.numbers("flow", "bytes")


def methods_beside(side: str, other: str) -> list[tuple[str, str]]:
    """Each method of a side with one of the other."""
    methods = SENDS if side == "send" else data_methods(local(), side)
    return [(name, other) if side == "send" else (other, name) for name in methods]


@pytest.mark.parametrize(
    ("send", "receive"), methods_beside("send", "read") + methods_beside("receive", "write")
)
def test_two_threads_serve_streams_of_every_method(pair: Pair, send: str, receive: str) -> None:
    """Chunks larger than the send buffer: each is sent in several turns, and arrives whole."""
    size = 12 * 2**20 + 12345
    common = {"streams": 7, "threads": 2, "bytes": size, "duration": 0, "warmup": 20 * MS}
    to_sender = {"chunk": 700_001, "send_buffer": 2**17, "sample": 0}
    pair.prepare(send, receive, to_sender, {"sample": 0}, verify=1, **common)
    assert [len(threads(one.hello.pid)) for one in (pair.sender, pair.receiver)] == [3, 3]
    pair.start(bounded=True)
    sent, received = pair.finish(bounded=True)
    if pair.receiver.catalogue.receive[receive].has("delivers"):
        assert sent.numbers("", "digest") == received.numbers("", "digest")
    assert received.moved("flow", "bytes") == size
    assert sent.numbers("flow", "bytes") == received.numbers("flow", "bytes")


def test_two_threads_hold_the_rate_of_their_streams(pair: Pair) -> None:
    """In one of a few windows at least: what others keep from a CPU arrives later, in the next."""
    rate = 400_000_000
    to_sender = {"rate": rate, "chunk": 16384}
    window = {"duration": 300 * MS, "warmup": 60 * MS}
    found = []
    for _ in range(8):
        _, received = pair.run("write", "read", to_sender, streams=8, threads=2, **window)
        seconds = (received.ns(Edge.CLOSE) - received.ns(Edge.OPEN)) / 1e9
        opened, closed = (received.numbers("flow", "bytes", edge) for edge in (0, 1))
        found.append([(b - a) * 8 / seconds for a, b in zip(opened, closed, strict=True)])
        each = found[-1] == pytest.approx([rate / 8] * 8, rel=0.2)
        if each and sum(found[-1]) == pytest.approx(rate, rel=0.1):
            return
    pytest.fail(f"{rate} asked, each stream had {found}")


def test_a_sender_that_stood_still_does_not_catch_up() -> None:
    """Stopped for half of its warm-up and in its window, alone and with others on one thread."""
    rate, still = 160_000_000, 0.3
    window = {"duration": 600 * MS, "warmup": 600 * MS, "bytes": 0}
    with contextlib.ExitStack() as stack:
        ways = [(send, streams) for send in SENDS for streams in (1, 4)]
        pairs = {way: stack.enter_context(open_pair()) for way in ways}
        for (send, streams), pair in pairs.items():
            grouped = {"streams": 4, "threads": 1} if streams > 1 else {}
            pair.prepare(send, "read", {"rate": rate, "chunk": 8192}, **window, **grouped)
        for pair in pairs.values():
            pair.start(bounded=False)
        time.sleep(0.2)
        for opened in (False, True):
            for number, seconds in (
                (signal.SIGSTOP, still + 0.2 * (not opened)),
                (signal.SIGCONT, 0),
            ):
                for pair in pairs.values():
                    os.kill(pair.sender.hello.pid, number)
                time.sleep(seconds)
            for pair in () if opened else pairs.values():
                pair.sender.await_edge(Edge.OPEN, PATIENCE)
        for way, pair in pairs.items():
            sent, _ = pair.finish(bounded=False)
            seconds = (sent.ns(Edge.CLOSE) - sent.ns(Edge.OPEN)) / 1e9
            assert sent.moved("flow", "bytes") * 8 / rate < seconds - still + 0.1, way


@pytest.mark.parametrize(
    ("method", "streams", "unit"),
    [("write read flow bytes", 1024, 65536), ("request request request transactions", 5000, 1)],
)
def test_each_of_many_streams_moves(pair: Pair, method: str, streams: int, unit: int) -> None:
    send, receive, *counter = method.split()
    total = 2 * streams * unit
    pair.prepare(send, receive, streams=streams, threads=2, bytes=total, duration=0, warmup=0)
    assert [len(threads(one.hello.pid)) for one in (pair.sender, pair.receiver)] == [3, 3]
    pair.start(bounded=True)
    _, received = pair.finish(bounded=True)
    assert received.numbers(*counter) == [2 * unit] * streams


def test_a_worker_has_as_many_files_open_as_it_may() -> None:
    """It raises its own limit, not that of the tools that it starts."""
    limited = ("prlimit", "--nofile=40:2000", *WORKER)
    with open_pair(limited) as pair:
        _, received = pair.run("write", "read", streams=64, threads=2, bytes=64 * 65536, sample=0)
        assert received.numbers("flow", "bytes") == [65536] * 64
        tool = pair.sender
        tool.prepare({"role": "tool", "argv": "sh\0-c\0ulimit -n"})
        tool.go()
        side = Side.of(tool.catalogue, tool.result(PATIENCE).result)
        assert side.vectors["", "tool_output", Edge.DRAINED].text == "40\n"


def test_threads_that_cannot_be_are_unsupported(pair: Pair) -> None:
    for send, receive, streams, why in (
        ("write", "read", 1, "a stream has one thread at most"),
        ("null", "null", 4, "null needs a thread for each stream"),
    ):
        with pytest.raises(EngineError, match=why) as error:
            pair.prepare(send, receive, duration=MS, bytes=0, streams=streams, threads=2)
        assert error.value.code == lib.NB_ERR_UNSUPPORTED
        for worker in (pair.sender, pair.receiver):
            worker.abort()


@PINS
@pytest.mark.parametrize("send", ["write", "zerocopy"])
def test_one_broken_stream_ends_the_run(pair: Pair, pin: dict[str, int], send: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ports = {"port_low": port, "port_high": port}
    pair.prepare(send, "read", {}, ports, streams=STREAMS, duration=20_000 * MS, bytes=0, **pin)
    pair.start(bounded=False)
    one = out("ss", "-Htn", "dport", "=", str(port)).split()[3].rsplit(":", 1)[1]
    out("ss", "-K", "sport", "=", one, "dport", "=", str(port))
    with pytest.raises(EngineError, match="other side"):
        pair.sender.result(20)
    for worker in (pair.sender, pair.receiver):
        worker.abort()
    _, received = pair.run(send, "read", bytes=1_000_000, streams=STREAMS, **pin)
    assert received.moved("flow", "bytes") == 1_000_000


def accept_streams(listener: socket.socket, streams: int) -> list[socket.socket]:
    """Play the receiver: take the connections of a sender, whatever its token is, in order."""
    found: dict[int, socket.socket] = {}
    while len(found) < streams:
        connection, _ = listener.accept()
        greeting = connection.recv(24, socket.MSG_WAITALL)
        found[int.from_bytes(greeting[16:20], "big")] = connection
        connection.sendall(b"k")
    return [found[i] for i in range(streams)]


def take(stream: socket.socket, wanted: int) -> None:
    while wanted > 0:
        got = len(stream.recv(min(wanted, 2**20)))
        assert got, f"the stream ended with {wanted} bytes still to come"
        wanted -= got


def comes_to_rest(pid: int) -> bool:
    """Whether a process at some time runs for less than a tenth of an interval."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        began, used = time.monotonic_ns(), scheduled_ns(pid)
        time.sleep(0.1)
        if scheduled_ns(pid) - used < (time.monotonic_ns() - began) / 10:
            return True
    return False


@contextlib.contextmanager
def sending_to(pair: Pair, streams: int, **options: Any) -> Iterator[list[socket.socket]]:
    """A sender that is prepared, with this process as its receiver."""
    with contextlib.ExitStack() as stack, ThreadPoolExecutor() as pool:
        listener = stack.enter_context(socket.create_server((ADDRESS, 0)))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**19)
        listener.settimeout(20)
        coming = pool.submit(accept_streams, listener, streams)
        ends = {"address": ADDRESS, "peer_port": listener.getsockname()[1], "token": bytes(16)}
        job = {"role": "send", "streams": streams, "send_buffer": 2**20, "chunk": 250_000}
        pair.sender.prepare({**job, **ends, **options})
        connections = [stack.enter_context(connection) for connection in coming.result()]
        for connection in connections:
            connection.settimeout(20)
        yield connections


@pytest.mark.parametrize(
    "shared",
    [{"cpu": CPU}, {"threads": 1, "chunk": 1_000_000, "send_buffer": 2**17}],
    ids=["pinned", "a chunk beyond its buffers"],
)
@pytest.mark.parametrize("send", SENDS)
def test_a_stream_that_is_stuck_holds_up_no_other(
    pair: Pair, send: str, shared: dict[str, int]
) -> None:
    """epoll(7) reports its error queue again and again, though there is no room to send."""
    wanted = 32 * 2**20  # far more than all buffers hold
    with sending_to(pair, 2, method=send, duration=60_000 * MS, **shared) as streams:
        pair.sender.go()
        take(streams[0], wanted)
        assert comes_to_rest(pair.sender.hello.pid), "no stream is read now, and the sender is busy"
        take(streams[0], wanted)
        pair.sender.abort()


def sending_streams(port: int, token: bytes, count: int) -> Iterator[socket.socket]:
    """Play the sender: the connections to a receiver, in order of their streams."""
    for stream in range(count):
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**17)
        made.settimeout(20)
        made.connect((ADDRESS, port))
        made.sendall(token + stream.to_bytes(4, "big") + bytes(4))
        assert made.recv(1) == b"k"
        yield made


@pytest.mark.parametrize("receive", data_methods(local(), "receive"))
def test_a_stream_that_stalls_after_whole_chunks_holds_up_no_other(
    pair: Pair, receive: str
) -> None:
    """Its last step moved a chunk, so it has another. Proofs count all that came in the end."""
    chunk, wanted, token = 2**14, 8 * 2**20, os.urandom(16)
    options = {"streams": 2, "threads": 1, "receive_chunk": chunk, "receive_buffer": 2**18}
    options |= {"duration": 10 * MS, "sample": 0, "address": ADDRESS, "meters": "rusage"}
    ready = pair.receiver.prepare({"role": "receive", "method": receive, "token": token, **options})
    port = Side.of(pair.receiver.catalogue, ready).total("", "port", 0)
    stalled, other = sending_streams(port, token, 2)
    with stalled, other:
        stalled.sendall(bytes(2 * chunk))
        pair.receiver.go()
        other.sendall(bytes(wanted))
        stalled.sendall(bytes(chunk + 1))
        pair.receiver.await_edge(Edge.CLOSE, PATIENCE)
        pair.receiver.stop()
    received = Side.of(pair.receiver.catalogue, pair.receiver.result(PATIENCE).result)
    assert received.numbers("flow", "bytes") == [3 * chunk + 1, wanted]
    if receive == "zerocopy":
        counted = [received.total(receive, name) for name in ("mapped_bytes", "copied_bytes")]
        assert sum(counted) == 3 * chunk + 1 + wanted


@pytest.mark.parametrize("send", SENDS)
def test_a_run_that_cannot_drain_can_be_given_up(pair: Pair, send: str) -> None:
    with sending_to(pair, 1, method=send, duration=10 * MS):
        pair.sender.go()
        pair.sender.await_edge(Edge.CLOSE, 20)
        pair.sender.stop()
        assert pair.sender.last_word(0.2) is None, "what it has sent is not read, and it has ended"
        pair.sender.abort()
    assert pair.run(send, "read", bytes=1_000_000)[1].moved("flow", "bytes") == 1_000_000


@pytest.fixture
def file_on_disk() -> Iterator[Path]:
    """In the tree of the project: /tmp may be memory, which has no cold state."""
    path = Path(__file__).parent / f"cold.{os.getpid()}.tmp"
    with path.open("wb") as file:
        file.write(os.urandom(FILE_SIZE))
        file.flush()
        os.fsync(file.fileno())  # what is dirty does not leave the page cache
    with contextlib.ExitStack() as stack:
        stack.callback(path.unlink)
        kind = out("stat", "--file-system", "--format=%T", str(path)).strip()
        if kind in ("tmpfs", "overlayfs", "fuseblk", "v9fs"):
            pytest.skip(f"the project is on {kind}, not on a disk of this kernel")
        yield path


FILE_SIZE = 32 * 2**20 + 12345


@PINS
@pytest.mark.parametrize("send", [m for m in SENDS if local().send[m].has("from_file")])
def test_streams_share_out_a_cold_file(
    pair: Pair, pin: dict[str, int], send: str, file_on_disk: Path
) -> None:
    """Together they send each byte once, all of it from the disk, as proc(5) and a counter say."""
    options = {"source": "file", "source_path": str(file_on_disk), "cache": "cold"}
    storage = Path(f"/proc/{pair.sender.hello.pid}/io")
    before = int(fields(storage.read_text())["read_bytes"])
    bounds = {"bytes": FILE_SIZE, "duration": 0, "warmup": 0, "verify": 1}
    pair.prepare(send, "read", options, streams=STREAMS, **bounds, **pin)
    assert pair.ready[0].total("", "resident", 0) == 0
    assert pair.ready[0].total("", "source_size", 0) == FILE_SIZE
    pair.start(bounded=True)
    sent, received = pair.finish(bounded=True)
    reread = int(fields(storage.read_text())["read_bytes"]) - before
    assert sent.numbers("", "digest") == received.numbers("", "digest")
    assert len(set(sent.numbers("", "digest"))) == STREAMS, "no two sent the same"
    assert sum(sent.numbers("flow", "bytes")) == FILE_SIZE
    assert FILE_SIZE * 0.98 <= sent.moved("disk", "read_bytes") <= reread <= FILE_SIZE * 1.02


# The shared loop, with the method that moves nothing: what every other method's numbers include

BUDGET_NS = 20  # a step; named by the specification
ATTEMPTS = 8


def step_ns(side: Side) -> float:
    """CPU time of the worker per step in the window: the flow's share is at most this."""
    steps = side.moved("flow", "steps")
    if steps < 1000:
        return float("inf")  # it had no CPU
    return min(side.moved("rusage", "cpu_ns"), side.ns(Edge.CLOSE) - side.ns(Edge.OPEN)) / steps


def test_a_step_of_the_loop_costs_next_to_nothing(pair: Pair) -> None:
    best = [float("inf"), float("inf")]
    for _ in range(ATTEMPTS):  # other work on this machine can only make it look slower
        sides = pair.run("null", "null", duration=50 * MS, warmup=20 * MS)
        best = [min(b, step_ns(side)) for b, side in zip(best, sides, strict=True)]
        if max(best) <= BUDGET_NS:
            break
    for side in sides:
        assert side.numbers("flow", "bytes", Edge.CLOSE) == []
        assert side.moved("tcp", "segments_out") == 0
    assert max(best) <= BUDGET_NS, f"sender {best[0]:.1f} ns, receiver {best[1]:.1f} ns a step"
