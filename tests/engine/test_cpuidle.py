"""The meter cpuidle: residencies of this machine's own CPUs, and of files that stand for them in a
mount namespace. How accurate it is, tools/bench/meters.py measures.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netbench.engine.binding import Edge
from netbench.engine.own_engine import local
from tests.support.engine_pair import MS, PATIENCE, mover, observe
from tests.support.running import wait_for

CPU = "/sys/devices/system/cpu"
CPUS = os.cpu_count() or 1
STEP_NS = 10 * MS  # of /proc/stat: 100 ticks a second (time(7))
LATE_NS = 5 * MS  # in which a thread of a CPU may still answer
FAKE = """
for at in $(seq 0 $(($(nproc --all) - 1))); do
    mount -t tmpfs tmpfs /sys/devices/system/cpu/cpu$at/cpuidle
    for state in $STATES; do
        mkdir /sys/devices/system/cpu/cpu$at/cpuidle/state$state
        echo $((1000 * state + at + 1)) > /sys/devices/system/cpu/cpu$at/cpuidle/state$state/time
    done
done
exec "$@"
"""
here = pytest.mark.skipif(
    bool(local().meters["cpuidle"].row.why), reason=local().meters["cpuidle"].row.why
)


def pretend(states: str) -> tuple[str, ...]:
    """Words that start a worker whose CPUs have these idle states."""
    return ("unshare", "--mount", "sh", "-ec", f'STATES="{states}"\n{FAKE}', "sh")


@here
def test_no_cpu_is_idle_for_longer_than_a_window_lasts() -> None:
    """A stay that ends within the window, and began long before, is not of it."""
    with mover() as one:
        for _ in range(50):
            side = observe(one, "cpuidle", duration=4 * MS)
            opened, closed = (side.vectors["cpuidle", "cpus", edge].ns for edge in (0, 1))
            opening, closing = (side.numbers("cpuidle", "cpu_idle_ns", e) for e in (0, 1))
            idle = [after - before for before, after in zip(opening, closing, strict=True)]
            assert max(idle) <= closed - opened + LATE_NS
            assert sum(idle) == side.moved("cpuidle", "idle_ns")


def waits(pid: int) -> dict[int, int]:
    """By CPU, how often the thread that is pinned there has waited."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        cpus = os.sched_getaffinity(int(task.name))
        text = (task / "status").read_text()
        if len(cpus) == 1:
            found[min(cpus)] = int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return found


@here
@pytest.mark.skipif(CPUS < 2, reason="with one CPU every thread is pinned")
def test_each_cpu_is_woken() -> None:
    with mover() as one:
        one.prepare({"role": "observe", "meters": "cpuidle", "duration": MS, "sample": 0})
        wait_for(lambda: sorted(waits(one.hello.pid)) == list(range(CPUS)))
        wait_for(lambda: all(waits(one.hello.pid).values()))
        before = waits(one.hello.pid)
        one.go()
        one.await_edge(Edge.CLOSE, PATIENCE)
        wait_for(lambda: all(n > before[c] for c, n in waits(one.hello.pid).items()))
        one.stop()
        one.result(PATIENCE)
        wait_for(lambda: not waits(one.hello.pid))


@here
def test_it_says_what_proc_stat_says_but_for_its_steps() -> None:
    with mover() as one:
        side = observe(one, "procstat\0cpuidle", duration=300 * MS)
        assert side.numbers("cpuidle", "cpus", Edge.CLOSE) == [CPUS]
        by_stat = STEP_NS * sum(side.moved("procstat", name) for name in ("idle", "iowait"))
        assert side.moved("cpuidle", "idle_ns") <= by_stat + 2 * STEP_NS + CPUS * LATE_NS
        assert side.moved("cpuidle", "idle_ns") >= by_stat / 2 - 2 * STEP_NS


@pytest.mark.root
def test_idle_is_the_sum_of_all_states() -> None:
    with mover(*pretend("0 1 2")) as one, mover(*pretend("")) as none:
        side, unread = observe(one, "cpuidle"), none.catalogue.meters["cpuidle"].unread
        found = side.numbers("cpuidle", "cpu_idle_ns", Edge.OPEN)
        assert found == [(3000 + 3 * (cpu + 1)) * 1000 for cpu in range(CPUS)]
        assert side.total("cpuidle", "idle_ns", Edge.OPEN) == sum(found)
    assert unread == {"cpuidle": f"0 of {CPUS} CPUs have idle states ({CPU}/cpu*/cpuidle)"}


@here
@pytest.mark.root
@pytest.mark.skipif(CPUS < 2, reason="this machine has one CPU")
@pytest.mark.parametrize("root", ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"])
def test_a_cpu_outside_the_cpuset_cannot_be_woken(root: str) -> None:
    """Its reason is said before any run. A CPU that the process merely avoids is no such one."""
    folder, unified = Path(root, "netbench-test"), Path(root, "cgroup.controllers").exists()
    if not Path(root, "cgroup.procs").exists() or root.endswith("cgroup") != unified:
        pytest.skip(f"no cpusets in {root}")
    folder.mkdir()
    try:
        if (folder / "cpuset.mems").exists():
            (folder / "cpuset.mems").write_text("0")
        (folder / "cpuset.cpus").write_text("0")
        join = f'echo $$ > {folder}/cgroup.procs; exec "$@"'
        with mover("sh", "-ec", join, "sh") as inside, mover("taskset", "-c", "0") as beside:
            why = inside.catalogue.meters["cpuidle"].row.why
            assert why.startswith(f"1 of {CPUS} CPUs are in this process's cpuset: it cannot wake")
            assert not beside.catalogue.meters["cpuidle"].row.why
    finally:
        folder.rmdir()
