"""The soaker: real processes on this machine's CPUs. tools/bench/meters.py measures its accuracy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from netbench.engine.binding import Edge
from netbench.engine.worker import Worker
from netbench.run import readings
from netbench.run.single_meter import observe, own_worker
from netbench.run.soak_meter import doubts, of_texts
from tests.support.engine_pair import MS, PATIENCE, Side, mover
from tests.support.local import call
from tests.support.running import is_running, wait_for

SPIN = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
print("ready", flush=True)
sys.stdin.readline()
begun, used = time.monotonic(), time.thread_time()
while time.monotonic() < begun + float(sys.argv[2]):
    pass
print((time.thread_time() - used) / (time.monotonic() - begun), flush=True)
"""
SLACK_NS = 10_000_000  # a gap at an edge counts as a process's until it ends
COUNTERS = ("cpu_taken_ns", "cpu_switched_ns", "cpu_quanta", "cpu_worked_ns", "cpu_used_ns")


def usable() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def start(worker: Worker, **more: int) -> list[int]:
    """Begin to observe for a minute: the pids of the soakers, by CPU."""
    minute = {"role": "observe", "meters": "soak", "duration": 60 * 10**9, "sample": 0, **more}
    worker.prepare(minute)
    worker.go()
    return by_cpu(worker)


def by_cpu(worker: Worker) -> list[int]:
    """The soakers of a worker, once each is on its CPU."""

    def pinned() -> bool:
        return sum(len(os.sched_getaffinity(pid)) for pid in soakers(worker)) == len(usable())

    wait_for(pinned)
    return sorted(soakers(worker), key=lambda pid: min(os.sched_getaffinity(pid)))


def soakers(worker: Worker) -> list[int]:
    """The children of a worker."""
    pid = worker.hello.pid
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def numbers(
    worker: Worker, seconds: float, more: Mapping[str, int] | None = None
) -> list[dict[str, Sequence[int | None]]]:
    """What each CPU's soaker had counted at every sample of a window and at its edges, in order."""
    outcome = observe(worker, "soak", seconds, more or {})
    moments: dict[int, dict[str, Sequence[int | None]]] = {}
    for vector in (*outcome.result, *outcome.samples):
        row = worker.catalogue.rows[vector.row]
        if row.per == "cpu" and vector.edge != Edge.DRAINED:
            moments.setdefault(vector.ns, {"ns": [vector.ns]})[row.name] = vector.numbers
    return [moments[ns] for ns in sorted(moments)]


def test_each_cpu_that_may_be_used_has_a_soaker_behind_all_others() -> None:
    with mover() as worker:
        pids = start(worker)
        assert [os.sched_getaffinity(pid) for pid in pids] == [{cpu} for cpu in usable()]
        assert {os.sched_getscheduler(pid) for pid in pids} == {os.SCHED_IDLE}
        (session,) = {os.getsid(pid) for pid in pids}
        assert session in pids
        for pid in pids:
            assert Path(f"/proc/{pid}/comm").read_text() == "nb-soaker\n"
            assert not list(Path(f"/proc/{pid}/fd").iterdir()), "it keeps nothing of its worker's"
            group = Path(f"/proc/{pid}/autogroup")
            if group.exists():  # a kernel may have none
                assert group.read_text().endswith(" nice 19\n")


def test_only_cpus_that_may_be_used_have_a_soaker() -> None:
    if len(usable()) < 2:
        pytest.skip("this machine has one CPU")
    with mover("taskset", "--cpu-list", str(usable()[0])) as worker:
        moments = numbers(worker, 0.05)
    for moment in moments:
        for name in COUNTERS:
            present = [cpu for cpu, number in enumerate(moment[name]) if number is not None]
            assert present == usable()[:1]


def test_the_counters_only_grow_and_fit_the_time() -> None:
    with mover() as worker:
        moments = numbers(worker, 0.4, {"sample": 5_000_000})
    assert len(moments) > 10
    for cpu in usable():
        rows = [[m["ns"][0], *(m[name][cpu] for name in COUNTERS)] for m in moments]
        first, last = rows[0], rows[-1]
        elapsed, taken, switched, quanta, worked, _ = (
            after - before  # type: ignore[operator]
            for before, after in zip(first, last, strict=True)
        )
        for place, name in enumerate(COUNTERS, 1):
            if name != "cpu_switched_ns":  # whose a gap is, its end tells
                column = [row[place] for row in rows]
                assert column == sorted(column), name  # type: ignore[type-var]
        assert -SLACK_NS <= switched <= taken + SLACK_NS
        # What is neither taken nor worked: the quanta at the edges, and looks at the switches.
        assert 0.9 * elapsed <= taken + worked <= elapsed + 10**6, (elapsed, taken, worked)
        assert quanta >= 0


