"""The protocol against workers that are old, lying, killed or stopped; and what they count."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbench.base.errors import EngineError, ProtocolError, WorkerLost
from netbench.engine import binding, frames, heartbeat
from netbench.engine.binding import FRAME_MAX, Code, Edge, Frame, Vector
from netbench.engine.connection import Connection
from netbench.engine.heartbeat import Heartbeat
from netbench.engine.worker import Worker
from netbench.hosts.local import LocalProcess
from tests.support.engine_pair import HELPER, MOVER, MS, PATIENCE, Pair, Side, scheduled_ns
from tests.support.local import loopback_mtu, out

HEADER = struct.Struct("=IHH")


class Script:
    """A stream that says what it was given, piece by piece, and then hangs up."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    def read(self, timeout: float) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""

    def write(self, data: bytes) -> None:
        """It hears nothing."""

    def finish(self, timeout: float) -> int | None:
        return 0

    def complaint(self) -> str:
        return "segmentation fault"


@pytest.fixture(scope="module")
def hello() -> bytes:
    """What a real worker says first."""
    process = LocalProcess(MOVER)
    buffer = bytearray()
    while (found := frames.split(buffer)) is None:
        buffer += process.read(PATIENCE)
    process.finish(PATIENCE)
    assert found[0] is Frame.HELLO
    return found[2]


@contextlib.contextmanager
def worker(argv: Sequence[str] = MOVER) -> Iterator[tuple[Worker, LocalProcess]]:
    process = LocalProcess(argv)
    opened = Worker(process, "here")
    try:
        yield opened, process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)
        opened.close()


# magic, version, byte_order, rows: u32; layout: u64, as in struct nb_hello
@pytest.mark.parametrize(
    ("at", "value", "expected"),
    [
        (0, b"SSH-", "byte order"),
        (4, b"\x63\0\0\0", "protocol 99"),
        (16, b"\xef\xbe\0\0\0\0\0\0", "layout 000000000000beef.*deploy the worker again"),
        (12, b"\xff\xff\0\0", "announced 65535 descriptors"),
    ],
)
def test_a_hello_that_is_not_ours_is_named(
    hello: bytes, at: int, value: bytes, expected: str
) -> None:
    spoiled = hello[:at] + value + hello[at + len(value) :]
    with pytest.raises(ProtocolError, match=expected):
        scripted(spoiled)


@pytest.mark.parametrize(
    ("piece", "error", "expected"),
    [
        (b"Welcome to Ubuntu 22.04 LTS\n", ProtocolError, "not netbench's protocol.*Welcome"),
        (frames.frame(Frame.READY, 0), ProtocolError, "sent READY first, expected HELLO"),
        (frames.frame(Frame.HELLO, 0, b"short"), ProtocolError, "5 bytes long"),
        (HEADER.pack(FRAME_MAX + 1, Frame.HELLO, 0), ProtocolError, "not netbench's protocol"),
        (b"\x08\0", WorkerLost, "closed the connection; its output: segmentation fault"),
    ],
)
def test_what_is_no_worker_is_told_from_one(
    piece: bytes, error: type[Exception], expected: str
) -> None:
    with pytest.raises(error, match=expected):
        Worker(Script(piece), "here")


def scripted(hello: bytes, *pieces: bytes) -> Worker:
    return Worker(Script(frames.frame(Frame.HELLO, 0, hello), *pieces), "here")


JOB = {"role": "observe", "duration": 1}


def test_answers_to_earlier_requests_are_passed_over(hello: bytes) -> None:
    late = frames.frame(Frame.READY, 60000, b"xxx") + frames.frame(Frame.HEARTBEAT, 0)
    assert scripted(hello, late, frames.frame(Frame.READY, 1)).prepare(JOB) == ()


def test_a_worker_describes_no_others_and_answers_briefly(hello: bytes) -> None:
    with pytest.raises(ProtocolError, match="descriptors are not this controller's"):
        scripted(hello.replace(b"sendfile", b"sendfilo", 1))
    long = frames.frame(Frame.OP_DONE, 1, vector(0, 0, 0, "x" * (3 << 20)))
    with pytest.raises(ProtocolError, match="too long"):
        scripted(hello, long).operate("file", "/etc/motd")


