"""What soakers counted, as shares and metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from netbench.read.soak import TICK_NS, Soaked, added, busy, idle_of
from tests.unit.analysis.test_metrics import TICKS, metrics, record

MS = 10**6
SECOND = 1000 * MS


def slice_of(switched: float, interrupted: float, ms: int = 100, stolen: float = 0.0) -> Soaked:
    """Processes took a share, interrupts one of what was left, the hypervisor one of all."""
    elapsed = ms * MS
    processes = int(switched * elapsed)
    stalled = int(stolen * (elapsed - processes))
    interrupts = int(interrupted * (elapsed - processes - stalled))
    left = elapsed - processes - stalled - interrupts
    taken = processes + stalled + interrupts
    counted = int(stolen * elapsed) // TICK_NS * TICK_NS
    return Soaked(elapsed, taken, processes, stalled, left // 500, left, counted)


@pytest.mark.parametrize("load", [0, 0.05, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("stolen", [0.0, 0.004, 0.03, 0.2, 0.6])
def test_what_the_hypervisor_takes_is_no_load(load: float, stolen: float) -> None:
    """A load gets its share of what is left to the guest; /proc/stat is a tick too low at most."""
    window = slice_of(load, 0.02, 1000, stolen)
    known = idle_of({0: [slice_of(load, 0.02, 100, stolen)] * 10})[0]
    assert known.share == pytest.approx(0.02, abs=1e-3)
    found = busy(window.share, known.share, window.stolen_share)
    assert found == pytest.approx(load * (1 - stolen), abs=load * 0.011 + 1e-4)
    assert window.stolen_share == pytest.approx(stolen, abs=load * 0.01 + 1e-6)


def test_no_more_is_stolen_than_the_kernel_counts() -> None:
    """A long interrupt stands still like a hypervisor, where interrupts have their own clock."""
    window = replace(slice_of(0, 0.02, 1000), stalled=300 * MS)
    assert window.stolen_share == 0.01
    assert replace(window, stalled=0, stolen=300 * MS).stolen_share == pytest.approx(0.29)
    assert added([window, window]).stolen_share == 0.005


@pytest.mark.parametrize(
    ("slices", "share"),
    [
        pytest.param([slice_of(1, 0)] * 20, 0.02, id="a load leaves nothing: by the other CPU"),
        pytest.param([slice_of(0, 0.42)] * 20, 0.02, id="soft interrupts for 40% are a load's"),
        pytest.param(
            [slice_of(0.2, 0.015)] * 10 + [slice_of(0.2, 0.5)] * 10, 0.015, id="without bursts"
        ),
    ],
)
def test_what_a_cpu_would_lose_if_it_were_idle(slices: list[Soaked], share: float) -> None:
    idle = idle_of({0: slices, 1: [slice_of(0, 0.02)] * 20})
    assert idle[0].share == pytest.approx(share, abs=1e-3)
    assert idle[1].share == pytest.approx(0.02, abs=1e-3)


def test_where_processes_left_nothing_of_any_cpu_nothing_is_known() -> None:
    assert idle_of({0: [slice_of(1, 0)] * 20}) == {}


def counters(**changes: Any) -> dict[str, Any]:
    """Two CPUs for a second: 0.6 CPUs of load, 2% interrupts; nothing ran in the idle window."""
    taken = int(2 * SECOND * (0.3 + 0.02 * 0.7))
    return {
        "taken_ns": [5, 5 + taken],
        "switched_ns": [0, int(0.6 * SECOND)],
        "stalled_ns": [0, 0],
        "stolen_ns": [7, 7],
        "quanta": [100, 100 + 2_000_000],
        "worked_ns": [0, 1_200_000_000],
        "used_ns": [0, 2 * SECOND - taken],
        "cpus": [2, 2],
        "idle_time_ns": [0, SECOND],
        "idle_taken_ns": [0, int(2 * SECOND * 0.02)],
        **{f"idle_{name}_ns": [0, 0] for name in ("switched", "stalled", "stolen")},
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


def test_what_the_hypervisor_takes_of_all_cpus_is_no_load() -> None:
    """A fifth of both CPUs, of the soakers' time and of the load's alike."""
    load, idle = 0.3 * 0.8, 0.02
    switched = int(2 * SECOND * 0.3)
    stalled = int(0.2 * (2 * SECOND - switched))
    taken = switched + stalled + int(idle * (2 * SECOND - switched - stalled))
    both = int(2 * SECOND * (0.2 + idle * 0.8))
    found = derived(
        taken_ns=[0, taken],
        stalled_ns=[0, stalled],
        stolen_ns=[SECOND, SECOND + int(0.4 * SECOND)],
        idle_taken_ns=[0, both],
        idle_stalled_ns=[0, int(0.4 * SECOND)],
        idle_stolen_ns=[0, int(0.4 * SECOND)],
    )
    assert found["system_cpu.soak"] == pytest.approx(2 * load)


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
        *({f"{name}_ns": None} for name in ("switched", "stalled", "stolen")),
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
    raw["sender"]["procstat"]["nice"] = [opening, closing + int(seconds * TICKS["a"])]
    raw["sender"]["soak"] = counters(used_ns=[7, 7 + int(seconds * SECOND)])
    assert metrics(raw, TICKS, shared=True)["system_cpu.procstat"] == pytest.approx(without)
