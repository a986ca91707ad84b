"""Each method meets each fault: an error says what happened, and the worker serves the next run."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from netbench.base.errors import EngineError, WorkerLost
from netbench.engine.binding import Edge
from netbench.engine.own_engine import local
from netbench.engine.worker import Worker
from tests.support.engine_pair import (
    ADDRESS,
    MS,
    PATIENCE,
    WORKER,
    Options,
    Pair,
    covering,
    data_methods,
    open_pair,
    shared,
)
from tests.support.running import process_state, wait_for, waits_for_pipe

TOKEN = b"a token of a run"
ACCEPTED = b"k"
HANDSHAKE = struct.Struct("!16sII")  # token, stream, 0
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close(2) sends RST
SENDS = data_methods(local(), "send")
RECEIVES = data_methods(local(), "receive")
TO_FILE = [name for name in RECEIVES if local().receive[name].has("to_file")]
FROM_FILE = [name for name in SENDS if local().send[name].has("from_file")]
COMMON = {"token": TOKEN, "address": ADDRESS, "meters": "rusage", "duration": 600_000 * MS}
ONE = pytest.mark.parametrize("one", [False, True], ids=["alone", "shared"])  # thread for two


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with open_pair() as opened:
        yield opened


def open_files(worker: Worker) -> int:
    return len(list(Path(f"/proc/{worker.hello.pid}/fd").iterdir()))


def deliver(pair: Pair, send: str, receive: str, number: int, **options: Any) -> None:
    """So many bytes arrive, and they are those that were sent."""
    keeps = local().receive[receive].has("delivers")
    sent, received = pair.run(send, receive, bytes=number, verify=int(keeps), **options)
    assert received.moved("flow", "bytes") == number
    if keeps:
        assert sent.numbers("", "digest") == received.numbers("", "digest")


def test_a_method_checks_the_bounds_of_its_options(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = pair.sender
    option = worker.catalogue.send["splice"].options[0]
    job = {"role": "send", "method": "splice", "streams": 1, "chunk": 10, "duration": 10}
    values = {**worker.values(job), option.id: 1}
    monkeypatch.setattr(worker, "values", lambda *_: values)
    with pytest.raises(EngineError, match="must be between"):
        worker.prepare(job)


@contextlib.contextmanager
def served_on(pair: Pair, worker: Worker, send: str, receive: str) -> Iterator[None]:
    """A fault, after which the worker has nothing more open, and runs the method."""
    pair.run("write", "read", bytes=1)
    worker.await_idle()
    before = open_files(worker)
    try:
        yield
    finally:  # a test that fails leaves no run to the next one
        worker.abort()
        worker.await_idle()
    assert open_files(worker) == before
    deliver(pair, send, receive, 200_003)


# Peers


def handed_over(number: int, listener: socket.socket, into: list[socket.socket]) -> None:
    """Accept connections as a receiver does."""
    for _ in range(number):
        connection, _ = listener.accept()
        token, _, _ = HANDSHAKE.unpack(connection.recv(HANDSHAKE.size, socket.MSG_WAITALL))
        assert token == TOKEN
        connection.sendall(ACCEPTED)
        into.append(connection)


def receivers_by_hand(
    worker: Worker, send: str, options: Options, window: int = 65536
) -> list[socket.socket]:
    """Prepare a sender; the far ends of its streams, which hold little that is not read."""
    number, taken = int(options.get("streams", 1)), list[socket.socket]()
    with socket.create_server((ADDRESS, 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        accepting = threading.Thread(target=handed_over, args=(number, listener, taken))
        accepting.start()
        port = listener.getsockname()[1]
        job = {"streams": 1, "chunk": 65536, "peer_port": port, "role": "send", "method": send}
        worker.prepare({**COMMON, **job, **options})
        accepting.join()
    return taken


def senders_by_hand(worker: Worker, receive: str, options: Options) -> list[socket.socket]:
    """Prepare a receiver, and connect to it as its sender does."""
    number = int(options.get("streams", 1))
    job = {"streams": 1, "receive_chunk": 65536, "role": "receive", "method": receive}
    ready = worker.prepare({**COMMON, **job, **options})
    (port,) = next(v.numbers for v in ready if worker.catalogue.rows[v.row].name == "port")
    made = []
    for stream in range(number):
        made.append(socket.create_connection((ADDRESS, port)))
        made[-1].sendall(HANDSHAKE.pack(TOKEN, stream, 0))
        assert made[-1].recv(1) == ACCEPTED
    return made


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    connection.close()


def end(connections: list[socket.socket]) -> None:
    for connection in connections:
        connection.close()


def fails(worker: Worker) -> str:
    """The error that ends the present run."""
    with pytest.raises(EngineError) as caught:
        worker.result(PATIENCE)
    return str(caught.value)


def two_streams(send: str = "write") -> Options:
    return {"streams": 2, **shared(local(), send)}


@ONE
@pytest.mark.parametrize("send", SENDS)
def test_a_receiver_that_resets_the_connection(pair: Pair, send: str, one: bool) -> None:
    worker = pair.sender
    with served_on(pair, worker, send, "read"):
        peers = receivers_by_hand(worker, send, two_streams(send) if one else {})
        worker.go()
        assert peers[-1].recv(500_000, socket.MSG_WAITALL)
        reset(peers.pop())
        assert "look at the other side's error" in fails(worker)
        end(peers)


# What a sender waits for while the connection is reset: its options, and what comes before.
WAITS: dict[str, Options] = {
    "acknowledgements of the warm-up": {
        "bytes": 10**9,
        "duration": 0,
        "warmup": 100 * MS,
        "rate": 100_000_000,
        "send_buffer": 8 << 20,
    },
    "the end": {"bytes": 10**6, "duration": 0, "send_buffer": 8 << 20},
}


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("send", SENDS)
def test_a_receiver_that_resets_what_it_has_not_read(pair: Pair, send: str, wait: str) -> None:
    """Nothing is sent any more by then, so no call on the connection fails by itself."""
    worker = pair.sender
    with served_on(pair, worker, send, "read"):
        (peer,) = receivers_by_hand(worker, send, WAITS[wait], 4096)
        worker.go()
        if not WAITS[wait].get("warmup"):
            worker.await_edge(Edge.WARM, PATIENCE)
            worker.mark()
        else:  # on a slow machine a warm-up may be over before anything was sent
            wait_for(lambda: len(peer.recv(2000, socket.MSG_PEEK)) > 1000)
        time.sleep(0.15)  # nothing outside shows that it waits; a reset that is early fails too
        reset(peer)
        assert "look at the other side's error" in fails(worker)


@ONE
@pytest.mark.parametrize("receive", RECEIVES)
def test_a_sender_that_resets_the_connection(pair: Pair, receive: str, one: bool) -> None:
    worker = pair.receiver
    with served_on(pair, worker, "write", receive):
        peers = senders_by_hand(worker, receive, two_streams() if one else {})
        worker.go()
        for peer in peers:
            peer.sendall(bytes(300_000))
        reset(peers.pop())
        assert "look at the " in fails(worker)
        end(peers)


@pytest.mark.parametrize("receive", RECEIVES)
def test_a_sender_that_closes_too_early(pair: Pair, receive: str) -> None:
    worker = pair.receiver
    with served_on(pair, worker, "write", receive):
        (peer,) = senders_by_hand(worker, receive, {"bytes": 10**9, "duration": 0})
        worker.go()
        worker.mark()
        worker.await_edge(Edge.OPEN, PATIENCE)
        peer.sendall(bytes(300_000))
        peer.close()
        assert (
            "closed after 300000 bytes, before the end of the measured window; look at the"
            in fails(worker)
        )


# Files


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("send", FROM_FILE)
def test_a_source_that_is_cut_short(tmp_path: Path, pair: Pair, send: str, streams: int) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(4 << 20))
    job: Options = {"source": "file", "source_path": str(source)}
    with served_on(pair, pair.sender, send, "read"):
        pair.prepare(send, "read", job, duration=600_000 * MS, streams=streams)
        pair.start(bounded=False)
        pair.sender.await_edge(Edge.OPEN, PATIENCE)
        os.truncate(source, 5000)
        said = fails(pair.sender)
        pair.receiver.abort()
    assert str(source) in said
    assert "keep the source as it is during a run" in said


@pytest.mark.parametrize("receive", TO_FILE)
def test_a_sink_that_is_cut_short_over_and_over(tmp_path: Path, pair: Pair, receive: str) -> None:
    """What writes goes on, at the sink's old end or its new one; what mapped it says so."""
    sink, done = tmp_path / "sink", threading.Event()

    def cut() -> None:
        while not done.is_set():
            os.truncate(sink, 0)

    job = {"sink": "file", "sink_path": str(sink)}
    maps = receive == "mmap"
    with served_on(pair, pair.receiver, "write", receive):
        pair.prepare("write", receive, to_receiver=job, duration=600_000 * MS if maps else 50 * MS)
        cutter = threading.Thread(target=cut)
        cutter.start()
        pair.start(bounded=False)
        try:
            said = fails(pair.receiver) if maps else str(pair.finish(bounded=False))
        finally:
            done.set()
            cutter.join()
        pair.sender.abort()
    assert (f"{sink}: Bad address; it was cut short: keep the sink as it is" in said) == maps