@given(
    st.lists(
        st.tuples(st.sampled_from(Frame), st.integers(0, 65535), st.binary(max_size=50)), max_size=6
    ),
    st.data(),
)
def test_frames_survive_any_cut(sent: list[tuple[Frame, int, bytes]], data: st.DataObject) -> None:
    whole = b"".join(frames.frame(*frame) for frame in sent)
    cut = data.draw(st.integers(0, len(whole)))
    buffer, found = bytearray(), []
    for piece in (whole[:cut], whole[cut:]):
        buffer += piece
        while (frame := frames.split(buffer)) is not None:
            found.append(frame)
    assert found == sent
    assert not buffer


@given(st.binary(max_size=300))
def test_decoding_anything_ends_in_vectors_or_a_protocol_error(data: bytes) -> None:
    for decode in (
        lambda: list(frames.decode_vectors(data)),
        lambda: frames.decode_hello(data),
        lambda: frames.decode_edge(data),
    ):
        with contextlib.suppress(ProtocolError):
            decode()
    with contextlib.suppress(ProtocolError):
        assert isinstance(frames.decode_error(data, "here"), EngineError)
    for edge in (b"\0" * 4, b"\x09" + b"\0" * 7, data[:7]):
        with pytest.raises(ProtocolError, match="has no valid edge"):
            frames.decode_edge(edge)
    buffer, taken = bytearray(data), 0
    with contextlib.suppress(ProtocolError):
        while (found := frames.split(buffer)) is not None:
            taken += HEADER.size + len(found[2])
    assert bytes(buffer) == data[taken:], "what was not taken is still there"


def vector(row: int, edge: int, ns: int, body: Sequence[int] | str) -> bytes:
    text, numbers = (body.encode(), ()) if isinstance(body, str) else (b"", body)
    words = (row, edge, isinstance(body, str), len(numbers), len(text), ns, *numbers)
    return struct.pack(f"=IHHIIQ{len(numbers)}Q", *words) + text + bytes(-len(text) % 8)


BODIES = st.one_of(st.lists(st.integers(0, 2**64 - 1), max_size=5), st.text(max_size=20))
VECTORS = st.lists(
    st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 3), st.integers(0, 2**64 - 1), BODIES),
    max_size=4,
)


@given(VECTORS, st.data())
def test_vectors_are_read_as_the_header_lays_them_out(
    vectors: list[tuple[int, int, int, list[int] | str]], data: st.DataObject
) -> None:
    parts = [vector(*v) for v in vectors]
    payload = b"".join(parts)
    found = list(frames.decode_vectors(payload))
    assert [(v.row, v.edge, v.ns) for v in found] == [v[:3] for v in vectors]
    for got, (_, _, _, body) in zip(found, vectors, strict=True):
        text, numbers = (body, ()) if isinstance(body, str) else (None, body)
        known = tuple(None if n == binding.MISSING else n for n in numbers)
        assert (got.text, got.numbers) == (text, known)
    if payload:  # cut anywhere but between two vectors, it is refused
        cut = data.draw(st.integers(1, len(payload)))
        ends = {sum(map(len, parts[:i])) for i in range(len(parts) + 1)}
        if len(payload) - cut not in ends:
            with pytest.raises(ProtocolError):
                list(frames.decode_vectors(payload[:-cut]))


# Workers that die, hang or are left alone


def test_a_killed_worker_is_lost_at_once(pair: Pair) -> None:
    pair.prepare("write", "read", duration=3600 * 1000 * MS)
    pair.start(bounded=False)
    pair.sender.await_edge(Edge.OPEN, PATIENCE)
    begun = time.monotonic()
    os.kill(pair.sender.hello.pid, signal.SIGKILL)
    with pytest.raises(WorkerLost, match="sender: the worker is gone"):
        pair.sender.await_edge(Edge.CLOSE, PATIENCE)
    assert time.monotonic() - begun < binding.SILENCE_SECONDS, "its end is seen, not guessed"
    with pytest.raises(EngineError, match="the other side") as caught:
        pair.receiver.await_edge(Edge.CLOSE, PATIENCE)
    assert caught.value.code == Code.PEER
    with pytest.raises(WorkerLost):
        pair.sender.operate("file", "/proc/self/comm")


def test_a_stopped_worker_is_lost_after_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "SILENCE_SECONDS", 1)
    with worker() as (one, process):
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(WorkerLost, match="silent"):
            one.prepare(JOB)


