"""What soakers counted, as shares and metrics."""

from __future__ import annotations

from typing import Any

import pytest

from netbench.analysis.soak import Soaked, busy, idle_of, quiet, quieter
from tests.unit.analysis.test_metrics import TICKS, metrics, record

MS = 10**6
SECOND = 1000 * MS


def slice_of(switched: float, interrupted: float, ms: int = 100) -> Soaked:
    """A slice in which processes took one share, and interrupts one of what was left."""
    elapsed = ms * MS
    processes = int(switched * elapsed)
    interrupts = int(interrupted * (elapsed - processes))
    left = elapsed - processes - interrupts
    return Soaked(elapsed, processes + interrupts, processes, left // 500, left)


@pytest.mark.parametrize("load", [0, 0.01, 0.05, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("idle", [0.0, 0.015, 0.03])
def test_what_an_idle_cpu_loses_is_no_load(load: float, idle: float) -> None:
    slices = [slice_of(load, idle)] * 20
    share = sum(one.taken for one in slices) / sum(one.elapsed for one in slices)
    known = idle_of({0: slices}, {})[0]
    assert busy(share, known.share) == pytest.approx(load, abs=1e-4)
    assert known.origin == "window"


def test_a_load_that_leaves_nothing_is_judged_by_another_cpu() -> None:
    idle = idle_of({0: [slice_of(1, 0)] * 20, 1: [slice_of(0, 0.02)] * 20}, {})
    assert idle[0].share == pytest.approx(idle[1].share) == pytest.approx(0.02)
    assert idle_of({0: [slice_of(1, 0)] * 20}, {}) == {}


@pytest.mark.parametrize("stored", [True, False])
def test_interrupts_of_a_load_are_not_idle(stored: bool) -> None:
    """CPU 0 has nothing but soft interrupts for 40% of its time."""
    before = {0: slice_of(0.001, 0.02), 1: slice_of(0.001, 0.02)} if stored else {}
    idle = idle_of({0: [slice_of(0, 0.42)] * 20, 1: [slice_of(0, 0.02)] * 20}, before)
    assert idle[0].share == pytest.approx(0.02, abs=0.002)
    assert idle[0].origin == ("stored" if stored else "window")


def test_bursts_of_interrupts_are_left_out() -> None:
    found = quiet([slice_of(0.2, 0.02)] * 10 + [slice_of(0.2, 0.5)] * 10)
    assert found is not None
    assert found.share == pytest.approx(0.02, abs=1e-4)


def test_a_small_load_that_goes_on_does_not_become_idle() -> None:
    """Of processes the quietest window counts, of interrupts the latest."""
    kept = None
    for load in (0.003, 0.009, 0.009, 0.001, 0.009):
        kept = quieter(slice_of(load, 0.02), kept)
    assert kept is not None
    assert kept.switched / kept.elapsed == pytest.approx(0.001, rel=1e-3)
    assert kept.interrupted == pytest.approx(0.02, rel=0.02)
    assert quieter(slice_of(0.009, 0.03), kept).interrupted == pytest.approx(0.03, rel=0.02)


def test_what_processes_take_of_an_idle_cpu_is_known_from_earlier() -> None:
    idle = idle_of({0: [slice_of(0.5, 0.03)] * 20}, {0: slice_of(0.005, 0.02)})
    assert idle[0].share == pytest.approx(0.035, abs=1e-4)


def counters(**changes: Any) -> dict[str, Any]:
    """Two CPUs for a second: 0.6 CPUs of load, and 2% that interrupts take; nothing ran in the
    idle window of a second before.
    """
    taken = int(2 * SECOND * (0.3 + 0.02 * 0.7))
    return {
        "taken_ns": [5, 5 + taken],
        "switched_ns": [0, int(0.6 * SECOND)],
        "quanta": [100, 100 + 2_000_000],
        "worked_ns": [0, 1_200_000_000],
        "used_ns": [0, 2 * SECOND - taken],
        "cpus": [2, 2],
        "idle_time_ns": [0, SECOND],
        "idle_taken_ns": [0, int(2 * SECOND * 0.02)],
        "idle_switched_ns": [0, 0],
        "idle_quanta": [0, 4_000_000],
        "idle_worked_ns": [0, 2_000_000_000],
        "idle_cpus": [2, 2],
    } | changes


def derived(**changes: Any) -> dict[str, float]:
    raw = record()
    raw["sender"]["time_ns"] = raw["receiver"]["time_ns"] = [0, SECOND]
    raw["sender"]["soak"] = {k: v for k, v in counters(**changes).items() if v is not None}
    return metrics(raw, TICKS, shared=True)


def test_soak_tells_the_systems_cpu_and_the_slow_down() -> None:
    found = derived()
    assert found["system_cpu.soak"] == found["system_cpu"] == pytest.approx(0.6)
    assert "sender_cpu.soak" not in found
    assert found["slow_down"] == pytest.approx(0.2)


def test_processes_of_the_idle_window_are_not_idle() -> None:
    both = int(2 * SECOND * (0.5 + 0.02 * 0.5))
    found = derived(idle_taken_ns=[0, both], idle_switched_ns=[0, SECOND])
    assert found["system_cpu.soak"] == pytest.approx(0.6)


@pytest.mark.parametrize(
    "changes",
    [
        {"idle_time_ns": None},
        {"idle_taken_ns": None},
        {"cpus": [2, 1]},
        {"cpus": [0, 0]},
        {"idle_cpus": [2, 1]},
        {"taken_ns": [9, 5]},
        {"switched_ns": None},
        {"idle_taken_ns": [0, 2 * SECOND], "idle_switched_ns": [0, 2 * SECOND]},
    ],
    ids=str,
)
def test_without_all_of_it_there_is_no_number(changes: dict[str, Any]) -> None:
    assert not [name for name in derived(**changes) if name.endswith(".soak")]


def test_procstat_beside_soakers_leaves_them_out() -> None:
    """Soakers are niced, so their ticks are in that state."""
    without = metrics(record(), TICKS, shared=True)["system_cpu.procstat"]
    raw = record()
    (opening, closing), seconds = raw["sender"]["procstat"]["nice"], 1.5
    ticks = int(seconds * TICKS["a"])
    raw["sender"]["procstat"]["nice"] = [opening, closing + ticks]
    raw["sender"]["soak"] = counters(used_ns=[7, 7 + int(seconds * SECOND)])
    found = metrics(raw, TICKS, shared=True)
    assert found["system_cpu.procstat"] == pytest.approx(without)
