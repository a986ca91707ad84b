"""Many hosts from one controller: `check` of them, pairs at the same time, reports, and whether the
hosts that are slow are named.
"""

from __future__ import annotations

import math
import os
import platform
import resource
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from netbench import campaign
from netbench.base.errors import LabRefused
from netbench.fleet.fit import LEVEL, far_below
from netbench.hosts.deploy import PACKAGE
from netbench.hosts.host_channel import Channel
from netbench.hosts.local import LocalChannel
from netbench.model import Host
from netbench.report.source import Source
from netbench.result.record import Record
from netbench.run import conductor
from netbench.run.ledger import Ledger
from netbench.run.progress import Progress
from netbench.run.worker_pool import ChannelFactory, open_channel
from netbench.stats.intervals import Numbers
from tests.support import fleet_lab
from tests.support.fleets import MadeFleet, names, ring
from tests.support.running import stored_records
from tools.bench import command
from tools.bench.orchestration import pairs_of
from tools.bench.report import reported
from tools.bench.table import Part, Row, at_most

CHECKED, CHECK_SECONDS = 200, 15.0
PAIRS, BLOCKS, RUNS_ALONE, TIMES = 64, 6, 200, 2.0
MANY, MANY_BLOCKS, MANY_SECONDS, MANY_MIB = 500, 3, 2.0, 1024
REPORTED, REPORT_BLOCKS, REPORT_SECONDS = 500, 20, 20.0
RING, RING_BLOCKS, SEEDS = 100, 8, 2
# `null` spins: all flows share one CPU, and leave the others to the controller.
PIN = f"pin: {{sender: {(os.cpu_count() or 1) - 1}, receiver: {(os.cpu_count() or 1) - 1}}}"
SHORT = f"send: 'null', receive: 'null', duration: 50ms, warmup: 10ms, {PIN}"
PACED = "duration: 3s, warmup: 10ms, chunk: 64K, rate: 1Mb/s, congestion: cubic"
TEXT = """netbench: 1
name: fleet-rounds
overlap: kernel
verify: off
transfer: {{sample: 0, {transfer}}}
meters: [rusage]
repeat: {{min: {blocks}, max: {blocks}}}
{hosts}
"""
FLEETS, HOSTS, SEED = 20_000, 30, 1
MOST_WRONG, LEAST_FOUND = 0.06, 0.95
APART, SLOW = 0.005, 0.95
TESTS = 3  # senders, receivers, pairs: where the fit tells hosts
HOW = (
    f"`check`: wall time of `python -m netbench check` on {CHECKED} hosts in network namespaces of"
    " one machine, reached over SSH, in pairs, one cell. Side by side: `null` between"
    f" {PAIRS} pairs of network namespaces, 60 ms a run, {BLOCKS} blocks; alone: {RUNS_ALONE} runs"
    " of one of these pairs. The cost of a run is the CPU time of the controller's process."
    f" {MANY} pairs are simulated: every host is this machine, without SSH; {2 * MANY} workers send"
    f" and receive 64 KiB twice a second; {MANY_BLOCKS} blocks. Report: made-up records of a ring"
    f" of {REPORTED} hosts in {REPORT_BLOCKS} blocks, each with {REPORTED // 2 - 1} pairs beside"
    f" it. The ring of {RING} hosts: network namespaces of one machine; one host's link has a rate"
    " of 1 Gb/s both ways (tbf), another has TSO off, both behind the campaign's back; runs of"
    f" 50 ms, {RING_BLOCKS} blocks, other hosts for each seed. Outlying: {FLEETS} fleets (seed"
    f" {SEED}), each a ring of {HOSTS} hosts, whose pairs move what their sender and their receiver"
    " do; and senders and receivers as a fit of several partners gives them. A slow sender is at"
    f" {SLOW - 1:.0%}, where hosts are normal with a standard deviation of {APART:.1%}."
)
NOTES = (
    (
        "All hosts share two CPUs, one disk and one kernel with the controller: as many real hosts"
        " would answer in parallel."
    ),
)


def measure() -> Part:
    """The rows; one that says why where there can be no lab."""
    with tempfile.TemporaryDirectory(prefix="netbench-bench-") as name:
        place = Path(name)
        try:
            rows = [_checked(place), *_side_by_side(), _named(place)]
        except LabRefused as error:
            rows = [Row("hosts over SSH", f"not measured: {error}", "", "", "", None)]
        rows.append(_reported(place / "report"))
    rows += [
        Row(what, f"{share:.1%}", "", "", budget(what), holds(what, share))
        for what, share in shares(FLEETS).items()
    ]
    return Part("Fleets: many hosts from one controller", HOW, tuple(rows), NOTES)


def _checked(place: Path) -> Row:
    with fleet_lab.lab_of(CHECKED) as made:
        file = place / "fleet.yaml"
        transfer = {"duration": "50ms", "congestion": "cubic"}
        keys = {"netbench": 1, "name": "fleet", **pairs_of(made.block()), "transfer": transfer}
        file.write_text(yaml.safe_dump(keys))
        seconds = command.timed("check", str(file))
    return at_most(f"`check` of {CHECKED} hosts that are up, once", seconds, "s", CHECK_SECONDS)


# --- pairs at the same time ---


@dataclass
class Watched(Progress):
    """The controller's CPU time, in seconds, when the last run of each block was kept."""

    cpu: dict[int, float] = field(default_factory=dict)

    def ran(self, record: Record, ledger: Ledger) -> None:
        self.cpu[record.block] = time.process_time()