def test_heartbeats_go_to_those_who_hear_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "HEARTBEAT_SECONDS", 2)  # no pause of the loop below is as long
    monkeypatch.setattr(heartbeat, "LOOK_SECONDS", 0.05)
    beats = {"idle": 0, "busy": 0}
    send = Connection.send_heartbeat

    def counted(connection: Connection) -> None:
        beats["busy" if connection is busy.connection else "idle"] += 1
        send(connection)

    monkeypatch.setattr(Connection, "send_heartbeat", counted)
    with worker() as (idle, _), worker() as (busy, _):
        beating = Heartbeat()
        try:
            for one in (idle, busy):
                beating.add(one)
            deadline = time.monotonic() + PATIENCE
            while not beats["idle"] and time.monotonic() < deadline:
                busy.operate("file", "/proc/self/comm")
        finally:
            beating.stop()
    assert beats["idle"]
    assert not beats["busy"]


@pytest.mark.slow
def test_silence_is_as_long_as_the_contract_says() -> None:
    """A running worker beats and is not lost; a stopped one is, no sooner than told."""
    beating = Heartbeat()
    with worker() as (one, process):
        beating.add(one)
        one.prepare({"role": "observe", "duration": (binding.SILENCE_SECONDS + 2) * 10**9})
        one.go()
        # longer than the silence; beats, one way and the other, kept both
        one.await_edge(Edge.CLOSE, PATIENCE)
        os.kill(process.pid, signal.SIGSTOP)
        begun = time.monotonic()
        with pytest.raises(WorkerLost, match="silent"):
            one.operate("file", "/proc/self/comm")
        # Beats that were under way when it was stopped are no sign of life later.
        assert time.monotonic() - begun >= binding.SILENCE_SECONDS
    beating.stop()


# of the network namespace that a process of the tests has for itself
TTL = Path("/proc/sys/net/ipv4/ip_default_ttl")


@pytest.mark.slow
@pytest.mark.netns
def test_a_worker_that_hears_nothing_undoes_and_exits() -> None:
    """Its descriptors stay open: a controller that hangs is as good as gone."""
    before = TTL.read_text()
    with worker(HELPER) as (one, process):
        one.operate("file", str(TTL), "40", hold=True)
        assert TTL.read_text() == "40\n"
        while True:  # beats, until it hangs up
            with contextlib.suppress(TimeoutError):
                if not process.read(PATIENCE):
                    break
        assert TTL.read_text() == before


def test_a_tools_window_is_opened_and_closed_by_marks() -> None:
    """A server that burns CPU at once: the window holds its time between the marks."""
    with worker() as (one, _):
        script = "echo server is up; while :; do :; done"
        argv = f"sh\0-c\0{script}"
        one.prepare({"role": "tool", "argv": argv, "marks": 1, "meters": "rusage"})
        one.go()
        assert one.next_output(PATIENCE) == "server is up\n"
        one.mark()
        one.await_edge(Edge.OPEN, PATIENCE)
        until = time.monotonic() + 0.1
        while time.monotonic() < until:
            one.send_heartbeat()
        one.mark()
        one.await_edge(Edge.CLOSE, PATIENCE)
        one.stop()
        side = Side.of(one.catalogue, one.result(PATIENCE).result)
    opened, closed = (side.vectors["rusage", "cpu_ns", e].ns for e in (Edge.OPEN, Edge.CLOSE))
    assert 0 < side.moved("rusage", "cpu_ns") <= closed - opened
    assert ("", "tool_status", Edge.DRAINED) not in side.vectors, "it says how it takes a signal"
    assert side.vectors["", "tool_output", Edge.DRAINED].text == "server is up\n"


# What workers count, against what the kernel says elsewhere


def sockets(port: int) -> dict[str, dict[str, int]]:
    """The counters of ss(8) for both ends of the connection to `port`: by sender and receiver."""
    found = {}
    for side, end in (("sender", "dport"), ("receiver", "sport")):
        command = ["ss", "-tinHO", "state", "established", f"( {end} = :{port} )"]
        text = out(*command)
        found[side] = {name: int(n) for name, n in re.findall(r"(\w+):(\d+)", text)}
    return found


@pytest.fixture
def ethernet_segments() -> Iterator[None]:
    """Segments of an Ethernet's size on the loopback: one acknowledgement stands for tens."""
    with loopback_mtu(1500):
        yield


