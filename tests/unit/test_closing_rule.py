"""When cells close: by hand, and against the rule written down a second time with scipy."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from scipy import stats

from netbench import campaign
from netbench.model import Compare, Repeat
from netbench.plan.plan import Plan
from netbench.read.accounts import ACCOUNTS
from netbench.read.derive import metrics_of
from netbench.read.epochs import Epoch, Epochs, Stratum, stratum
from netbench.result.files import HostEntry
from netbench.result.record import Record, SideCounters
from netbench.result.store import now
from netbench.run.ledger import FAILURES_IN_A_ROW, FINAL, HOPELESS, Ledger
from netbench.stats.closing import Key, Standing, closings, groups

COMPARE = Compare("send", "write")
USUAL = Repeat(3, 9, precision=0.05)
STEADY, WILD = (10.0, 10.01, 9.99), (10.0, 20.0, 5.0)
BASE, SAME = (10.0, 30.0, 20.0), (20.0, 60.0, 40.0)  # neither is precise, but their ratio is
LESS = (20.0, 50.0, 45.0)  # against BASE: factors of 2, 1.67 and 2.25


def standing(
    send: str, *columns: Sequence[float], closed: str = "", lost: int = 0, first: int = 0
) -> Standing:
    """A cell with one value a block, from block `first` on: of throughput, then of sender_cpu."""
    names = ("throughput", "sender_cpu")
    values = {
        name: dict(enumerate(column, first)) for name, column in zip(names, columns, strict=False)
    }
    return Standing({"send": send}, values, closed, max(map(len, columns), default=0), lost=lost)


@dataclass(frozen=True)
class Case:
    """Cells by their level of `send`, the rule, and why each is closed."""

    cells: Sequence[Standing]
    expected: Mapping[str, str]
    repeat: Repeat = USUAL
    compare: Compare | None = COMPARE


BOTH = ("throughput", "sender_cpu")
# Three values with the standard deviation 0.1 and t(2, 97.5%) = 4.3027: the half-width is 0.2484.
# exp(0.2484) - 1 = 0.2820. With min = max nothing is widened.
SWUNG = tuple(10 * math.exp(d) for d in (-0.1, 0.0, 0.1))
LEVEL = (10.0, 10.0, 10.0)
CASES = {
    "a baseline whose kernel is booted last waits for its own runs": Case(
        [standing("write"), standing("splice", STEADY)],
        {"write": "", "splice": "max"},
        Repeat(3, 3, precision=0.05),
    ),
    "a precise ratio leaves, and the baseline stays with one that is not": Case(
        [standing("write", BASE), standing("splice", SAME), standing("mmap", LESS)],
        {"write": "", "splice": "converged", "mmap": ""},
    ),
    "two comparisons are judged at half the error share: not 28.3%": Case(
        [standing("write", LEVEL), standing("splice", SWUNG), standing("mmap", LEVEL)],
        {"write": "max", "splice": "max", "mmap": "converged"},
        Repeat(3, 3, precision=0.283),
    ),
    "equal levels have no verdict without a margin": Case(
        [standing("write", LEVEL), standing("splice", LEVEL)],
        {"write": "", "splice": ""},
        Repeat(3, 9, until="verdict"),
    ),
    "equal within the margin is a verdict": Case(
        [standing("write", LEVEL), standing("splice", LEVEL)],
        {"write": "converged", "splice": "converged"},
        Repeat(3, 9, until="verdict"),
        Compare("send", "write", 0.05),
    ),
    "so is a level that is twice as fast, however wide its interval": Case(
        [standing("write", (5.0, 5.0, 5.0)), standing("splice", (9.9, 10.0, 10.1))],
        {"write": "converged", "splice": "converged"},
        Repeat(3, 9, precision=0.0001, until="verdict"),
    ),
    "a half-width of 0.2484 in logarithms is 28.2%": Case(
        [standing("write", LEVEL), standing("splice", SWUNG)],
        {"write": "max", "splice": "max"},
        Repeat(3, 3, precision=0.281),
    ),
    "which is precise to 28.3%": Case(
        [standing("write", LEVEL), standing("splice", SWUNG)],
        {"write": "converged", "splice": "converged"},
        Repeat(3, 3, precision=0.283),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cells_close_as_worked_out_by_hand(name: str) -> None:
    case = CASES[name]
    cells = {(f"send={cell.factors['send']}", "a>b"): cell for cell in case.cells}
    closed = closings(cells, ["send"], case.compare, case.repeat)
    assert {key[0].removeprefix("send="): reason for key, reason in closed.items()} == case.expected


# --- the rule a second time -----------------------------------------------------------------------


def half_width(values: Sequence[float], confidence: float, in_order: bool = False) -> float:
    """Of Student's t interval; infinite where there is none. in_order: of one after the other."""
    n = len(values)
    if n < 2:
        return math.inf
    if len(set(values)) == 1:
        return 0.0
    order = order_of(values) if in_order else 0.0
    ratio = 1 + 2 * sum((1 - k / n) * order**k for k in range(1, n))
    more = math.sqrt(ratio * (n - 1) / (n - ratio))
    quantile = float(stats.t.ppf((1 + confidence) / 2, (n - 1) / ratio))
    return quantile * more * float(stats.sem(values))


