"""Profiles in the report: Andrew Morton's of 2001, layers, flame graphs, damaged files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from netbench import api
from netbench.read.profiles import GIB, difference, layer_of, profiles_of
from netbench.report import text
from netbench.report.build import Report, build
from netbench.result.codec import SCHEMA, to_json
from netbench.result.profile_files import (
    KERNEL_MARK,
    PROFILES,
    Folded,
    KernelProfile,
    ProfileRecord,
    folded_text,
)
from netbench.result.record import SideCounters
from tests.support.synthetic import Synth

SECOND = 10**9
# send(8k) without and with scatter-gather: 002_…, those that cost most, and what is left of 2874
# and 3222 ticks.
NO_SG = {"file_read_actor": 548, "csum_partial_copy_generic": 436, "__kfree_skb": 113, "rest": 1777}
SG = {"file_read_actor": 615, "csum_partial_copy_generic": 520, "__kfree_skb": 96, "rest": 1991}


def stacks_of(functions: Mapping[str, int]) -> dict[tuple[str, ...], int]:
    own = {("sender", "[worker-x86_64]", f"{name}_[k]"): ticks for name, ticks in functions.items()}
    return own | {
        ("swapper", "do_idle_[k]", "default_idle_[k]"): 5000,
        ("python", "[libc.so.6]"): 600,
        ("swapper", "entry_SYSCALL_64_after_hwframe_[k]", "ksys_read_[k]"): 100,
    }


def store(
    result: Path, runs: Sequence[tuple[str, Folded]], side: str = "system", period: int = 1
) -> Path:
    """Give a result profile runs, 1 GiB a second. period: cycles between two samples; 1: ticks."""
    (result / PROFILES).mkdir()
    counters = SideCounters(
        "a", (10 * SECOND, 11 * SECOND), meters={"flow": {"bytes": [[0], [GIB]]}}
    )
    with (result / PROFILES / "runs.jsonl").open("w") as lines:
        for number, (cell, stacks) in enumerate(runs, 1):
            file = f"{number:06d}.{side}.folded"
            counted = {stack: samples * period for stack, samples in stacks.items()}
            (result / PROFILES / file).write_text(folded_text(counted))
            event, times = "cycles" if period > 1 else "cpu-clock", (10 * SECOND, 11 * SECOND)
            profile = KernelProfile("a", event, 997, times, 2, sum(stacks.values()), 0)
            record = ProfileRecord(
                number,
                cell,
                "a>b",
                0,
                0,
                dict(part.split("=") for part in cell.split(",")),
                "ok",
                "",
                "2026-03-01T12:00:00.123456Z",
                counters,
                counters,
                {side: replace(profile, file=file, kernel_symbols=1)},  # type: ignore[dict-item]
            )
            lines.write(json.dumps({"schema": SCHEMA, **to_json(record)}) + "\n")
    return result


@pytest.fixture
def result(tmp_path: Path) -> Path:
    made = Synth(
        factors={"sg": ("off", "on")},
        compare={"factor": "sg", "baseline": "off", "margin": None},
        pairs=("a>b",),
    )
    return made.write(tmp_path / "r")


def more(functions: Mapping[str, int], by: int) -> dict[tuple[str, ...], int]:
    return stacks_of({name: ticks + by for name, ticks in functions.items()})


def told(report: Report, width: int = 80) -> list[str]:
    return list(text.section_lines(report.section("profile"), width))


def test_a_function_is_one_in_a_module_and_built_in(result: Path) -> None:
    """virtio_pci is a module of Debian's 6.1, and part of its 6.12."""
    one = {("sender", "vp_notify [virtio_pci]_[k]"): 40, ("sender", "poll [a]_[k]"): 9}
    two = {("sender", "vp_notify_[k]"): 70, ("sender", "poll [a]_[k]"): 9, ("sender", "[vdso]"): 1}
    store(result, [("sg=off", one), ("sg=on", two)])
    lines = [line.split() for line in told(build(result))]
    assert ["vp_notify", "40", "70", "+30", "±21"] in lines, "the difference"
    assert ["device", "vp_notify", "70"] in lines, "the table of a cell"
    assert ["[vdso]", "(user)", "0", "1", "+1", "±2"] in lines


