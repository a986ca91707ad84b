"""The ledger closes the same cells at the same time as all values assessed anew."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from netbench import campaign
from netbench.plan.plan import Key, Plan
from netbench.read.accounts import ACCOUNTS
from netbench.read.derive import metrics_of
from netbench.read.epochs import Epoch, Epochs, Stratum, stratum
from netbench.result.files import HostEntry
from netbench.result.record import Record, SideCounters
from netbench.result.store import now
from netbench.run.ledger import FAILURES_IN_A_ROW, FINAL, HOPELESS, Ledger
from netbench.stats.closing import Standing, closings, groups

HOST = "name: c\nhosts: {h: {ssh: h, address: 192.0.2.1}}\n"
TICKS, SHARED = {"h": 100}, {"h>h": True}
Values = dict[str, dict[int, float]]


class FromScratch:
    """A ledger that keeps every value, and assesses all of them after each block."""

    def __init__(self, plan: Plan, hosts: Mapping[str, Any]) -> None:
        self._plan = plan
        self._epochs = Epochs(hosts, plan.campaign.handled)
        self._latest: dict[Stratum, Epoch] = {}
        self._units = {unit.key: unit for unit in plan.units}
        self._values: dict[tuple[Key, Epoch | None], Values] = {}
        self._boots: dict[tuple[Key, Epoch | None], dict[int, int]] = {}
        self._runs: Counter[tuple[Key, Epoch | None]] = Counter()
        self._closed: dict[tuple[Key, Epoch | None], str] = {}
        self._failures: Counter[Key] = Counter()
        self._lost: Counter[Key] = Counter()
        self._given_up: dict[Key, str] = {}

    def add(self, record: Record) -> None:
        key = record.cell, record.pair
        if record.status == "ok":
            self._failures[key] = 0
            epoch = self._epochs.of(record.pair, record.run, record.boot)
            self._latest[stratum(record)] = epoch
            at = key, epoch
            self._runs[at] += 1
            if record.boot:
                self._boots.setdefault(at, {})[record.block] = record.boot
            for name, value in metrics_of(record, TICKS, True, ACCOUNTS).items():
                self._values.setdefault(at, {}).setdefault(name, {})[record.block] = value
            return
        self._failures[key] += 1
        self._lost[key] += self._plan.blocks is not None and record.status == "failed"
        hopeless = record.status in FINAL or record.reason.startswith(HOPELESS)
        if hopeless or self._failures[key] >= FAILURES_IN_A_ROW:
            self._given_up[key] = record.status

    def _at(self, key: Key) -> tuple[Key, Epoch | None]:
        place = key[1], self._units[key].cell.factors.get("kernel", "")
        return key, self._latest.get(place)

    def _reason(self, key: Key) -> str:
        return self._given_up.get(key) or self._closed.get(self._at(key), "")

    @property
    def open_keys(self) -> list[Key]:
        return [key for key in self._units if not self._reason(key)]

    def next_block(self) -> None:
        standings = {
            key: Standing(
                *(unit.cell.factors, self._values.get(at, {}), self._given_up.get(key, "")),
                *(self._runs[at], self._boots.get(at, {}), self._lost[key]),
            )
            for key, unit in self._units.items()
            for at in [self._at(key)]
        }
        swept = [factor.name for factor in self._plan.campaign.factors]
        compare = self._plan.campaign.compare
        closed = closings(standings, swept, compare, self._plan.repeat)
        each = groups({key: unit.cell.factors for key, unit in self._units.items()}, swept, compare)
        opened = set(self.open_keys)
        for group in each:
            if opened & set(group):
                self._closed |= {self._at(key): closed[key] for key in group}


def drawn(chance: random.Random) -> str:
    """The text of a campaign."""
    least, boots = chance.randint(1, 4), chance.choice([0, 0, 0, 1, 2, 3])
    least = max(least, boots)
    kernels = chance.choice(["", ", kernel: [a, b]"]) if boots else ""
    metrics = ["throughput", "sender_cpu, throughput", "throughput, receiver_demand"]
    repeat = f"min: {least}, max: {least + chance.randint(0, 12)}"
    repeat += f", precision: {chance.choice(['0.5%', '3%', '20%'])}"
    repeat += f", metrics: [{chance.choice(metrics)}]" + (f", boots: {boots}" if boots else "")
    chunks = chance.choice(["8K", "8K, 64K"])
    compared = ["", "{factor: send, baseline: write}", "{factor: kernel, baseline: a}"]
    compare = chance.choice(compared[: 3 if kernels else 2])
    return (
        f"netbench: 1\n{HOST}repeat: {{{repeat}}}\n"
        f"sweep: {{send: [write, sendfile, splice], chunk: [{chunks}]{kernels}}}\n"
        + (f"compare: {compare}\n" if compare else "")
    )


def entries(chance: random.Random, boots: int) -> list[HostEntry]:
    """Facts that change with some runs, and return."""
    starts = [1, *sorted(chance.sample(range(2, 90), chance.randint(0, 3)))]
    facts = [{"cpu_model": chance.choice("ab"), "kernel": "6"} for _ in starts]
    return [
        HostEntry(boots and 1 + i % boots, str(i), 100, facts[i], from_run=start)
        for i, start in enumerate(starts)
    ]


def record(
    chance: random.Random, run: int, key: Key, block: int, boot: int, spread: float
) -> Record:
    fate = chance.random()
    status, reason = "ok", ""
    if fate < 0.06:
        failed = [("failed", "reset"), ("failed", "verify: differs")]
        status, reason = chance.choice([*failed, ("unsupported", "x"), ("interrupted", "x")])
    count = int(1e9 * (1 + spread * chance.gauss(0, 1))) if chance.random() > 0.003 else 0
    flow = {"flow": {"bytes": [[0], [max(count, 0)]]}} if chance.random() > 0.03 else {}
    busy = {"rusage": {"cpu_ns": [0, int(4e7 * (1 + spread * chance.random()))]}}
    sides = (SideCounters("h", (0, 10**9), meters={**flow, **busy}) for _ in range(2))
    factors = dict(word.split("=") for word in key[0].split(","))
    return Record(run, *key, block, boot, factors, status, reason, now(), *sides)  # type: ignore[arg-type]


def lived(
    plan: Plan, ledger: Ledger, scratch: FromScratch, chance: random.Random
) -> Iterator[Record]:
    """A campaign, block by block; both ledgers must want the same cells in each."""
    run, spread, reboot = 0, chance.choice([0.0, 0.003, 0.05]), chance.choice([2, 5, 10**9])
    for block in range(plan.blocks or 20):
        assert ledger.open_keys == scratch.open_keys
        planned = plan.boot(block)
        boot = planned.number if planned else int(block >= reboot)
        for unit in plan.wanted(block, ledger.is_open, ()):
            run += 1
            one = record(chance, run, unit.key, block, boot, spread)
            for book in (ledger, scratch):
                if one.status != "interrupted":
                    book.add(one)
            yield one
        assert ledger.open_keys == scratch.open_keys
        ledger.next_block()
        scratch.next_block()
    assert ledger.open_keys == scratch.open_keys


@pytest.mark.parametrize("examples", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_cells_close_as_if_assessed_from_scratch(examples: int) -> None:
    for seed in range(examples):
        chance = random.Random(seed)
        plan = Plan(campaign.parse(drawn(chance), "c.yaml"))
        hosts = {"h": entries(chance, 3 if plan.boots else 0)}
        ledger = Ledger(plan, TICKS, SHARED, ACCOUNTS, hosts)
        records = list(lived(plan, ledger, FromScratch(plan, hosts), chance))
        again = Ledger(plan, TICKS, SHARED, ACCOUNTS, hosts)
        for one in records:
            again.add(one)
        while again.block < ledger.block:
            again.next_block()
        assert again.open_keys == ledger.open_keys, f"seed {seed}"
        assert [again.assessment(key).n for key in ledger.open_keys] == [
            ledger.assessment(key).n for key in ledger.open_keys
        ]
