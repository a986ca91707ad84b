"""Pairs at the same time from one controller: what a run costs it beside 63 others and alone. Data
is moved by `null`, so that what is measured is the controller.
"""

from __future__ import annotations

import json
import os
import resource
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import yaml

from netbench import campaign
from netbench import lab as labs
from netbench.conductor import conductor
from netbench.conductor.ledger import Ledger
from netbench.conductor.progress import Silent
from netbench.lab import Lab
from netbench.record import Record
from tools.bench.table import Row

PAIRS = 64
RUNS_ALONE, BLOCKS = 200, 6
TIMES = 2.0  # a run beside others costs as much at most
TEXT = """netbench: 1
name: fleet-rounds
overlap: kernel
verify: off
transfer: {{send: 'null', receive: 'null', duration: 50ms, warmup: 10ms, sample: 0}}
meters: [rusage]
repeat: {{min: {blocks}, max: {blocks}}}
{hosts}
"""


HOW = (
    f"Side by side: `null` between {PAIRS} pairs of network namespaces, 60 ms a run, {BLOCKS}"
    f" blocks; alone: {RUNS_ALONE} runs of one of these pairs. The cost of a run is the CPU time of"
    " the controller's process."
)


@dataclass
class Watched(Silent):
    """The controller's CPU and wall time, in seconds, when the last run of each block was kept."""

    cpu: dict[int, float] = field(default_factory=dict)
    wall: dict[int, float] = field(default_factory=dict)

    def ran(self, record: Record, ledger: Ledger, left: float) -> None:
        self.cpu[record.block], self.wall[record.block] = time.process_time(), time.monotonic()


@dataclass(frozen=True)
class Measured:
    """Of a campaign: the controller's CPU time for a run, in s; the time of a block, in s; how far
    the windows of a block opened from each other, in s, for each block.
    """

    cpu: float
    block: float
    spread: Sequence[float]


def rows() -> list[Row]:
    """Rows of 64 pairs at the same time. Errors: LabRefused."""
    names = [f"h{n}" for n in range(2 * PAIRS)]
    made = labs.up("netns", names, name=f"b{os.getpid()}")
    try:
        alone, beside = _measured(made, 1, RUNS_ALONE), _measured(made, PAIRS, BLOCKS)
    finally:
        labs.down(made.name)
    times = beside.cpu / alone.cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        Row("the controller's CPU for a run of one pair alone", _ms(alone.cpu), "", "", "", None),
        Row(
            f"the same of {PAIRS} pairs at the same time",
            _ms(beside.cpu),
            "",
            f"{times:.2f} times",
            f"at most {TIMES:g} times",
            times <= TIMES,
        ),
        Row(f"a block of {PAIRS} runs of 60 ms", _ms(beside.block), "", _ms(alone.block), "", None),
        Row(f"windows of {PAIRS} pairs open within", _ms(median(beside.spread)), "", "", "", None),
        Row("the controller's memory at most", f"{peak:.0f} MiB", "", "", "", None),
    ]


def _measured(made: Lab, pairs: int, blocks: int) -> Measured:
    hosts = made.block()
    names = list(hosts["hosts"])[: 2 * pairs]
    hosts["hosts"] = {name: hosts["hosts"][name] for name in names}
    hosts["pairs"] = [
        {"sender": a, "receiver": b} for a, b in zip(names[::2], names[1::2], strict=True)
    ]
    text = TEXT.format(blocks=blocks, hosts=yaml.safe_dump(hosts, sort_keys=False))
    watched = Watched()
    with tempfile.TemporaryDirectory() as folder:
        done = conductor.start(campaign.parse(text, "fleet.yaml"), Path(folder), watched)
        if done.why != "done" or done.failed:
            raise RuntimeError(f"the campaign ended as {done.why}: {done.reason}")
        lines = (done.path / "records.jsonl").read_text().splitlines()
    opened = defaultdict(list)
    for record in map(json.loads, lines):
        opened[record["block"]].append(record["sender"]["time_ns"][0] / 1e9)
    first, last = min(watched.cpu), max(watched.cpu)
    runs = pairs * (last - first)
    return Measured(
        (watched.cpu[last] - watched.cpu[first]) / runs,
        (watched.wall[last] - watched.wall[first]) / (last - first),
        [max(each) - min(each) for each in opened.values()],
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"


if __name__ == "__main__":
    for row in rows():
        print(row)