def test_runs_that_counted_ticks_and_cycles_are_two_profiles(result: Path) -> None:
    """Of a host whose counters another program took, or a guest that was moved."""
    kept, lines = result / PROFILES, []
    for period in (1, 3_000_000):
        shutil.rmtree(kept, ignore_errors=True)
        store(result, [("sg=off", stacks_of(SG))], period=period)
        lines.append((kept / "runs.jsonl").read_text())
    (kept / "runs.jsonl").write_text("".join(lines))
    assert [cell.unit for cell in profiles_of(result).cells] == ["ticks", "cycles"]


@pytest.mark.parametrize("period", [1, 3_000_000], ids=["ticks", "cycles"])
@pytest.mark.parametrize("runs", [1, 3])
def test_few_samples_have_the_interval_of_a_count(result: Path, period: int, runs: int) -> None:
    """Equal counts in all runs leave the chance that counting has: of samples, not of cycles."""
    few, more = (("sg=off", stacks_of({"f": 4})), ("sg=on", stacks_of({"f": 9})))
    store(result, [few] * runs + [more] * runs, period=period)
    before, after = sorted(profiles_of(result).cells, key=lambda cell: cell.totals)
    (change,) = difference(before, after).functions
    half = 1.96 * ((4 + 9) / runs) ** 0.5 * period
    assert change.change.half_width == pytest.approx(half, rel=1e-3)
    assert change.change.mean == 5 * period


def test_idle_and_other_programs_are_left_out_and_told(result: Path) -> None:
    (cell,) = profiles_of(store(result, [("sg=off", stacks_of(NO_SG))])).cells
    (run,) = cell.runs
    assert cell.totals == [pytest.approx(2874)]
    assert run.idle == pytest.approx(5000 / (5000 + 700 + 2874))
    assert run.others == pytest.approx(700 / (5000 + 700 + 2874))


SOFTIRQ = {
    ("python", "x", "handle_softirqs_[k]", "tcp_v4_rcv_[k]"): 10,
    ("kworker/0:1", "ret_from_fork_asm_[k]", "kthread_[k]", "worker_thread_[k]"): 5,
    ("python", "x", "ksys_read_[k]"): 3,
    ("db", "ret_from_fork_asm_[k]", "ret_from_fork_[k]", "get_signal_[k]"): 9,
}


@pytest.mark.parametrize(
    ("stacks", "moved", "cost"),
    [
        pytest.param(SOFTIRQ, (1, 1), 15, id="softirq work counts wherever it was done"),
        pytest.param({("sender", "f_[k]"): 100}, (4, 2), 50, id="per byte: 4 GiB in 2 s"),
    ],
)
def test_the_cost_is_the_transfers_per_byte(
    result: Path, stacks: Folded, moved: tuple[int, int], cost: float
) -> None:
    store(result, [("sg=off", stacks)])
    file = result / PROFILES / "runs.jsonl"
    line = json.loads(file.read_text())
    line["receiver"]["flow"]["bytes"] = [[GIB], [(1 + moved[0]) * GIB]]
    line["receiver"]["time_ns"] = [10 * SECOND, (10 + moved[1]) * SECOND]
    file.write_text(json.dumps(line) + "\n")
    (cell,) = profiles_of(result).cells
    assert cell.totals == [pytest.approx(cost)]


