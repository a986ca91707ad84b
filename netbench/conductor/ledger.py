"""What is known of every unit so far, from its records alone: which are closed, and why.

Replaying the records of a result gives the same ledger, which is what `resume` stands on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from netbench.analysis.accounts import Account
from netbench.analysis.closing import Standing, closings
from netbench.analysis.derive import metrics_of
from netbench.analysis.epochs import Entries, Epoch, Epochs, Latest
from netbench.analysis.stopping import Assessment, assess
from netbench.model import Campaign
from netbench.plan import Key, Plan
from netbench.record import Record

FAILURES_IN_A_ROW = 3  # then a unit is given up: more would say the same
FINAL = ("unsupported", "refused")
HOPELESS = ("verify:", "boot:")  # how reasons begin that another run would meet too


@dataclass
class _Tally:
    """What was measured in one epoch: its runs are pooled with no others."""

    by_block: dict[str, dict[int, float]] = field(default_factory=dict)
    boots: dict[int, int] = field(default_factory=dict)  # of each block
    runs: int = 0  # that are ok, whatever they measured
    closed: str = ""  # the reason, "" while open


@dataclass
class _Account:
    tallies: dict[Epoch | None, _Tally] = field(default_factory=dict)
    failures: int = 0
    lost: int = 0  # runs that failed and are not repeated, since boots settle how many there are
    given_up: str = ""  # the reason, in whatever epoch


class Ledger:
    """Units' values and whether they are closed; evaluated between blocks, as DESIGN section 9
    asks.
    """

    def __init__(
        self,
        plan: Plan,
        ticks: Mapping[str, int],
        shared: Mapping[str, bool],
        accounts: Mapping[str, Account],
        hosts: Mapping[str, Entries] | None = None,
    ) -> None:
        """`hosts`: the entries of facts.json; without them all runs are of one epoch."""
        self._campaign: Campaign = plan.campaign
        self._repeat = plan.repeat
        self._blocks = plan.blocks
        self._units = {unit.key: unit for unit in plan.units}
        self._accounts = {key: _Account() for key in self._units}
        self._ticks, self._shared, self._metering = ticks, shared, accounts
        self._epochs = Epochs(hosts or {}, self._campaign.handled)
        self._latest = Latest(self._epochs)
        self.block = 0
        self.done: set[Key] = set()  # in the present block
        self.runs = 0

    def add(self, record: Record) -> None:
        """Take in a record; one of a later block first closes what the earlier blocks settled."""
        while record.block > self.block:
            self.next_block()
        key = record.cell, record.pair
        self.runs = max(self.runs, record.run)
        account = self._accounts.get(key)
        if account is None or record.status == "interrupted":
            return
        self.done.add(key)
        self._latest.see(record)
        if record.status == "ok":
            account.failures = 0
            tally = account.tallies.setdefault(self._epochs.of(record), _Tally())
            tally.runs += 1
            if record.boot:
                tally.boots[record.block] = record.boot
            self._take(tally, record)
            return
        account.failures += 1
        account.lost += self._blocks is not None and record.status == "failed"
        hopeless = record.status in FINAL or record.reason.startswith(HOPELESS)
        if hopeless or account.failures >= FAILURES_IN_A_ROW:
            account.given_up = record.status

    def _tally(self, key: Key) -> _Tally:
        """What counts of a unit now."""
        place = key[1], self._units[key].cell.factors.get("kernel", "")
        return self._accounts[key].tallies.setdefault(self._latest.epoch(place), _Tally())

    def _take(self, tally: _Tally, record: Record) -> None:
        shared = self._shared.get(record.pair, False)
        for name, value in metrics_of(record, self._ticks, shared, self._metering).items():
            tally.by_block.setdefault(name, {})[record.block] = value

    def is_open(self, key: Key) -> bool:
        """Whether that unit still wants runs."""
        return not self._closed(key)

    def _closed(self, key: Key) -> str:
        return self._accounts[key].given_up or self._tally(key).closed

    def assessment(self, key: Key) -> Assessment:
        """Where a unit stands."""
        tally = self._tally(key)
        values = {name: list(blocks.values()) for name, blocks in tally.by_block.items()}
        boots = {
            name: [tally.boots.get(block, 0) for block in blocks]
            for name, blocks in tally.by_block.items()
        }
        return assess(values, self._repeat, boots, self._accounts[key].lost)

    def next_block(self) -> None:
        """Close what is settled and begin the next block."""
        tallies = {key: self._tally(key) for key in self._accounts}
        standings = {
            key: Standing(
                self._units[key].cell.factors,
                tally.by_block,
                self._closed(key),
                tally.runs,
                tally.boots,
                self._accounts[key].lost,
            )
            for key, tally in tallies.items()
        }
        swept = [factor.name for factor in self._campaign.factors]
        for key, reason in closings(standings, swept, self._campaign.compare, self._repeat).items():
            tallies[key].closed = reason
        self.block += 1
        self.done = set()

    @property
    def failed(self) -> bool:
        """Whether a unit was given up, or has nothing but failures to show."""
        nothing = (
            a.failures and not self._tally(key).runs and not self._closed(key)
            for key, a in self._accounts.items()
        )
        return any(a.given_up == "failed" for a in self._accounts.values()) or any(nothing)

    def is_possible(self, block: int, records: int) -> bool:
        """Whether the last of so many records can be of that block: without boots, every block
        leaves a record or more.
        """
        return block < (records if self._blocks is None else self._blocks)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to be run."""
        return not self.open_keys or (self._blocks is not None and self.block >= self._blocks)

    @property
    def open_keys(self) -> list[Key]:
        """Units that still want runs, in file order."""
        return [key for key in self._units if self.is_open(key)]

    @property
    def size(self) -> int:
        return len(self._units)
