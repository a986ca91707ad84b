"""Who paid: shares of the CPU time, each from its formula, and none where it cannot be told."""

from __future__ import annotations

from typing import Any

import pytest

from netbench.read.accounts import accounts_of
from netbench.result.files import EngineRow
from tests.unit.analysis.test_metrics import TICKS, metrics, record
from tests.unit.analysis.test_soak import SECOND, counters

SHARES = ("sender_paid", "receiver_paid", "others_paid")


def one_kernel(**procstat: Any) -> dict[str, Any]:
    """60 ticks in the second: 30 on the sender's CPU, 20 on the receiver's."""
    raw = record()
    raw["receiver"]["time_ns"] = [0, SECOND]
    del raw["receiver"]["procstat"]
    raw["sender"]["procstat"] |= {"pinned_busy": [7, 37], "peer_busy": [1, 21]} | procstat
    return raw


def test_two_cpus_of_one_kernel() -> None:
    found = metrics(one_kernel(), TICKS, shared=True)
    assert [found[name] for name in SHARES] == pytest.approx([1 / 2, 1 / 3, 1 / 6])


@pytest.mark.parametrize(
    ("meter", "name", "unit"), [("procstat", "idle", 1), ("cpuidle", "idle_ns", 10**7)]
)
def test_what_a_side_s_cpus_were_not_idle_is_theirs(meter: str, name: str, unit: int) -> None:
    """As above, of a window of 100 ticks; what an earlier version counted is not there."""
    raw = one_kernel()
    for counter in ("pinned_busy", "peer_busy"):
        del raw["sender"]["procstat"][counter]
    counted = {"pinned_cpus": [1, 1], "peer_cpus": [1, 1]}
    counted |= {f"{who}_{name}": [9, 9 + n * unit] for who, n in (("pinned", 70), ("peer", 80))}
    if meter == "cpuidle":
        counted |= {"cpus": [2, 2], "idle_ns": [0, 140 * unit]}
    raw["sender"].setdefault(meter, {}).update(counted)
    rows = [
        EngineRow("meter", "cpuidle", flags=("host_wide",)),
        EngineRow("counter", "idle_ns", "cpuidle", "ns", flags=("idle_time",)),
    ]
    found = metrics(raw, TICKS, shared=True, accounts=accounts_of(rows))
    assert [found[each] for each in SHARES] == pytest.approx([1 / 2, 1 / 3, 1 / 6])


def test_a_cpu_of_each_of_two_kernels() -> None:
    """0.6 and 0.375 CPUs busy; the sender's clock has 100 ticks a second, the receiver's 200."""
    raw = record()
    raw["sender"]["procstat"] |= {"pinned_busy": [0, 50]}
    raw["receiver"]["procstat"] |= {"pinned_busy": [0, 120]}
    found = metrics(raw, TICKS, shared=False)
    own = [0.5, 120 / 200 / 2]
    assert [found[name] for name in SHARES] == pytest.approx(
        [own[0] / 0.975, own[1] / 0.975, 1 - sum(own) / 0.975]
    )


def test_soak_goes_before_procstat() -> None:
    """0.6 CPUs busy, 0.4 of them on the sender's; 2% of each is an idle CPU's loss."""
    raw = one_kernel()
    sender, receiver = (busy + 0.02 * (1 - busy) for busy in (0.4, 0.2))
    raw["sender"]["time_ns"] = [0, SECOND]
    raw["sender"]["soak"] = counters(
        pinned_taken_ns=[3, 3 + int(SECOND * sender)],
        pinned_stolen_ns=[0, 0],
        pinned_cpus=[1, 1],
        peer_taken_ns=[0, int(SECOND * receiver)],
        peer_stolen_ns=[0, 0],
        peer_cpus=[1, 1],
    )
    found = metrics(raw, TICKS, shared=True)
    assert [found[name] for name in SHARES] == pytest.approx([2 / 3, 1 / 3, 0], abs=1e-6)


def test_several_cpus_of_a_side_are_added_up() -> None:
    """0.4 of two CPUs, of which each loses 2% when it is idle, and nothing on others."""
    raw = one_kernel()
    raw["sender"]["time_ns"] = [0, SECOND]
    taken = int(2 * SECOND * (0.3 + 0.02 * 0.7))
    raw["sender"]["soak"] = counters(
        pinned_taken_ns=[0, taken],
        pinned_stolen_ns=[0, 0],
        pinned_cpus=[2, 2],
        peer_taken_ns=[0, int(SECOND * 0.02)],
        peer_stolen_ns=[0, 0],
        peer_cpus=[1, 1],
    )
    found = metrics(raw, TICKS, shared=True)
    assert [found[name] for name in SHARES] == pytest.approx([1, 0, 0], abs=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {"peer_busy": None},  # unpinned, or both on one CPU
        {"pinned_busy": None},
        {"pinned_busy": [9, 5]},
        {"softirq": None},
        {name: [4, 4] for name in ("user", "nice", "system", "irq", "softirq")},
    ],
    ids=str,
)
def test_without_all_of_it_no_share_is_told(changes: dict[str, Any]) -> None:
    raw = one_kernel(**changes)
    procstat = raw["sender"]["procstat"]
    raw["sender"]["procstat"] = {k: v for k, v in procstat.items() if v is not None}
    assert not {*SHARES} & set(metrics(raw, TICKS, shared=True))