DAMAGES = {
    "a stack without a count": ("000001.system.folded", "sender;f_[k]\n", ":1: not a stack"),
    "a count that is none": ("000001.system.folded", "sender;f_[k] many\n", ":1: not a stack"),
    "a line of another program": ("runs.jsonl", "no profile\n", "runs.jsonl:1: not JSON"),
    "a key too many": (
        "runs.jsonl",
        '{"schema": 2, "run": 1}\n',
        "runs.jsonl:1: not a profile run",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_profile_is_told_and_the_rest_is_read(result: Path, damage: str) -> None:
    name, contents, message = DAMAGES[damage]
    store(result, [("sg=off", stacks_of(NO_SG)), ("sg=on", stacks_of(SG))])
    (result / PROFILES / name).write_text(contents)
    report = build(result)
    lines = told(report)
    assert message in " ".join(told(report, 400))
    assert report.section("cells").blocks
    if name != "runs.jsonl":
        assert ["total", "3222"] in [line.split() for line in lines]


def test_why_there_is_no_profile_is_told(result: Path) -> None:
    store(result, [("sg=off", stacks_of(NO_SG))])
    file = result / PROFILES / "runs.jsonl"
    line = json.loads(file.read_text()) | {"status": "unsupported", "reason": "no root there"}
    file.write_text(json.dumps(line) + "\n")
    assert "- 1 profile run gave none: no root there" in told(build(result))


def test_without_profiles_there_is_no_section(result: Path) -> None:
    with pytest.raises(KeyError):
        build(result).section("profile")


def test_the_stacks_are_one_file_beside_the_page(result: Path, tmp_path: Path) -> None:
    report = build(store(result, [("sg=off", stacks_of(NO_SG)), ("sg=on", stacks_of(SG))]))
    page = tmp_path / "page.html"
    api.write_report(report, {"html": page})
    assert page.read_text().count('href="page.speedscope.json"') == 1
    written = json.loads((tmp_path / "page.speedscope.json").read_text())
    frames = [frame["name"] for frame in written["shared"]["frames"]]
    profiles = {one["name"]: one for one in written["profiles"]}
    assert list(profiles) == ["sg=off [ticks per GiB]", "sg=on [ticks per GiB]"]
    for name, cost in (("sg=off", 548), ("sg=on", 615)):
        one = profiles[f"{name} [ticks per GiB]"]
        costs = {
            frames[stack[-1]].removesuffix(KERNEL_MARK): weight
            for stack, weight in zip(one["samples"], one["weights"], strict=True)
        }
        assert costs["file_read_actor"] == pytest.approx(cost)
        assert one["endValue"] == pytest.approx(sum(one["weights"]))


LAYERS = {
    "_copy_to_iter": "data copy",
    "rep_movs_alternative": "data copy",
    "csum_partial_copy_generic": "data copy",
    "skb_copy_datagram_iter": "data copy",
    "tcp_sendmsg_locked": "TCP/IP",
    "__tcp_transmit_skb": "TCP/IP",
    "tcp_write_xmit": "TCP/IP",
    "tcp_rcv_space_adjust.part.0": "TCP/IP",
    "ip_finish_output2": "TCP/IP",
    "nf_hook_slow": "TCP/IP",
    "virtnet_poll [virtio_net]": "device",
    "mlx5e_xmit [mlx5_core]": "device",
    "veth_xmit [veth]": "device",
    "__dev_queue_xmit": "device",
    "net_rx_action": "device",
    "skb_release_data": "skb",
    "__alloc_skb": "skb",
    "kmem_cache_free": "memory",
    "shmem_file_splice_read": "memory",
    "__check_object_size": "memory",
    "_raw_spin_lock_bh": "locks",
    "native_queued_spin_lock_slowpath": "locks",
    "__local_bh_enable_ip": "locks",
    "__schedule": "scheduling",
    "finish_task_switch.isra.0": "scheduling",
    "try_to_wake_up": "scheduling",
    "entry_SYSCALL_64_after_hwframe": "other",
    "__x64_sys_sendfile64": "other",
    "vfs_read": "other",
    "pv_native_safe_halt": "idle",
    "intel_idle": "idle",
    "unheard_of": "unmapped",
}


@pytest.mark.parametrize("function", LAYERS)
def test_a_function_has_the_layer_of_what_it_does(function: str) -> None:
    assert layer_of(f"{function}_[k]") == LAYERS[function]


def test_user_code_is_no_layer_of_the_kernel() -> None:
    assert layer_of("tcp_sendmsg_locked") == "other"


def test_what_a_clock_cannot_sample_is_no_lock(result: Path) -> None:
    """A tick waits until interrupts are on again; an event of the CPU's counters does not."""
    frame = "_raw_spin_unlock_irqrestore_[k]"
    assert [layer_of(frame), layer_of(frame, by_clock=True)] == ["locks", "irqs off"]
    lines = told(build(store(result, [("sg=off", stacks_of({frame.removesuffix("_[k]"): 50}))])))
    assert "irqs off 50" in [" ".join(line.split()) for line in lines]
    assert not any(line.startswith("locks") for line in lines)


def test_a_difference_of_a_profile_with_itself_is_nothing(result: Path) -> None:
    (cell,) = profiles_of(store(result, [("sg=off", stacks_of(NO_SG))] * 3)).cells
    change = difference(cell, cell)
    assert {one.change.mean for one in (change.total, *change.functions)} == {0.0}