def order_of(values: Sequence[float]) -> float:
    """By how much each value follows the one before, where there is evidence of it."""
    n = len(values)
    if n < 8:
        return 0.0
    rest = [value - sum(values) / n for value in values]
    found = (n * sum(a * b for a, b in pairwise(rest)) / sum(a * a for a in rest) + 1) / (n - 4)
    return min(found, 0.6) if found > 4 * n / (n - 4) ** 2 else 0.0


def widened(repeat: Repeat, family: int = 1) -> float:
    """The confidence that looking after each block takes, in a family of so many comparisons."""
    repeat = repeat._replace(confidence=1 - (1 - repeat.confidence) / family)
    if repeat.min == repeat.max:
        return repeat.confidence
    least = max(repeat.min, 2)
    error = 1 - repeat.confidence
    scale = -3.2 * math.log10(error)
    share = scale / (least + scale) * (1 - (least / repeat.max) ** 1.5)
    return 1 - error * (1 - share)


def by_boot(cell: Standing, of_block: Mapping[int, float]) -> list[float]:
    """The means of boots."""
    boots: dict[int, list[float]] = {}
    for block, value in of_block.items():
        boots.setdefault(cell.boots.get(block, 0), []).append(value)
    return [sum(values) / len(values) for values in boots.values()]


def alone(cell: Standing, repeat: Repeat) -> str:
    counts = [len(values) for values in cell.values.values()]
    boots = {cell.boots.get(block, 0) for values in cell.values.values() for block in values}
    units = repeat.boots > 1 or len(boots) > 1
    precise = []
    for metric in repeat.metrics:
        values = cell.values.get(metric, {})
        if not values:
            continue
        seen = by_boot(cell, values) if units else list(values.values())
        confidence = repeat.confidence if units else widened(repeat)
        known = units or len(seen) > 2  # two runs have no interval
        half = half_width(seen, confidence, in_order=not units) if known else math.inf
        mean = abs(sum(seen) / len(seen))
        small = metric == "sender_cpu" and half <= 0.005
        narrow = half == 0 if mean == 0 else half / mean <= repeat.precision
        precise.append(len(values) + cell.lost >= repeat.min and (small or narrow))
    visited = len(boots) >= repeat.boots
    planned = repeat.boots > 1 or len(boots) < 2
    if precise and all(precise) and visited and planned:
        return "converged"
    return "max" if visited and has_all(cell, max(counts, default=0), repeat) else ""


