"""What is known of every unit so far, from its records alone: which are closed, and why.

Replaying the records of a result gives the same ledger, which is what `resume` stands on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from netbench.analysis.intervals import mean_interval, sequential_confidence
from netbench.analysis.metrics import Account, of_record
from netbench.analysis.stopping import Assessment, assess
from netbench.model import Campaign
from netbench.plan import Key, Plan

FAILURES_IN_A_ROW = 3  # then a unit is given up: more would say the same
FINAL = ("unsupported", "refused")


@dataclass
class _Account:
    values: dict[str, list[float]] = field(default_factory=dict)
    by_block: dict[str, dict[int, float]] = field(default_factory=dict)
    failures: int = 0
    closed: str = ""  # the reason, "" while open


class Ledger:
    """Units' values and whether they are closed; evaluated between blocks, as DESIGN section 9 asks."""

    def __init__(self, plan: Plan, ticks: Mapping[str, int], shared: Mapping[str, bool], accounts: Mapping[str, Account]) -> None:
        self._campaign: Campaign = plan.campaign
        self._units = {unit.key: unit for unit in plan.units}
        self._accounts = {key: _Account() for key in self._units}
        self._ticks, self._shared, self._metering = ticks, shared, accounts
        self.block = 0
        self.done: set[Key] = set()  # in the present block
        self.runs = 0
        self.failed = False

    def add(self, record: Mapping[str, Any]) -> None:
        """Take in a record; one of a later block first closes what the earlier blocks settled."""
        while record["block"] > self.block:
            self.next_block()
        key = record["cell"], record["pair"]
        self.runs = max(self.runs, int(record["run"]))
        account = self._accounts.get(key)
        if account is None or record["status"] == "interrupted":
            return
        self.done.add(key)
        if record["status"] == "ok":
            account.failures = 0
            self._take(account, record)
            return
        account.failures += 1
        self.failed |= record["status"] == "failed"
        hopeless = record["status"] in FINAL or str(record["reason"]).startswith("verify")
        if hopeless or account.failures >= FAILURES_IN_A_ROW:
            account.closed = record["status"]

    def _take(self, account: _Account, record: Mapping[str, Any]) -> None:
        shared = self._shared.get(record["pair"], False)
        for name, value in of_record(record, self._ticks, shared, self._metering).items():
            account.values.setdefault(name, []).append(value)
            account.by_block.setdefault(name, {})[int(record["block"])] = value

    def is_open(self, key: Key) -> bool:
        """Whether that unit still wants runs."""
        return not self._accounts[key].closed

    def assessment(self, key: Key) -> Assessment:
        """Where a unit stands."""
        return assess(self._accounts[key].values, self._campaign.repeat)

    def next_block(self) -> None:
        """Close what is settled and begin the next block."""
        for key, account in self._accounts.items():
            found = self.assessment(key)
            if not account.closed and found.reason == "max":
                account.closed = found.reason
        for group in self._groups():
            if all(self._settled(key, group) for key in group):
                for key in group:
                    self._accounts[key].closed = self._accounts[key].closed or "converged"
        self.block += 1
        self.done = set()

    def _groups(self) -> list[list[Key]]:
        """Units that close together: with `compare` those that differ only in its factor, else each alone."""
        compare = self._campaign.compare
        groups: dict[tuple[object, ...], list[Key]] = {}
        for key, unit in self._units.items():
            others: object = key
            if compare is not None:
                # Keys that `include` attached belong to the level, they are no factors of their own.
                swept = [factor.name for factor in self._campaign.factors if factor.name != compare.factor]
                others = tuple(unit.cell.factors.get(name) for name in swept)
            groups.setdefault((others, key[1]), []).append(key)
        return list(groups.values())

    def _settled(self, key: Key, group: list[Key]) -> bool:
        account = self._accounts[key]
        if account.closed:
            return True
        compare = self._campaign.compare
        baseline = None
        if compare is not None:
            levels = (k for k in group if self._units[k].cell.factors.get(compare.factor) == compare.baseline)
            baseline = next(levels, None)
        if baseline is None or len(group) == 1:
            return self.assessment(key).closed
        return key == baseline or self._ratio_settled(account, self._accounts[baseline])

    def _ratio_settled(self, account: _Account, baseline: _Account) -> bool:
        """Whether the ratio to the baseline is as precise as asked, in every chosen metric that both have."""
        repeat = self._campaign.repeat
        confidence = sequential_confidence(repeat.confidence, repeat.min, repeat.max)
        for metric in repeat.metrics:
            mine, base = account.by_block.get(metric, {}), baseline.by_block.get(metric, {})
            if not mine or not base:
                continue
            logs = [math.log(mine[b] / base[b]) for b in sorted(mine.keys() & base.keys()) if mine[b] > 0 and base[b] > 0]
            interval = mean_interval(logs, confidence)
            if len(logs) < repeat.min or not interval.known or math.expm1(interval.half_width) > repeat.precision:
                return False
        return True

    @property
    def open_keys(self) -> list[Key]:
        """Units that still want runs, in file order."""
        return [key for key in self._units if self.is_open(key)]

    @property
    def size(self) -> int:
        return len(self._units)
