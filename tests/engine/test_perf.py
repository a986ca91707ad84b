"""The meter `perf`: software events of all CPUs, beside what the kernel says in /proc. Hardware
counters are simulated in native/tests/test_perf_meter.c; where there is none, the reason is told.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from netbench.engine.binding import Edge
from tests.support.engine_pair import MS, PATIENCE, Side, mover

pytestmark = pytest.mark.root
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
PAGES = 2000


def of_proc() -> dict[str, int]:
    """All context switches and page faults since the kernel began."""
    words = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    switches = next(int(line[1]) for line in words if line[0] == "ctxt")
    words = [line.split() for line in Path("/proc/vmstat").read_text().splitlines()]
    faults = next(int(line[1]) for line in words if line[0] == "pgfault")
    return {"context_switches": switches, "page_faults": faults}


def touch_pages() -> None:
    """Make page faults."""
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(PAGES):
            memory[page * mmap.PAGESIZE] = 1


def test_software_events_of_all_cpus_are_those_of_proc() -> None:
    cpus = os.sysconf("SC_NPROCESSORS_ONLN")
    with mover() as worker:
        before = of_proc()
        worker.prepare({"role": "observe", "meters": "perf", "duration": 100 * MS})
        worker.go()
        worker.await_edge(Edge.OPEN, PATIENCE)
        touch_pages()
        worker.await_edge(Edge.CLOSE, PATIENCE)
        after = of_proc()
        worker.stop()
        side = Side.of(worker.catalogue, worker.result(PATIENCE).result)
    for name, number in before.items():
        moved = side.moved("perf", name)
        assert 0 < moved <= after[name] - number
        each = side.vectors["perf", f"cpu_{name}", Edge.CLOSE].numbers
        known = [n for n in each if n is not None]
        assert (len(known), sum(known)) == (cpus, side.total("perf", name, Edge.CLOSE))
    vector = side.vectors["perf", "cpu_clock_ns", Edge.CLOSE]
    window = vector.ns - side.vectors["perf", "cpu_clock_ns", Edge.OPEN].ns
    assert window * cpus * 0.5 < side.moved("perf", "cpu_clock_ns")


def test_what_the_cpu_does_not_count_is_missing_with_its_reason() -> None:
    with mover() as worker:
        unread = worker.catalogue.meters["perf"].unread
    has_pmu = any(
        path.name.startswith(("cpu", "armv"))
        for path in Path("/sys/bus/event_source/devices").iterdir()
    )
    if has_pmu:
        pytest.skip("needs a machine without hardware counters")
    assert "no such hardware counter" in unread["perf.kernel_cycles"]
    assert set(unread) >= {"perf.user_branch_misses", "perf.cycles_running_ns"}
    assert "perf.context_switches" not in unread


def test_a_user_is_told_that_root_is_needed() -> None:
    level = int(PARANOID.read_text())
    if level < 1:
        pytest.skip(f"kernel.perf_event_paranoid is {level}: every user may count all CPUs")
    with mover("setpriv", "--reuid=47110", "--regid=47110", "--clear-groups") as worker:
        perf = worker.catalogue.meters["perf"]
    assert perf.unread == {"perf": f"root is needed: kernel.perf_event_paranoid is {level}"}
