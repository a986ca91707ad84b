"""Pairs at the same time from one controller: what a run costs it beside 63 others and alone. Data
is moved by `null`, so that what is measured is the controller.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from netbench import campaign
from netbench import lab as labs
from netbench.hosts.deploy import PACKAGE
from netbench.hosts.host_channel import Channel
from netbench.hosts.local import LocalChannel
from netbench.model import Host
from netbench.result.record import Record
from netbench.run import conductor
from netbench.run.ledger import Ledger
from netbench.run.progress import Silent
from netbench.run.worker_pool import ChannelFactory, open_channel
from tools.bench.table import Row

PAIRS = 64
RUNS_ALONE, BLOCKS = 200, 6
MANY, MANY_BLOCKS = 500, 3
MANY_SECONDS, MANY_MIB = 2.0, 1024
# `null` spins: all flows share one CPU, and leave the others to the controller.
PIN = f"pin: {{sender: {(os.cpu_count() or 1) - 1}, receiver: {(os.cpu_count() or 1) - 1}}}"
SHORT = f"send: 'null', receive: 'null', duration: 50ms, warmup: 10ms, {PIN}"
PACED = "duration: 3s, warmup: 10ms, chunk: 64K, rate: 1Mb/s, congestion: cubic"
TIMES = 2.0  # a run beside others costs as much at most
TEXT = """netbench: 1
name: fleet-rounds
overlap: kernel
verify: off
transfer: {{sample: 0, {transfer}}}
meters: [rusage]
repeat: {{min: {blocks}, max: {blocks}}}
{hosts}
"""


HOW = (
    f"Side by side: `null` between {PAIRS} pairs of network namespaces, 60 ms a run, {BLOCKS}"
    f" blocks; alone: {RUNS_ALONE} runs of one of these pairs. All flows of `null`, which spin, are"
    " pinned to one CPU and leave the others to the controller. The cost of a run is the CPU time"
    f" of the controller's process. {MANY} pairs are simulated: every host is this machine, without"
    f" SSH; {2 * MANY} workers send and receive 64 KiB twice a second; {MANY_BLOCKS} blocks."
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
        hosts = made.block()
        alone = _measured(hosts, 1, RUNS_ALONE, SHORT)
        beside = _measured(hosts, PAIRS, BLOCKS, SHORT)
    finally:
        labs.down(made.name)
    times = beside.cpu / alone.cpu
    here = {"hosts": {f"h{n}": "local" for n in range(2 * MANY)}}
    many = _measured(here, MANY, MANY_BLOCKS, PACED, simulated)
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
        Row(
            f"windows of {MANY} simulated pairs open within",
            _ms(max(many.spread)),
            "",
            "",
            f"at most {MANY_SECONDS:g} s",
            max(many.spread) <= MANY_SECONDS,
        ),
        Row(
            "the controller's memory then",
            f"{peak:.0f} MiB",
            "",
            "",
            f"at most {MANY_MIB} MiB",
            peak <= MANY_MIB,
        ),
    ]


def simulated(host: Host) -> Channel:
    """A host whose workers are single processes of this machine, without an interpreter each."""
    return LocalChannel(host.name, [str(PACKAGE / f"worker-{platform.machine()}")])


def _measured(
    block: Mapping[str, Any],
    pairs: int,
    blocks: int,
    transfer: str,
    channels: ChannelFactory = open_channel,
) -> Measured:
    names = list(block["hosts"])[: 2 * pairs]
    chosen = {
        **block,
        "hosts": {name: block["hosts"][name] for name in names},
        "pairs": [
            {"sender": a, "receiver": b} for a, b in zip(names[::2], names[1::2], strict=True)
        ],
    }
    hosts = yaml.safe_dump(chosen, sort_keys=False)
    text = TEXT.format(blocks=blocks, hosts=hosts, transfer=transfer)
    watched = Watched()
    with tempfile.TemporaryDirectory() as folder:
        done = conductor.start(campaign.parse(text, "fleet.yaml"), Path(folder), watched, channels)
        lines = (done.path / "records.jsonl").read_text().splitlines()
        records = [json.loads(line) for line in lines]
        reasons = {record["reason"] for record in records if record["status"] != "ok"}
        if done.why != "done" or done.failed or reasons:
            raise RuntimeError(f"the campaign ended as {done.why}: {done.reason} {reasons}")
    opened = defaultdict(list)
    for record in records:
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