def _side_by_side() -> list[Row]:
    with fleet_lab.lab_of(2 * PAIRS) as made:
        hosts = made.block()
        alone, _ = _measured(hosts, 1, RUNS_ALONE, SHORT)
        beside, _ = _measured(hosts, PAIRS, BLOCKS, SHORT)
    here = {"hosts": {f"h{n}": "local" for n in range(2 * MANY)}}
    _, spread = _measured(here, MANY, MANY_BLOCKS, PACED, simulated)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    windows = f"windows of {MANY} simulated pairs open within"
    return [
        at_most("the controller's CPU for a run of one pair alone", alone * 1e3, "ms", None),
        at_most(
            f"the same of {PAIRS} pairs at the same time, over that", beside / alone, "", TIMES
        ),
        at_most(windows, max(spread), "s", MANY_SECONDS),
        at_most("the controller's memory then", peak, "MiB", MANY_MIB),
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
) -> tuple[float, Sequence[float]]:
    """The controller's CPU time for a run, in s; how far the windows of a block opened from each
    other, in s, for each block. Errors: RuntimeError.
    """
    hosts = yaml.safe_dump(pairs_of(block, pairs), sort_keys=False)
    text = TEXT.format(transfer=transfer, blocks=blocks, hosts=hosts)
    watched = Watched()
    with tempfile.TemporaryDirectory() as folder:
        done = conductor.start(campaign.parse(text, "fleet.yaml"), Path(folder), watched, channels)
        records = stored_records(done.path)
    reasons = {record["reason"] for record in records if record["status"] != "ok"}
    if done.why != "done" or done.failed or reasons:
        raise RuntimeError(f"the campaign ended as {done.why}: {done.reason} {reasons}")
    opened = defaultdict(list)
    for record in records:
        opened[record["block"]].append(record["sender"]["time_ns"][0] / 1e9)
    first, last = min(watched.cpu), max(watched.cpu)
    cpu = (watched.cpu[last] - watched.cpu[first]) / (pairs * (last - first))
    return cpu, [max(each) - min(each) for each in opened.values()]


# --- slow hosts ---


def _reported(folder: Path) -> Row:
    slow = {"n017": -0.3}
    pairs = ring(names(REPORTED))
    fleet = MadeFleet(
        pairs=[*pairs[::2], *pairs[1::2]],
        runs=REPORT_BLOCKS,
        sends=slow,
        receives=slow,
        beside=REPORTED // 2,
    )
    took = reported(fleet.write(folder))
    what = f"report of a ring of {REPORTED} hosts, {REPORT_BLOCKS} blocks"
    return at_most(what, took["wall"], "s", REPORT_SECONDS, f"{took['memory'] >> 20} MiB")


def _named(place: Path) -> Row:
    """Both hosts with their evidence in each seed; anything else as seldom as the confidence."""
    right = others = 0
    with fleet_lab.lab_of(RING) as lab:
        for seed in range(SEEDS):
            faults = fleet_lab.chosen(lab, seed)
            folder = place / f"ring-{seed}"
            folder.mkdir()
            with fleet_lab.faulty(lab, faults):
                ran = command.run(fleet_lab.campaign_of(lab, RING_BLOCKS, seed), folder)
            (fleet,) = Source.of(ran.path).fleets["throughput"]
            facts = {
                cause.name: {odd.fact for odd in cause.facts[cause.name]} for cause in fleet.causes
            }
            right += "qdisc" in facts.get(faults.capped, ()) and "features" in facts.get(
                faults.without_tso, ()
            )
            others += len(facts) > 2
    return Row(
        f"a ring of {RING} lab hosts: one with 1 Gb/s, one without TSO",
        f"both named with their facts in {right} of {SEEDS}",
        "",
        f"another one in {others} of {SEEDS}",
        "all; none but by chance",
        right == SEEDS and others == 0,
    )


def drawn(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> Numbers:
    """Shifts of good hosts, of a row each fleet; exponential ones are towards slow."""
    if kind == "t3":
        return rng.standard_t(3, shape)
    return rng.normal(size=shape) if kind == "normal" else -rng.exponential(size=shape)


def shares(fleets: int, seed: int = SEED) -> Mapping[str, float]:
    """By question, the share of fleets: with anything outlying, of good hosts; with the slow sender
    outlying and nothing else.
    """

    def moved(sends: Numbers, receives: Numbers) -> Numbers:
        return sends + np.roll(receives, -1, axis=1)

    rng = np.random.default_rng(seed)
    shape = (fleets, HOSTS)
    found = {}
    for kind in ("normal", "t3", "exponential"):
        one, two = (drawn(kind, shape, rng) for _ in range(2))
        alike = f"ring, {kind} and alike both ways"
        for what, each in ((f"ring, {kind}", moved(one, two)), (alike, moved(one, one))):
            found[what] = float(np.mean(far_below(each)[0] > 0))
        any_of = [far_below(each, LEVEL / TESTS)[0] > 0 for each in (one, two)]
        found[f"senders and receivers, {kind}"] = float(np.mean(any_of[0] | any_of[1]))
    sends, receives = (APART * drawn("normal", shape, rng) for _ in range(2))
    sends[:, 0] = math.log(SLOW)
    for what, each, level in (
        ("ring", moved(sends, receives), LEVEL),
        ("senders", sends, LEVEL / TESTS),
    ):
        named = (far_below(each, level)[0] > 0) & (each.argmin(axis=1) == 0)
        found[f"{what}, a slow one is named"] = float(np.mean(named))
    return found


def holds(what: str, share: float, slack: float = 0.0) -> bool:
    """Whether a share keeps its budget, but for what so few fleets leave open."""
    return share >= LEAST_FOUND - slack if "slow" in what else share <= MOST_WRONG + slack


def budget(what: str) -> str:
    """In words."""
    return f"at least {LEAST_FOUND:.0%}" if "slow" in what else f"at most {MOST_WRONG:.0%}"