def has_all(cell: Standing, runs: int, repeat: Repeat) -> bool:
    most = repeat.max if repeat.boots == 1 else repeat.boots * -(-repeat.min // repeat.boots)
    return runs + cell.lost >= most


def ratio_is_precise(cell: Standing, base: Standing, repeat: Repeat) -> bool:
    judged = []
    for metric in repeat.metrics:
        here, there = cell.values.get(metric, {}), base.values.get(metric, {})
        if not here or not there:
            continue
        if min(*here.values(), *there.values()) <= 0:
            return False
        shared = {b: math.log(here[b] / there[b]) for b in here if b in there}
        if repeat.boots > 1 or len({cell.boots.get(b, 0) for b in shared}) > 1:
            seen, confidence = by_boot(cell, shared), 1 - (1 - repeat.confidence) / 2
            least, in_order = repeat.boots if repeat.boots > 1 else 10**6, False
        else:
            seen, confidence = list(shared.values()), widened(repeat, 2)
            least = repeat.min - max(cell.lost, base.lost)
            in_order = True
        wide = math.exp(half_width(seen, confidence, in_order)) if len(seen) > 1 else math.inf
        judged.append(len(seen) >= least and wide - 1 <= repeat.precision)
    return bool(judged) and all(judged)


def expected(cells: Mapping[Key, Standing], repeat: Repeat) -> dict[Key, str]:
    base = next(key for key in cells if key[0] == "send=write")
    rivals = [key for key, cell in cells.items() if key != base and not cell.closed]
    lonely = cells[base].closed or not rivals
    reasons = {}
    for key, cell in cells.items():
        ran = max((len(values) for values in cell.values.values()), default=0)
        spent = has_all(cell, cell.runs, repeat) or alone(cell, repeat) == "max"
        last = "max" if spent else ""
        if cell.closed:
            reasons[key] = cell.closed
        elif lonely:
            reasons[key] = alone(cell, repeat) or last
        elif key == base or ran + cell.lost < repeat.min:
            reasons[key] = last
        else:
            reasons[key] = "converged" if ratio_is_precise(cell, cells[base], repeat) else last
    ran = max((len(values) for values in cells[base].values.values()), default=0)
    enough = ran + cells[base].lost >= repeat.min
    if not lonely and enough and all(reasons[key] for key in rivals):
        converged = all(reasons[key] == "converged" for key in rivals)
        reasons[base] = "converged" if converged else "max"
    return reasons


def drawn(chance: random.Random) -> tuple[dict[Key, Standing], Repeat]:
    """Three cells after some blocks, and a rule."""
    least = chance.randint(2, 5)
    boots = chance.choice([1, 1, 1, 2])
    repeat = Repeat(
        max(least, boots),
        max(least, boots) + chance.choice([0, 3, 30]),
        precision=chance.choice([0.02, 0.1, 0.5]),
        metrics=chance.choice([("throughput",), BOTH]),
        boots=boots,
    )
    blocks = chance.randint(1, repeat.max)
    spread = chance.choice([0.005, 0.05, 0.3])
    places = {b: 1 + b * repeat.boots // blocks for b in range(blocks)} if boots > 1 else {}
    drift = [1 + chance.random() for _ in range(blocks)]

    def cell(send: str) -> Standing:
        kept = [b for b in range(blocks) if chance.random() > 0.05]

        def column(unit: float) -> dict[int, float]:
            scaled = {b: unit * drift[b] * math.exp(spread * chance.gauss(0, 1)) for b in kept}
            return {b: 0.0 if chance.random() < 0.01 else v for b, v in scaled.items()}

        return Standing(
            {"send": send},
            {"throughput": column(10.0), "sender_cpu": column(chance.choice([0.01, 1.0]))},
            chance.choice(["failed", *[""] * 15]),
            len(kept),
            {b: places[b] for b in kept if b in places},
            blocks - len(kept) if boots > 1 or chance.random() < 0.5 else 0,
        )

    return {(f"send={send}", "a>b"): cell(send) for send in ("write", "splice", "mmap")}, repeat


def test_cells_close_as_a_second_writing_of_the_rule_says() -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(250):
        cells, repeat = drawn(random.Random(seed))
        closed = closings(cells, ["send"], COMPARE, repeat)
        assert closed == expected(cells, repeat), f"seed {seed}"
        outcomes.update(closed.values())
        said = {key: cell.closed or alone(cell, repeat) for key, cell in cells.items()}
        ran = {k: has_all(c, c.runs, repeat) for k, c in cells.items()}
        said = {key: reason or ("max" if ran[key] else "") for key, reason in said.items()}
        assert closings(cells, ["send"], None, repeat) == said, f"seed {seed}, without compare"
    assert min(outcomes[reason] for reason in ("converged", "max", "failed", "")) > 20, outcomes


# The ledger closes the same cells at the same time as all values assessed anew


HOST = "name: c\nhosts: {h: {ssh: h, address: 192.0.2.1}}\n"
TICKS, SHARED = {"h": 100}, {"h>h": True}
Values = dict[str, dict[int, float]]


class FromScratch:
    """A ledger that keeps every value, and assesses all of them after each block."""

    def __init__(self, plan: Plan, hosts: Mapping[str, Any]) -> None:
        self._plan = plan
        self._epochs = Epochs(
            hosts, plan.campaign.handled, [pair.name for pair in plan.campaign.pairs]
        )
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
        return key, self._latest.get((key[1], self._units[key].cell.factors.get("kernel", "")))

    @property
    def open_keys(self) -> list[Key]:
        going = (key for key in self._units if key not in self._given_up)
        return [key for key in going if not self._closed.get(self._at(key))]

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


def drawn_campaign(chance: random.Random) -> str:
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
        plan = Plan(campaign.parse(drawn_campaign(chance), "c.yaml"))
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
