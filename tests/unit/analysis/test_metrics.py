"""Metrics from counters: the table of docs/records.md, and the service demand of 2006."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from netbench.base.json_lines import to_line
from netbench.read.accounts import ACCOUNTS, Account, accounts_of
from netbench.read.derive import demand, metrics_of
from netbench.read.metrics import METRICS, describe
from netbench.result.files import EngineRow
from netbench.result.record import parse_record
from tests.support.synthetic import HEAD

# Throughput 10^6 bit/s, then utilisation in % of one CPU and service demand in µs/KB of sender and
# receiver: netperf 2.4.2's own output in the post "Much improved sosend_*() functions",
# freebsd-current, 2006-09-29, message 451C4850.5030302@freebsd.org.
NETPERF = [
    ("1a", 921.28, 28.42, 2.527, 32.48, 2.888),
    ("1b", 921.39, 24.51, 2.179, 31.50, 2.801),
    ("2a", 897.63, 24.29, 2.216, 37.74, 3.445),
    ("2b", 919.71, 15.64, 1.393, 33.01, 2.940),
    ("3a", 941.60, 30.90, 2.689, 32.01, 2.785),
    ("3b", 941.59, 26.39, 2.296, 32.03, 2.787),
    ("4a", 921.98, 26.09, 2.318, 39.47, 3.507),
    ("4b", 938.44, 16.24, 1.418, 34.29, 2.993),
    ("5a", 941.62, 33.81, 2.941, 33.68, 2.930),
    ("5b", 941.60, 28.55, 2.484, 31.65, 2.754),
    ("6a", 922.92, 28.72, 2.549, 40.80, 3.621),
    ("6b", 939.14, 18.20, 1.587, 34.44, 3.004),
]
SIDES = [
    (f"{row[0]} {who}", row[1], row[i], row[i + 1])
    for row in NETPERF
    for who, i in (("send", 2), ("recv", 4))
]


def test_of_the_24_demands_20_are_the_printed_digits() -> None:
    """The other four differ by less than what throughput and utilisation were rounded by."""
    apart = {
        row: abs(demand(busy / 100, megabits / 1000) / expected - 1)
        for row, megabits, busy, expected in SIDES
        if f"{demand(busy / 100, megabits / 1000):.3f}" != f"{expected:.3f}"
    }
    assert len(SIDES) == 24
    assert set(apart) == {"2a send", "2a recv", "3a send", "6b send"}
    assert max(apart.values()) < 0.000355


def metrics(
    raw: dict[str, Any],
    ticks: dict[str, int],
    shared: bool,
    accounts: Mapping[str, Account] = ACCOUNTS,
) -> dict[str, float]:
    """The metrics of a record with these sides."""
    return metrics_of(parse_record(to_line(HEAD | raw), "test"), ticks, shared, accounts)


def record() -> dict[str, Any]:
    busy = {
        "user": [10, 20],
        "nice": [0, 0],
        "system": [5, 45],
        "idle": [0, 140],
        "iowait": [0, 7],
        "irq": [1, 1],
        "softirq": [2, 12],
        "steal": [0, 3],
    }
    rusage = {"cpu_ns": [1_000, 400_001_000], "user_us": [0, 100_000], "system_us": [0, 300_000]}
    return {
        "sender": {
            "host": "a",
            "time_ns": [5, 1_000_000_005],
            "flow": {"bytes": [[0, 0], [7, 9]]},
            "tcp": {"retransmits": [[3, 0], [5, 1]]},
            "rusage": rusage,
            "procstat": busy,
        },
        "receiver": {
            "host": "b",
            "time_ns": [0, 2_000_000_000],
            "flow": {"bytes": [[100, 50], [1_250_000_100, 1_250_000_050]]},
            "rusage": {"cpu_ns": [0, 1_000_000_000]},
            "procstat": {**busy, "user": [0, 100]},
        },
    }


def test_a_counter_that_went_backwards_is_no_measure() -> None:
    raw = record()
    raw["receiver"]["flow"]["bytes"] = [[500], [20]]
    assert "throughput" not in metrics(raw, TICKS, shared=False)


def test_refused_run_has_no_metric() -> None:
    assert metrics({"status": "refused"}, {}, shared=False) == {}


TICKS = {"a": 100, "b": 200}
CPUIDLE = [
    EngineRow("meter", "cpuidle", flags=("host_wide",)),
    EngineRow("counter", "idle_ns", "cpuidle", "ns", flags=("idle_time",)),
]


def test_two_kernels() -> None:
    found = metrics(record(), TICKS, shared=False)
    expected = {
        "throughput": 10.0,  # 2.5 GB in 2 s, by the receiver's count and clock
        "sender_cpu.rusage": 0.4,
        "receiver_cpu.rusage": 0.5,
        "system_cpu.rusage": 0.9,
        "sender_cpu.procstat": 0.6,  # 60 ticks of 1/100 s in 1 s, without idle, iowait and steal
        "receiver_cpu.procstat": 150 / 200 / 2,
        "system_cpu.procstat": 0.6 + 0.375,
        "sender_cpu": 0.6,  # by the best meter that ran
        "sender_demand": 0.6e6 / (10e9 / 8 / 1024),
        "sender_demand.rusage": 0.4e6 / (10e9 / 8 / 1024),
        "retransmits": 3,
        "sender_user_cpu": 0.1,
        "sender_kernel_cpu": 0.3,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert "receiver_user_cpu" not in found


def test_one_kernel_cannot_tell_sides_apart() -> None:
    raw = record()
    del raw["receiver"]["procstat"]
    found = metrics(raw, TICKS, shared=True)
    assert found["system_cpu"] == found["system_cpu.procstat"] == pytest.approx(0.6)
    assert found["sender_cpu"] == found["sender_cpu.rusage"]
    assert "sender_cpu.procstat" not in found
    assert "receiver_cpu.procstat" not in found


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        (("receiver", "flow"), {"throughput", "sender_demand", "system_demand.rusage"}),
        (("receiver", "time_ns"), {"throughput", "receiver_cpu", "system_cpu.rusage"}),
        (("sender", "rusage"), {"sender_cpu.rusage", "system_cpu.rusage", "sender_user_cpu"}),
        (("sender", "procstat", "softirq"), {"sender_cpu.procstat", "system_cpu.procstat"}),
        (("sender", "tcp"), {"retransmits"}),
        (("receiver",), {"throughput", "receiver_cpu", "system_cpu", "sender_demand"}),
    ],
)
def test_what_needs_a_missing_counter_is_absent(path: tuple[str, ...], gone: set[str]) -> None:
    raw = copy.deepcopy(record())
    assert gone <= set(metrics(raw, TICKS, shared=False))
    inner = raw
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    assert not gone & set(metrics(raw, TICKS, shared=False))


def test_unknown_ticks_leave_no_cpu_by_procstat() -> None:
    found = metrics(record(), {"a": 100}, shared=False)
    assert "receiver_cpu.procstat" not in found
    assert found["receiver_cpu"] == found["receiver_cpu.rusage"]


def test_no_data_has_steps_and_no_throughput() -> None:
    raw = record()
    for side in ("sender", "receiver"):
        raw[side]["flow"] = {"steps": [[0], [500]]}
    found = metrics(raw, TICKS, shared=False)
    assert found["steps"] == 500
    assert not {"throughput", "sender_demand"} & set(found)


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ({"bytes": 11_811_160_064, "seconds": 10.0}, 9.4489280512),
        ({"rate": "9.41 Gb/s"}, 9.41),
        ({"rate": "much"}, None),
        ({}, None),
    ],
)
def test_a_tools_words(tool: dict[str, Any], expected: float | None) -> None:
    raw = record()
    del raw["receiver"]["flow"]
    raw["receiver"]["tool"] = tool
    assert metrics(raw, TICKS, shared=False).get("throughput") == (
        None if expected is None else pytest.approx(expected)
    )


@pytest.mark.parametrize(
    ("tool", "gigabits"),
    [
        ({"bytes": 10**9, "seconds": 0.8}, 8.0),  # its time lies in the window of 1 s: its life
        ({"bytes": 10**9, "seconds": 1.25}, 6.4),  # the window lies in its time
        ({"rate": "8 Gb/s"}, None),
    ],
)
def test_cpu_and_bytes_of_a_tool_are_of_one_time(
    tool: dict[str, Any], gigabits: float | None
) -> None:
    raw = record()
    del raw["receiver"]["flow"]
    raw["receiver"]["tool"] = tool
    raw["captures"] = {"transactions": {"text": "25 ktps", "value": 25.0, "unit": "ktps"}}
    found = metrics(raw, TICKS, shared=False)
    cpu, told = found["sender_cpu.rusage"], found.get("sender_demand.rusage")
    wanted = gigabits and pytest.approx(cpu * 1e6 / (gigabits * 1e9 / 8 / 1024))
    assert (told, "throughput" in found) == (wanted, True)
    assert not [name for name in found if "request" in name]  # its requests are of its own time
    del raw["receiver"]["tool"]  # it told no throughput
    assert not [name for name in metrics(raw, TICKS, shared=False) if "request" in name]


def test_a_meter_that_only_the_rows_describe() -> None:
    rows = [
        EngineRow("meter", "toy", flags=("host_wide",)),
        EngineRow("counter", "busy_ns", "toy", "ns", flags=("cpu_time",)),
        EngineRow("counter", "loops", "toy"),
    ]
    raw = record()
    raw["sender"]["toy"] = {"busy_ns": [0, 700_000_000], "loops": [0, 9]}
    found = metrics(raw, TICKS, shared=True, accounts=accounts_of(rows))
    assert found["system_cpu.toy"] == pytest.approx(0.7)
    assert found["system_cpu"] == found["system_cpu.procstat"]  # which comes before others
    assert found["sender_cpu"] == found["sender_cpu.rusage"]


def test_what_is_left_of_the_window_is_busy_where_idle_is_measured() -> None:
    """Ticks that found work do not count then, nor does a CPU that went meanwhile."""
    raw, accounts = record(), accounts_of(CPUIDLE)
    del raw["receiver"]["procstat"]
    counted = raw["sender"]["procstat"]
    counted |= {"cpus": [2, 2], "user": [0, 9000]}
    assert metrics(raw, TICKS, shared=True)["system_cpu.procstat"] == pytest.approx(2 - 1.5)
    counted["iowait"] = [7, 0]  # it may go back
    assert metrics(raw, TICKS, shared=True)["system_cpu.procstat"] == pytest.approx(2 - 1.36)
    raw["sender"]["soak"] = {"used_ns": [0, 300_000_000]}
    assert metrics(raw, TICKS, shared=True)["system_cpu.procstat"] == pytest.approx(0.34)
    counted["cpus"] = [2, 1]
    assert "system_cpu.procstat" not in metrics(raw, TICKS, shared=True)
    del raw["sender"]["soak"]
    raw["sender"]["cpuidle"] = {"cpus": [2, 2], "idle_ns": [5, 5 + 1_250_000_000]}
    found = metrics(raw, TICKS, shared=True, accounts=accounts)
    assert found["system_cpu"] == found["system_cpu.cpuidle"] == pytest.approx(0.75)
    del raw["sender"]["cpuidle"]["cpus"]
    assert "system_cpu.cpuidle" not in metrics(raw, TICKS, shared=True, accounts=accounts)


def test_the_conductors_half_needs_no_pandas() -> None:
    code = "import sys, netbench.stats.closing, netbench.read.derive; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_metric_says_its_unit_formula_and_source() -> None:
    """The reference page of metrics is made from these."""
    for name, metric in METRICS.items():
        assert name == metric.name
        assert all((metric.unit, metric.about, metric.formula, metric.source)), name
        assert metric.better in (-1, 0, 1)
    for name in metrics(record(), TICKS, shared=False):
        assert describe(name).unit
