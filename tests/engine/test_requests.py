"""Requests: what is counted of them, closed and open loops, and what goes wrong."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
import pytest

from netbench.base.errors import EngineError, Lost
from netbench.engine.binding import Edge
from netbench.model import Transfer
from netbench.result.record import Proof, SideCounters
from netbench.run.job import _sizes
from netbench.run.requests import check_counts, measured
from netbench.stats.histogram import Histogram
from tests.support.engine_pair import ADDRESS, MS, Pair, Side, open_pair
from tests.support.local import out
from tests.support.proxy import proxy

WINDOW = {"duration": 100 * MS, "warmup": 20 * MS, "sample": 0}
WAITS = ["epoll", "block", "spin"]
DRAWN = {"requests": _sizes("64:0.7,16384:0.3"), "responses": _sizes("5000:0.5,1:0.5")}


def histogram(side: Side, name: str = "latency") -> Histogram:
    return Histogram.of(side.numbers("", name))


def run(pair: Pair, through: dict[str, Any] | None = None, **options: Any) -> tuple[Side, Side]:
    """A run of requests, perhaps `through` a proxy that has these properties."""
    own = options.keys() & {"request_rate", "arrivals", "seed"}
    rate = {name: options.pop(name) for name in own}
    if through is None:
        return pair.run("request", "request", rate, **{**WINDOW, **options})
    prepare = pair.sender.prepare
    with pytest.MonkeyPatch.context() as patch, ExitStack() as between:

        def by_proxy(job: dict[str, Any]) -> Any:
            port = between.enter_context(proxy(job["peer_port"], **through))
            return prepare({**job, "peer_port": port})

        patch.setattr(pair.sender, "prepare", by_proxy)
        return pair.run("request", "request", rate, **{**WINDOW, **options})


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize(
    ("asking", "answering", "connections", "depth", "threads"),
    [(*DRAWN.values(), 3, 4, 2), (9, 70_000, 3, 1, 0), (300_000, 1, 2, 4, 2), (16, 4096, 8, 16, 2)],
)
def test_each_request_is_answered_once(
    pair: Pair, asking: int, answering: int, connections: int, depth: int, threads: int, wait: str
) -> None:
    """As both sides count; those of the window are in the histogram, and all are verified."""
    if wait == "block":  # a thread a connection, which has few large ones under way
        threads, depth = 0, 1 if asking == 300_000 else depth
    sizes = {"requests": asking, "responses": answering, "depth": depth, "streams": connections}
    client, server = run(pair, **sizes, threads=threads, wait=wait, verify=1)
    asked, answered = (side.total("request", "transactions") for side in (client, server))
    assert asked == answered
    found = histogram(client)
    assert found.count == sum(number for _, number in found.buckets)
    assert 0 < found.count <= asked
    assert found.most >= found.sum / found.count > 0


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize(
    ("asking", "connections", "depth", "warmup"),
    [(1, 1, 1, 0), (9, 3, 4, 20), (70_000, 2, 1, 20), (5, 4, 7, 0)],
)
def test_a_run_of_so_many_requests_has_them_all(
    pair: Pair, asking: int, connections: int, depth: int, warmup: int, wait: str
) -> None:
    """Within its window, and none more; each is in the histogram."""
    each, options = 300, {"duration": 0, "warmup": warmup * MS, "depth": depth, "verify": 1}
    count = each * connections
    sizes = {"requests": asking, "responses": 20, "streams": connections, "bytes": count * asking}
    options["threads"] = 2 if connections > 2 and wait != "block" else 0
    client, server = run(pair, **{**options, **sizes}, wait=wait)
    for side in (client, server):
        assert side.moved("request", "transactions") == count
        assert warmup or side.total("request", "transactions") == count
    assert histogram(client).count == count


def test_sizes_are_drawn_in_their_shares(pair: Pair) -> None:
    _, server = run(pair, **DRAWN, streams=3, meters="softirq")
    each = server.moved("softirq", "ip_in_octets") / server.moved("request", "transactions")
    assert each == pytest.approx(0.7 * 64 + 0.3 * 16384 + 0.5 * 5001, rel=0.1)


@pytest.mark.parametrize("mode", ["crr", "cc"])
def test_so_many_connections_are_made(pair: Pair, mode: str) -> None:
    options = {"duration": 0, "warmup": 0, "bytes": 60, "streams": 3, "mode": mode}
    low = 20_000 + os.getpid() % 9_000  # below those that clients are given
    for _ in range(2):  # the ports are few, and the first run leaves them in TIME-WAIT
        ports = {"port_low": low, "port_high": low + 3}
        client, server = pair.run("connect", "connect", {}, ports, **{**WINDOW, **options})
        assert {side.total("connect", "transactions") for side in (client, server)} == {60}
        assert histogram(client).count == 60


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("wait", ["epoll", "spin"])
def test_large_ones_of_one_thread_wait_for_no_other(pair: Pair, wait: str, depth: int) -> None:
    """A receiver that waited for room on one connection would not read the other."""
    sizes = {"requests": 9 << 20, "responses": 9 << 20, "streams": 2, "depth": depth}
    client, server = run(pair, **sizes, threads=1, wait=wait, verify=1)
    asked, answered = (side.total("request", "transactions") for side in (client, server))
    assert asked == answered > 0


@pytest.mark.parametrize("connections", [1, 3])
@pytest.mark.parametrize(("asking", "answering"), [(*DRAWN.values(),), (70_000, 5), (16, 300_000)])
@pytest.mark.parametrize("mode", ["crr", "cc"])
def test_each_connection_is_for_one_request_or_none(
    pair: Pair, mode: str, asking: int, answering: int, connections: int
) -> None:
    """As both sides count; the receiver's ports take no one else's."""
    sizes = {"requests": asking, "responses": answering, "streams": connections, "mode": mode}
    client, server = pair.run("connect", "connect", **{**WINDOW, **sizes, "verify": 1})
    asked, answered = (side.total("connect", "transactions") for side in (client, server))
    assert asked == answered
    assert 0 < histogram(client).count <= asked
    assert (client.total("connect", "send_calls") > 0) == (mode == "crr")
    assert client.numbers("tcp", "retransmits") == [], "of the connection that stays, idle"


def begin(pair: Pair, method: str, **options: Any) -> None:
    """Open a window that stays open for long."""
    pair.prepare(method, method, **{**WINDOW, "duration": 30_000 * MS, **options})
    await_opening(pair)


def await_opening(pair: Pair) -> None:
    pair.start(bounded=False)
    for worker in (pair.sender, pair.receiver):
        worker.await_edge(Edge.OPEN, 10)


def test_a_server_without_a_port_for_connections_says_so(pair: Pair) -> None:
    with socket.create_server((ADDRESS, 0)) as free:
        port = free.getsockname()[1]
    only = {"port_low": port, "port_high": port}
    pair.prepare("connect", "connect", {}, only, mode="crr", **WINDOW)
    pair.start(bounded=False)
    with pytest.raises(EngineError, match=f"every port from {port} to {port} is taken"):
        pair.receiver.await_edge(Edge.CLOSE, 5)
    with pytest.raises(EngineError, match="waiting for the receiver's port"):
        pair.sender.await_edge(Edge.CLOSE, 5)


def test_a_server_that_cannot_accept_is_an_error(pair: Pair) -> None:
    begin(pair, "connect", mode="cc")
    pid, files = pair.receiver.hello.pid, resource.RLIMIT_NOFILE
    found = resource.prlimit(pid, files)
    resource.prlimit(pid, files, (0, found[1]))
    with pytest.raises(EngineError, match="accepting: Too many open files"):
        pair.receiver.await_edge(Edge.CLOSE, 5)
    resource.prlimit(pid, files, found)


def test_connections_can_be_given_up(pair: Pair) -> None:
    """While the other side has stopped, and answers nothing."""
    begin(pair, "connect")
    os.kill(pair.receiver.hello.pid, signal.SIGSTOP)
    pair.sender.abort()
    pair.sender.await_idle()
    os.kill(pair.receiver.hello.pid, signal.SIGCONT)
    assert not pair.sender.lost


def test_others_at_the_port_of_connections_fail_the_run(pair: Pair) -> None:
    """By both sides' counts; of other addresses than the sender's they are rejected."""
    transfer, counts, own = (
        Transfer(send="connect", receive="connect"),
        [],
        {"peer_address": ADDRESS},
    )
    for others, address in (0, ADDRESS), (3, ADDRESS), (3, "127.0.0.3"):
        pair.prepare("connect", "connect", {}, own, requests=8, responses=8, **WINDOW)
        await_opening(pair)
        lines = out("ss", "-Htlnp").splitlines()
        mine = [line for line in lines if f"pid={pair.receiver.hello.pid}," in line]
        ports = [int(line.split()[3].rpartition(":")[2]) for line in mine]
        (port,) = (port for port in ports if port != pair.port)
        for _ in range(others):
            at = (ADDRESS, port), None, (address, 0)
            with suppress(ConnectionError), socket.create_connection(*at) as one:
                one.sendall(b"x" * 8)
                one.recv(8)
        ends = pair.finish(bounded=False)
        sides = ({"transactions": [side.numbers("connect", "transactions")]} for side in ends)
        counts.append(Proof(*sides))
    assert ends[1].numbers("", "rejected_connections") == [3]
    for each in counts[::2]:
        check_counts(transfer, each)
    with pytest.raises(EngineError, match="others connected to its port"):
        check_counts(transfer, counts[1])
    with pytest.raises(EngineError, match="a count is missing"):
        check_counts(transfer, Proof({}, counts[0].receiver))


@pytest.mark.parametrize(("method", "threads"), [("request", 1), ("request", 2), ("connect", 0)])
def test_what_is_due_is_sent_when_it_is(pair: Pair, method: str, threads: int) -> None:
    """An open loop of fixed arrivals has as many as its rate says, whatever the server does."""
    some = {"streams": 20, "threads": threads, "duration": 500 * MS}
    client, _ = pair.run(method, method, {"request_rate": 2000}, **{**WINDOW, **some})
    assert histogram(client).count == pytest.approx(1000, abs=1)
    for name in ("service", "lateness"):
        assert histogram(client, name).count == histogram(client).count
    assert histogram(client, "service").sum <= histogram(client).sum


def test_connections_that_were_due_are_made_after_the_window(pair: Pair) -> None:
    """More than there can be: each waits for the one before it, which is no lateness."""
    some = {"request_rate": 10**6, "mode": "crr", "duration": 10 * MS}
    client, _ = pair.run("connect", "connect", **{**WINDOW, **some})
    assert histogram(client).count == pytest.approx(10_000, abs=1)
    waited, served, late = (histogram(client, n).sum for n in ("latency", "service", "lateness"))
    assert waited > 10 * served
    assert late < waited / 5


def test_arrivals_at_random_are_those_of_the_seed(pair: Pair) -> None:
    """Of a Poisson process, whose counts vary by their root."""
    counts = []
    for seed in (1, 1, 2, 3):
        options = {"arrivals": "poisson", "seed": seed, "request_rate": 4000, "streams": 4}
        client, _ = run(pair, **options, duration=250 * MS, warmup=0)
        counts.append(histogram(client).count)
    assert all(abs(count - 1000) < 5 * 1000**0.5 for count in counts)
    assert len(set(counts[1:])) > 1


def test_no_stream_has_the_arrivals_of_another_in_another_run(pair: Pair) -> None:
    runs = []
    for seed in (1, 2):
        options = {"arrivals": "poisson", "seed": seed, "request_rate": 4000, "streams": 40}
        client, _ = run(pair, **options, duration=500 * MS, warmup=0)
        runs.append(client.numbers("request", "transactions"))
    assert abs(np.corrcoef(runs[0][1:], runs[1][:-1])[0, 1]) < 0.8


def test_what_is_answered_later_is_not_of_the_window() -> None:
    """Of an open loop that the server does not keep up with."""
    read = {name: [1000, 1, 1, 5, 1000] for name in ("latency", "service", "lateness")}
    side = SideCounters("snd", (0, 10**9))
    transfer = Transfer(send="request", receive="request", duration=10**9)
    metrics, _ = measured(transfer, read, side, {"transactions": [[10, 0], [300, 110], [700, 310]]})
    assert (metrics["transactions"].value, metrics["offered"].value) == (400.0, 1000.0)
    judging = {f"lateness_{name}" for name in ("p50", "p90", "p95", "p99", "max")}
    assert judging | {"lateness"} == {name for name in metrics if name.startswith("lateness")}


def test_a_client_that_stops_is_late_as_long_as_its_queue_lasts(pair: Pair) -> None:
    """It catches up over one connection: what it sends late is not the server's latency."""
    done = threading.Event()
    thread = threading.Thread(target=stopping, args=(pair.sender.hello.pid, done, 0.1))
    thread.start()
    try:
        client, _ = run(pair, request_rate=1000, duration=4500 * MS, warmup=0)
    finally:
        done.set()
        thread.join()
    late, whole = (histogram(client, name) for name in ("lateness", "latency"))
    assert whole.most > 90e6
    assert (late.quantile(0.99) or 0.0) > 0.5 * (whole.quantile(0.99) or 0.0)


