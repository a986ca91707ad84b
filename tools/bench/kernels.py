"""Kernels as a factor: how long a campaign of guests takes, how long its boots, and what the
controller adds to them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from netbench import lab as labs
from netbench.base.errors import LabRefused
from netbench.model import Kernel
from netbench.stats.intervals import mean_interval
from tools.bench import command
from tools.bench.table import Part, Row

CAMPAIGN = Path("campaigns") / "kernels.yaml"
KERNELS = ("6.1", "6.12")
SWITCHES = 3  # kexec boots of each kernel
CAMPAIGN_SECONDS, START_SECONDS, SWITCH_SECONDS, WORK_SECONDS = 420.0, 8.0, 20.0, 1.0
KEXEC = """netbench: 1
name: kexec
verify: off
transfer: {duration: 50ms, warmup: 10ms, congestion: cubic}
sweep: {kernel: ["6.1", "6.12"]}
repeat: {min: %d, boots: %d}
"""
TITLE = "Kernels as a factor: boots of emulated guests"
HOW = (
    "`campaigns/kernels.yaml` with `lab: qemu`: two guests under software emulation on this"
    " machine, two kernels x four boots x 8 cells x 1 s runs, two blocks a boot. A guest's start:"
    " from the order to start its QEMU anew to its answer over SSH with the wanted release, both"
    " guests starting at the same time. The controller's work a boot: from the last host's answer"
    " to the first run (workers copied and started, locks, facts, readings against noise), in"
    f" boots without verification. kexec: the same two guests with a disk for /boot, {SWITCHES}"
    " boots of each kernel by `kexec -s -l` over SSH, from the order to the answer. Means with"
    " Student's t intervals over boots; budgets are compared with the longest."
)
NOTES = (
    (
        "The controller's work holds what emulated guests need to take in a worker over SSH: a real"
        " host is faster."
    ),
)


@dataclass(frozen=True)
class Boots:
    """Seconds of each boot (the slower host's), and from there to the first run."""

    waits: tuple[float, ...]
    works: tuple[float, ...]


def _instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def boots(
    journal: Sequence[Mapping[str, Any]], records: Sequence[Mapping[str, Any]], verified: int
) -> Boots:
    """What a journal and its records say of boots; those with a number up to `verified` are not
    asked about work.
    """
    begun: dict[int, float] = {}
    ended: dict[int, float] = {}
    for entry in journal:
        if entry["kind"] == "boot":
            begun[entry["number"]] = min(
                begun.get(entry["number"], float("inf")), _instant(entry["time"])
            )
        if entry["kind"] == "booted":
            ended[entry["number"]] = max(ended.get(entry["number"], 0.0), _instant(entry["time"]))
    first: dict[int, float] = {}
    for record in records:
        first.setdefault(record["boot"], _instant(record["started"]))
    waits = tuple(ended[number] - begun[number] for number in sorted(ended))
    works = tuple(
        first[number] - ended[number]
        for number in sorted(ended)
        if number > verified and number in first
    )
    return Boots(waits, works)


def _lines(file: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def _row(what: str, values: Sequence[float], budget: float) -> Row:
    interval = mean_interval(list(values), 0.95)
    spread = (
        f"{interval.mean:.1f} s ({interval.low:.1f} to {interval.high:.1f}), longest"
        f" {max(values):.1f} s"
    )
    return Row(what, spread, "", "", f"{budget:g} s", max(values) <= budget)


def _rows(scratch: Path) -> Iterator[Row]:
    ran = command.run(CAMPAIGN.read_text() + "lab: qemu\n", scratch)
    seconds, folder = ran.seconds, ran.results.path
    records = _lines(folder / "records.jsonl")
    failed = sum(record["status"] != "ok" for record in records)
    ours = f"{seconds:.0f} s for {len(records)} runs" + (
        f", {failed} of them not ok" if failed else ""
    )
    yield Row(
        "the campaign, lab included",
        ours,
        "",
        "",
        f"{CAMPAIGN_SECONDS:.0f} s",
        seconds <= CAMPAIGN_SECONDS and not failed,
    )
    found = boots(_lines(folder / "journal.jsonl"), records, verified=len(KERNELS))
    yield _row(
        f"a guest's start until it answers ({len(found.waits)} boots)", found.waits, START_SECONDS
    )
    yield _row(
        f"the controller's work a boot ({len(found.works)} boots)", found.works, WORK_SECONDS
    )
    made = labs.up(
        "qemu",
        2,
        name="benchkexec",
        kernels=[Kernel(name, release=name) for name in KERNELS],
        disk=True,
    )
    try:
        block = made.block()
        for host in block["hosts"].values():
            host["boot"] = "kexec"
        folder = command.run(
            KEXEC % (SWITCHES, SWITCHES) + yaml.safe_dump(block), scratch
        ).results.path
    finally:
        labs.down(made.name)
    found = boots(_lines(folder / "journal.jsonl"), _lines(folder / "records.jsonl"), verified=0)
    yield _row(f"a switch by kexec ({len(found.waits)} boots)", found.waits, SWITCH_SECONDS)


def measure() -> Part:
    """Needs root, /dev/net/tun and the packages that README.md names for labs of guests."""
    try:
        with tempfile.TemporaryDirectory(prefix="netbench-bench-") as scratch:
            return Part(TITLE, HOW, tuple(_rows(Path(scratch))), NOTES)
    except LabRefused as error:
        return Part(TITLE, HOW, (Row("everything", "", "", f"not measured: {error}", "", None),))