LIMIT = 3 << 20


@pytest.mark.parametrize("receive", TO_FILE)
def test_a_sink_beyond_the_limit_of_file_sizes(tmp_path: Path, receive: str) -> None:
    """Its signal, SIGXFSZ, would end the worker."""
    limited = ("prlimit", f"--fsize={LIMIT}:{LIMIT}", *WORKER)
    sink = tmp_path / "sink"
    with open_pair(WORKER, limited) as pair, served_on(pair, pair.receiver, "write", receive):
        job = {"sink": "file", "sink_path": str(sink)}
        pair.prepare("write", receive, to_receiver=job, duration=600_000 * MS)
        pair.start(bounded=False)
        said = fails(pair.receiver)
        pair.sender.abort()
    assert f"{sink}: File too large; free some space or raise the limit on file sizes" in said
    assert LIMIT - 65536 <= sink.stat().st_size <= LIMIT


# What hangs


def leaving(worker: Worker) -> str:
    """Give the run up; why the worker is gone then."""
    worker.abort()
    with pytest.raises(WorkerLost) as caught:
        worker.await_idle()
    wait_for(lambda: not Path(f"/proc/{worker.hello.pid}/exe").exists())
    return str(caught.value)


def test_sinks_that_hang_let_each_worker_go(tmp_path: Path) -> None:
    """All methods at once, since a worker waits seconds for a flow before it leaves."""
    with contextlib.ExitStack() as stack:
        receivers = {}
        for receive in TO_FILE:
            os.mkfifo(tmp_path / receive)
            stack.callback(os.close, os.open(tmp_path / receive, os.O_RDWR))
            pair = stack.enter_context(open_pair())
            job = {"sink": "file", "sink_path": str(tmp_path / receive), "overwrite": 1}
            pair.prepare("write", receive, to_receiver=job, duration=600_000 * MS)
            pair.start(bounded=False)
            receivers[receive] = pair.receiver
        said = fails(receivers.pop("mmap"))
        assert "Invalid argument; use a regular file as sink, or another receive method" in said
        for worker in receivers.values():
            wait_for(partial(waits_for_pipe, worker.hello.pid))
        with ThreadPoolExecutor() as together:
            reasons = list(together.map(leaving, receivers.values()))
    assert len(reasons) == len(TO_FILE) - 1
    assert all("a stream or a tool hangs in the kernel" in why for why in reasons), reasons


# Signals


def is_stopped(pid: int) -> bool:
    return process_state(pid) == "T"


@ONE
@pytest.mark.parametrize(("send", "receive"), covering(local()))
def test_workers_that_are_stopped_and_continued_lose_no_byte(
    pair: Pair, send: str, receive: str, one: bool
) -> None:
    """Each stop ends the calls that wait (signal(7)), some with EINTR, some with fewer bytes."""
    pids, done = [pair.sender.hello.pid, pair.receiver.hello.pid], threading.Event()

    def interrupt() -> None:
        while not done.is_set():
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
                wait_for(partial(is_stopped, pid))
                os.kill(pid, signal.SIGCONT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    try:
        deliver(pair, send, receive, 4_000_003, warmup=2 * MS, **(two_streams(send) if one else {}))
    finally:
        done.set()
        interrupter.join()