def test_the_sums_of_a_record_are_those_of_the_cpus() -> None:
    with own_worker() as worker:
        assert all(what and remedy for what, remedy in doubts(worker))
        outcome = observe(worker, "soak", 0.1)
        sums = readings.counters(outcome.result, worker.catalogue)["soak"]
        lines = list(readings.edge_lines("here", outcome.result, worker.catalogue))
    assert sums["cpus"] == [len(usable())] * 2
    for edge, line in enumerate(lines):
        for name in COUNTERS:
            of_cpus = [number for number in line["soak"][name] if number is not None]
            assert sums[name.removeprefix("cpu_")][edge] == sum(of_cpus)


@pytest.mark.parametrize("sent", [signal.SIGKILL, None], ids=["worker", "controller"])
def test_soakers_die_with_their_worker_or_its_controller(sent: signal.Signals | None) -> None:
    with mover() as worker:
        pids = start(worker)
        if sent:
            os.kill(worker.hello.pid, sent)
        else:
            worker.abandon()
        wait_for(lambda: not any(map(is_running, pids)))


def test_no_soaker_is_left_after_its_run_nor_there_without_one() -> None:
    """And a footprint is touched: registers only, where none is asked for."""
    with mover() as worker:
        observe(worker, "soak", 0.05)
        wait_for(lambda: not soakers(worker))
        observe(worker, "procstat", 0.05)
        assert not soakers(worker)
        for more in ({}, {"footprint": 1 << 22}):
            first, *others = start(worker, **more)
            footprint = more.get("footprint", 0)
            wait_for(partial(lambda pid, least: _private(pid) >= least, first, footprint))
            assert _private(first) < footprint + (1 << 20)
            worker.abort()
            worker.await_idle()
            assert not any(map(is_running, (first, *others)))


def _private(pid: int) -> int:
    """Bytes that a process has written: Private_Dirty of smaps_rollup (proc(5))."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(text.partition("Private_Dirty:")[2].split()[0]) << 10


def test_a_soaker_that_was_killed_counts_nothing() -> None:
    """Its CPU would look busy for the rest of the window. On a busy machine that may be over."""
    for window in (400 * MS, 2000 * MS, 10_000 * MS):
        with mover() as worker:
            worker.prepare({"role": "observe", "meters": "soak", "duration": window, "sample": 0})
            worker.go()
            victim = by_cpu(worker)[-1]
            os.kill(victim, signal.SIGKILL)
            wait_for(partial(lambda pid: not is_running(pid), victim))
            killed = time.monotonic_ns()
            worker.await_edge(Edge.CLOSE, PATIENCE)
            worker.stop()
            side = Side.of(worker.catalogue, worker.result(PATIENCE).result)
            closing = side.vectors["soak", "cpu_taken_ns", Edge.CLOSE]
        if killed < closing.ns:
            break
    assert closing.numbers[usable()[-1]] is None


def test_a_load_of_another_session_is_seen_and_not_slowed() -> None:
    """Both run from the same moment on: whatever else runs here takes from both alike."""
    argv = [sys.executable, "-c", SPIN, str(usable()[-1]), "1.0"]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as load,
        mover() as worker,
    ):
        assert load.stdin is not None
        assert load.stdout is not None
        assert load.stdout.readline() == "ready\n"
        pids = start(worker)
        before = time.clock_gettime(_clock(pids[-1]))
        load.stdin.write("\n")
        load.stdin.flush()
        load.stdout.readline()
        used = time.clock_gettime(_clock(pids[-1])) - before
    assert used < 0.1, "the soaker took a tenth of the CPU from a load that wanted all of it"


def _clock(pid: int) -> int:
    """The CPU clock of a process (clock_getcpuclockid(3))."""
    return (~pid << 3) | 2


def test_meter_soak_tells_each_cpu_and_what_idle_is() -> None:
    told = json.loads(call("meter", "soak", "--seconds", "0.3", "--json").stdout)
    assert [load["cpu"] for load in told["per_cpu"]] == usable()
    for load in told["per_cpu"]:
        assert 0 <= load["busy"] <= 1
        assert load["slow_down"] is None or load["slow_down"] > -1
    assert 0 <= told["idle_share"] < 1
    assert told["idle_from"] in ("window", "none")


QUIET = {"cgroup": "0::/", "controllers": "cpu memory", "smt": "0", "weight": ""}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"cgroup": "0::/user.slice/user-0.slice/session-3.scope"}, "cgroup /user.slice/"),
        ({"cgroup": "0::/user.slice", "controllers": "memory pids"}, ""),
        ({"cgroup": "2:memory:/a\n1:cpu,cpuacct:/b\n0::/c", "controllers": ""}, "cgroup /b,"),
        ({"cgroup": "2:memory:/a\n1:cpu,cpuacct:/\n0::/", "controllers": ""}, ""),
        ({"weight": "100"}, "cgroup / of a namespace"),
        ({"smt": "1"}, "SMT is on"),
        ({"cgroup": "", "controllers": "", "smt": ""}, ""),
    ],
)
def test_what_soak_takes_for_granted_is_doubted(changes: dict[str, str], said: str) -> None:
    """From what a host's files say."""
    found = [f"{what}; {remedy}" for what, remedy in of_texts(QUIET | changes)]
    assert len(found) == bool(said)
    assert said in "".join(found)