def stopping(pid: int, done: threading.Event, first: float = 0.45) -> None:
    """Stop a process for 100 ms of every second, at times that a clock says."""
    begun = time.monotonic()
    for second in range(60):
        if done.wait(begun + second + first - time.monotonic()):
            return
        os.kill(pid, signal.SIGSTOP)
        done.wait(begun + second + first + 0.1 - time.monotonic())
        os.kill(pid, signal.SIGCONT)


@pytest.mark.slow  # the times need a machine that does nothing else
def test_an_open_loop_sees_a_server_that_stops_and_a_closed_one_hides_it() -> None:
    """Of 1,000 a second over 200 connections a tenth waits for up to 100 ms: 1% for over 90."""
    for rate in (1000, 0):
        with open_pair() as pair:
            done = threading.Event()
            thread = threading.Thread(target=stopping, args=(pair.receiver.hello.pid, done))
            options = {"request_rate": rate} if rate else {}
            thread.start()
            try:
                client, _ = run(
                    pair, streams=200 if rate else 1, duration=4000 * MS, warmup=0, **options
                )
            finally:
                done.set()
                thread.join()
        found = histogram(client)
        p95, p99 = (found.quantile(share) or 0.0 for share in (0.95, 0.99))
        if rate:
            late = histogram(client, "lateness").quantile(0.99) or 0.0
            assert 48e6 < p95 < 54e6
            assert 88e6 < p99 < 94e6
            assert late < 0.1 * p99
        else:
            assert p99 < 10e6
            assert found.most > 90e6


