"""Metrics that are counters over others: each from its formula, nothing divided by 0."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from netbench.base.json_lines import to_line
from netbench.read.derive import metrics_of
from netbench.read.metrics import METRICS, RATIOS
from netbench.result.record import parse_record
from tests.support.synthetic import HEAD

TICKS = {"a": 100, "b": 100}


def side(host: str, seconds: int, namespace: int, **own: Any) -> dict[str, Any]:
    counters = {
        "interrupts": 900,
        "softirqs": 5_000,
        "link_rx_packets": 1_000,
        "link_tx_packets": 3_000,
        "link_rx_bytes": 66_000,
        "link_tx_bytes": 12_000_000,
        "link_interrupts": 500,
        "ip_out_requests": 400,
        "ip_in_receives": 250,
        "ip_in_no_ect": 3_000,
        "ip_in_ect": 2_000,
        "tcp_out_segments": 8_000,
    } | own
    return {
        "host": host,
        "time_ns": [0, seconds * 10**9],
        "flow": {"bytes": [[10], [seconds * 2**24 + 10]]},
        "procstat": {"softirq": [5, 25]},
        "softirq": {name: [7, 7 + n] for name, n in counters.items()}
        | {"namespace": [namespace, namespace]},
        "perf": {
            "kernel_cycles": [0, 2**24],
            "user_cycles": [0, 2**23],
            "kernel_instructions": [0, 2**22],
            "user_instructions": [0, 2**22],
            "cycles_enabled_ns": [0, 1_000],
            "cycles_running_ns": [0, 500],
            "kernel_cache_misses": [0, 2**14],
            "user_cache_misses": [0, 0],
            "misses_enabled_ns": [0, 10],
            "misses_running_ns": [0, 10],
            "context_switches": [0, 40],
        },
        "energy": {
            "counted_uj": [0, 3_000_000],
            "idle_time_ns": [0, 2 * 10**9],
            "idle_counted_uj": [5, 1_000_005],
        },
    }


def record(receivers_namespace: int = 2) -> dict[str, Any]:
    return HEAD | {"sender": side("a", 1, 1), "receiver": side("b", 2, receivers_namespace)}


def metrics(raw: dict[str, Any], shared: bool = False) -> dict[str, float]:
    return metrics_of(parse_record(to_line(raw), "test"), TICKS, shared)


EXPECTED = {
    "sender_interrupts": 900,
    "receiver_interrupts": 450,
    "interrupts": 1350,
    "softirqs": 7500,
    "sender_softirq_time": 0.2,
    "softirq_time": 0.3,
    "sender_packets": 4000,
    "receiver_packets": 2000,
    "packets": 6000,
    "packets_per_interrupt": 8,
    "sender_packets_per_interrupt": 8,
    "bytes_per_packet": 12_066_000 / 4000,
    "gso_size": 2**24 / 400,
    "gso_segments": 20,
    "gro_size": 2 * 2**24 / 250,
    "gro_segments": 20,
    "sender_cycles_per_byte": 3.0,  # 1.5, counted half of the time
    "receiver_cycles_per_byte": 1.5,
    "cycles_per_byte": 4.5,
    "receiver_kernel_cycles_per_byte": 1.0,
    "sender_instructions_per_byte": 1.0,
    "sender_instructions_per_cycle": 1 / 3,
    "sender_context_switches": 40,
    "sender_energy": 192,
    "energy": 288,
    "sender_energy_less_idle": (3 - 0.5) * 64,  # 0.5 W while idle, 16 MiB in 1 s
    "receiver_energy_less_idle": (3 - 2 * 0.5) * 32,
    "energy_less_idle": 224,
    "sender_power": 3,
}


def test_two_hosts() -> None:
    found = metrics(record())
    assert {name: found[name] for name in EXPECTED} == pytest.approx(EXPECTED)


def test_one_kernel_with_two_namespaces() -> None:
    """The whole kernel is read once, by the sender's worker; interfaces by each."""
    raw = record()
    for name in ("procstat", "perf", "energy"):
        del raw["receiver"][name]
    del raw["receiver"]["softirq"]["interrupts"]
    found = metrics(raw, shared=True)
    assert found["interrupts"] == 900
    assert found["cycles_per_byte"] == 3.0
    assert found["energy"] == 192
    assert not [name for name in found if name.endswith("er_interrupts") and "link" not in name]
    assert not [name for name in found if name.startswith("sender_") and "cycles" in name]
    assert (found["sender_packets"], found["receiver_packets"]) == (4000, 2000)
    assert found["gso_size"] == pytest.approx(2**24 / 400)


def test_events_beside_soak_are_the_soakers_own() -> None:
    """A soaker fills what the load leaves: nearly all cycles of a quiet host would be its own."""
    raw = record()
    raw["sender"]["soak"] = {"used_ns": [[0], [10**9]]}
    found = metrics(raw)
    assert not {"cycles_per_byte", "instructions_per_byte", "context_switches"} & set(found)
    assert found["interrupts"] == EXPECTED["interrupts"]


def test_one_namespace_cannot_tell_the_sides_packets_apart() -> None:
    found = metrics(record(receivers_namespace=1), shared=True)
    assert found["packets"] == 4000, "not counted twice"
    assert found["bytes_per_packet"] == 12_066_000 / 4000
    assert not [name for name in found if name.startswith(("gso", "gro"))]
    assert "sender_packets" not in found
    two_kernels = metrics(record(receivers_namespace=1), shared=False)
    assert two_kernels["sender_packets"] == 4000, "numbers of two kernels' namespaces may be equal"


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("softirq link_interrupts", {"packets_per_interrupt", "sender_packets_per_interrupt"}),
        ("softirq", {"packets", "interrupts", "gso_size", "bytes_per_packet"}),
        ("flow", {"gso_size"}),
        ("receiver flow", {"cycles_per_byte", "energy", "sender_energy", "gro_size"}),
        ("perf cycles_running_ns", {"cycles_per_byte", "sender_instructions_per_byte"}),
        ("time_ns", {"packets", "power"}),
        ("energy idle_counted_uj", {"sender_energy_less_idle", "energy_less_idle"}),
        ("energy idle_time_ns", {"sender_energy_less_idle", "energy_less_idle"}),
    ],
)
@pytest.mark.parametrize("how", ["missing", "still", "backwards"])
def test_nothing_is_derived_of_what_is_missing_or_divided_by_0(
    path: str, gone: set[str], how: str
) -> None:
    raw = copy.deepcopy(record())
    *above, last = path.split()
    inner: dict[str, Any] = raw if above == ["receiver"] else raw["sender"]
    for key in above:
        inner = inner[key]
    assert gone <= set(metrics(raw))
    if how == "missing" or above in ([], ["receiver"]):
        del inner[last]
    else:
        inner[last] = [5, 5] if how == "still" else [5, 4]
    assert not gone & set(metrics(raw))


def test_payload_of_an_external_tool_is_what_it_said() -> None:
    raw = record()
    for who in ("sender", "receiver"):
        del raw[who]["flow"]
    raw["receiver"]["tool"] = {"bytes": 2**24, "seconds": 1.0}
    assert metrics(raw)["sender_cycles_per_byte"] == pytest.approx(3.0)


def test_the_formula_of_each_ratio_names_its_counters() -> None:
    for row in RATIOS:
        own = METRICS[row.name if row.side else f"sender_{row.name}"]
        over = row.over if isinstance(row.over, tuple) else ()
        for counter in (*row.counters, *over, *(row.share or ())):
            assert counter in own.formula