@pytest.mark.usefixtures("ethernet_segments")
def test_tcp_counters_are_those_of_ss(pair: Pair) -> None:
    seen = {}
    pair.between = lambda p: seen.update(sockets(p.port))
    sent, received = pair.run("write", "read", bytes=2**20, warmup=20 * MS)
    for name, side in (("sender", sent), ("receiver", received)):
        ss = seen[name]
        assert ss["segs_out"] > 10
        # Nothing but a late acknowledgement or window update is between the two looks.
        for counter, theirs in (("segments_out", "segs_out"), ("segments_in", "segs_in")):
            assert abs(side.total("tcp", counter, Edge.OPEN) - ss[theirs]) <= 3
        assert side.total("tcp", "cwnd", Edge.OPEN) == ss["cwnd"]
    assert sent.total("tcp", "segments_out", Edge.OPEN) > 2 * sent.total(
        "tcp", "segments_in", Edge.OPEN
    ), "swapped ones would be seen"


def test_cpu_time_is_that_of_schedstat(pair: Pair) -> None:
    pid, tick = pair.sender.hello.pid, 10**9 // pair.sender.hello.clock_ticks
    pair.prepare("write", "read", duration=200 * MS)
    begun, first = time.monotonic_ns(), scheduled_ns(pid)
    pair.start(bounded=False)
    pair.sender.await_edge(Edge.CLOSE, PATIENCE)
    # the flow still runs: its thread is still counted
    last, ended = scheduled_ns(pid), time.monotonic_ns()
    pair.receiver.await_edge(Edge.CLOSE, PATIENCE)
    pair.sender.stop()
    pair.receiver.stop()
    side = Side.of(pair.sender.catalogue, pair.sender.result(PATIENCE).result)
    pair.receiver.result(PATIENCE)
    threads, window = 2, side.ns(Edge.CLOSE) - side.ns(Edge.OPEN)
    lag = threads * tick  # schedstat is brought up to date at ticks and switches
    used = side.moved("rusage", "cpu_ns")
    outside = threads * (ended - begun - window)
    assert last - first - outside - lag <= used <= last - first + lag
    assert used > 0


def proc_stat() -> list[list[int]]:
    """The numbers of each cpu line of /proc/stat, all CPUs first."""
    lines = (line.split() for line in Path("/proc/stat").read_text().splitlines())
    return [[int(n) for n in fields[1:9]] for fields in lines if fields[0].startswith("cpu")]


STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def test_procstat_is_what_proc_stat_says(pair: Pair) -> None:
    """Each number at each edge lies between what was read before the run and after it."""
    before = proc_stat()
    side, _ = pair.run("write", "read", duration=100 * MS)
    after = proc_stat()
    assert pair.sender.hello.cpus == len(before) - 1
    for edge in (Edge.OPEN, Edge.CLOSE):
        for column, state in enumerate(STATES):
            names = (state, f"cpu_{state}")
            found = [n for name in names for n in side.numbers("procstat", name, edge)]
            low, high = [cpu[column] for cpu in before], [cpu[column] for cpu in after]
            assert len(found) == len(low)
            if state not in ("idle", "iowait"):  # these two may go back (proc(5))
                assert all(lo <= f <= hi for lo, f, hi in zip(low, found, high, strict=True)), (
                    f"{state}: {low} {found} {high}"
                )
    busy = sum(side.moved("procstat", state) for state in STATES if state not in ("idle", "iowait"))
    assert busy > 0


# Samples that are handed over while the window is open


@pytest.mark.parametrize("report", [50 * MS, 0], ids=["asked", "not asked"])
def test_samples_are_handed_over_while_the_window_is_open_where_that_is_asked(
    pair: Pair, report: int
) -> None:
    seen: list[Sequence[Vector]] = []
    pair.sender.sampled = seen.append
    pair.prepare("write", "read", duration=200 * MS, sample=10 * MS, report=report)
    pair.start(bounded=False)
    pair.sender.await_edge(Edge.CLOSE, PATIENCE)
    early = len(seen)
    pair.receiver.await_edge(Edge.CLOSE, PATIENCE)
    for worker in (pair.sender, pair.receiver):
        worker.stop()
    sent, _ = pair.sender.result(PATIENCE), pair.receiver.result(PATIENCE)
    assert bool(early) == bool(report)
    assert sum(map(len, seen)) == len(sent.samples) > 0, "each once, and in the result as ever"