@pytest.fixture
def awake() -> Iterator[None]:
    """No CPU sleeps: to wake one up takes longer the longer it slept."""
    idle = ["chrt", "--idle", "0", "sh", "-c", "while :; do :; done"]
    burning = [subprocess.Popen(idle) for _ in range(os.cpu_count() or 1)]
    yield
    for each in burning:
        each.kill()
        each.wait()


@pytest.mark.slow  # likewise
@pytest.mark.usefixtures("awake")
def test_a_delay_moves_the_median_by_as_much(pair: Pair) -> None:
    medians, delays = [], []
    for delay in (0.0, 0.010):
        taken: list[float] = []
        through = {"delay": delay, "taken": taken}
        client, _ = run(pair, through=through, duration=2000 * MS, wait="block")
        medians.append(histogram(client).quantile(0.5) or 0.0)
        delays.append(float(np.median(taken)) * 1e9)
    assert delays[1] - delays[0] > 9e6
    assert medians[1] - medians[0] == pytest.approx(delays[1] - delays[0], rel=0.02)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"through": {"spoil": True}, "responses": 64, "verify": 1}, "byte 0 of a response"),
        ({"request_rate": 10**8, "duration": 200 * MS}, "cannot be met; ask for a lower rate"),
        ({"wait": "busy_poll"}, "as over lo and veth; use wait"),  # no device has a queue
        ({"request_rate": 100, "wait": "block"}, "use wait: epoll or spin"),
        # else both sides would wait for the other to read
        (
            {"depth": 2, "requests": 60000, "responses": 60000, "wait": "block"},
            "use wait: epoll or spin",
        ),
    ],
)
def test_what_cannot_be_asked_or_arrives_otherwise_is_an_error(
    pair: Pair, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(EngineError, match=why):
        run(pair, **options)


@pytest.mark.parametrize(
    ("method", "options", "how"),
    [
        *(("request", {"wait": wait}, how) for wait in WAITS for how in ("dies", "closes")),
        *(("connect", {"mode": mode}, "dies") for mode in ("crr", "cc")),
    ],
)
def test_a_server_that_goes_is_an_error_of_the_run(
    pair: Pair, method: str, options: dict[str, str], how: str
) -> None:
    why = "connection" if method == "connect" else "requests under way|connection"
    begin(pair, method, **options)
    if how == "dies":
        os.kill(pair.receiver.hello.pid, signal.SIGKILL)
    else:
        pair.receiver.abort()
    with pytest.raises((EngineError, Lost), match=why):
        pair.sender.await_edge(Edge.CLOSE, 10)
