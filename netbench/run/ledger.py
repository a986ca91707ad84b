"""What is known of every unit so far, from its records alone: which are closed, and why.

Replaying the records of a result gives the same ledger, which is what `resume` stands on.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, KeysView, Mapping
from dataclasses import dataclass, field

from netbench.base.units import listed
from netbench.plan.plan import Key, Plan, Unit
from netbench.read.accounts import Account
from netbench.read.derive import in_one_unit, metrics_of
from netbench.read.epochs import KERNEL, Epoch, Epochs, Stratum, is_mixed, stratum
from netbench.result.files import Hosts
from netbench.result.record import Record
from netbench.stats.closing import Assessment, Standing, group_closings, groups, most, target_of
from netbench.stats.pairs import Rounds, rounds

FAILURES_IN_A_ROW = 3  # then a unit is given up: more would say the same
FINAL = ("unsupported", "refused")
LOST = "lost: "  # how the reason begins with which units of a pair that was given up have failed
HOPELESS = ("verify:", "boot:", LOST)  # how reasons begin that another run would meet too


SHOWN = "throughput"  # beside the chosen metrics, for who watches
LAST_BAD = 16  # runs that are not ok, with their reasons
LOOKS = 100  # cells of more blocks are looked at less often: each hundredth block more


@dataclass
class Tally:
    """The ok runs of one cell on one pair, of one epoch: values by metric and block, the boot of
    each block that is not in boot 0, and the boots of all. `closed`: why it wants no more of them,
    "" while it does.
    """

    values: dict[str, dict[int, float]] = field(default_factory=dict)
    boots: dict[int, int] = field(default_factory=dict)
    visited: set[int] = field(default_factory=set)
    runs: int = 0
    closed: str = ""

    def add(
        self, block: int, boot: int, metrics: Mapping[str, float], chosen: Iterable[str]
    ) -> None:
        """Take in the metrics of an ok run. A second run of a block replaces the first."""
        self.runs += 1
        if boot:
            self.boots[block] = boot
        if metrics:
            self.visited.add(boot)
        for name in [name for name in (*chosen, SHOWN) if name in metrics] or metrics:
            self.values.setdefault(name, {})[block] = metrics[name]


@dataclass(slots=True)
class _Account:
    """What became of one unit, in whatever epoch. `lost`: runs that failed and are not repeated,
    since boots decide how many there are; `given_up`: the reason.
    """

    unit: Unit
    tallies: defaultdict[Epoch | None, Tally] = field(default_factory=lambda: defaultdict(Tally))
    failures: int = 0  # in a row
    lost: int = 0
    given_up: str = ""

    @property
    def place(self) -> Stratum:
        return self.unit.pair.name, self.unit.cell.factors.get(KERNEL, "")


class Ledger:
    """Units' values and whether they are closed; evaluated between blocks only.

    For who watches, `counts`: records by status; `bad`: the last runs that are not ok; `failures`:
    how many runs of each cell and pair failed; `last`: the record that was added last.
    """

    def __init__(
        self,
        plan: Plan,
        ticks: Mapping[str, int],
        shared: Mapping[str, bool],
        accounts: Mapping[str, Account],
        hosts: Hosts | None = None,
    ) -> None:
        """`ticks`: of each host, in a second. `shared`: of each pair, whether both ends are on one
        kernel. `hosts`: the entries of facts.json; without them all runs are of one epoch.
        """
        self._compare = plan.campaign.compare
        self._repeat = plan.repeat
        self._blocks = plan.blocks
        self._ticks, self._shared, self._metering = ticks, shared, accounts
        self._units = {unit.key: unit for unit in plan.units}
        self._accounts = {key: _Account(unit) for key, unit in self._units.items()}
        self._baselines = plan.controls
        self._open = {key for key in self._accounts if key not in self._baselines}
        self._of_place: dict[Stratum, list[Key]] = {}
        for key in self._open:
            self._of_place.setdefault(self._accounts[key].place, []).append(key)
        self.epochs = Epochs(
            hosts or {}, plan.campaign.handled, [p.name for p in plan.campaign.pairs]
        )
        self._latest: dict[Stratum, Epoch] = {}  # of the last ok run: what counts there
        factors = {
            key: unit.cell.factors
            for key, unit in self._units.items()
            if key not in self._baselines
        }
        swept = [factor.name for factor in plan.campaign.factors]
        self._target = target_of(plan.compared, self._compare, self._repeat)
        self._groups = groups(factors, swept, self._compare)
        self._group_of = {key: at for at, group in enumerate(self._groups) for key in group}
        self.block = 0
        self.done: set[Key] = set()  # in the present block
        self.runs = 0
        self.counts: Counter[str] = Counter()
        self.bad: deque[Record] = deque(maxlen=LAST_BAD)
        self.failures: Counter[Key] = Counter()
        self.last: Record | None = None
        self.hosts = hosts or {}
        self._printed: dict[str, str] = {}  # units of what tools print

    def add(self, record: Record) -> None:
        """Take in a record; one of a later block first closes what the earlier blocks decided."""
        while record.block > self.block:
            self.next_block()
        key = record.cell, record.pair
        self.runs = max(self.runs, record.run)
        self.counts[record.status] += 1
        self.last = record
        if record.status != "ok":
            self.bad.append(record)
            self.failures[key] += record.status == "failed"
        account = self._accounts.get(key)
        if account is None or record.status == "interrupted":
            return
        self.done.add(key)
        if record.status == "ok":
            self._add_ok(account, record)
            return
        account.failures += 1
        account.lost += self._blocks is not None and record.status == "failed"
        hopeless = record.status in FINAL or record.reason.startswith(HOPELESS)
        if hopeless or account.failures >= FAILURES_IN_A_ROW:
            account.given_up = record.status
            self._open.discard(key)

    def _add_ok(self, account: _Account, record: Record) -> None:
        account.failures = 0
        place = stratum(record)
        epoch = self.epochs.of(record.pair, record.run, record.boot)
        if self._latest.get(place) != epoch and not is_mixed(epoch):
            self._latest[place] = epoch
            self._reopen(place)
        shared = self._shared.get(record.pair, False)
        metrics = metrics_of(record, self._ticks, shared, self._metering, ratios=False)
        for _ in in_one_unit(record, metrics, self._printed):
            pass
        account.tallies[epoch].add(record.block, record.boot, metrics, self._repeat.metrics)

    def not_pooled(self) -> list[str]:
        """What a resumed campaign must say of facts: of which pairs, where not of all."""
        lines = dict[str, list[str]]()
        for place, latest in self._latest.items():
            accounts = [self._accounts[key] for key in self._of_place.get(place, ())]
            counted = {epoch for account in accounts for epoch in account.tallies if epoch}
            said = self.epochs.not_pooled(place[0], latest, counted)
            lines.setdefault(said, []).append(place[0])
        named = {line: f"{listed(of, 4, ', ')}: " for line, of in lines.items()}
        return [named[line] * (len(lines) > 1) + line for line in lines if line]

    def _reopen(self, place: Stratum) -> None:
        """Other tallies count in a stratum now, which may be closed or not."""
        for key in self._of_place.get(place, ()):
            account = self._accounts[key]
            if account.given_up or self._tally(account).closed:
                self._open.discard(key)
            else:
                self._open.add(key)

    def _tally(self, account: _Account) -> Tally:
        """What counts of a unit now."""
        return account.tallies[self._latest.get(account.place)]

    def is_open(self, key: Key) -> bool:
        """Whether that unit still wants runs; a control does while its baseline does."""
        if key in self._baselines:
            return self._baselines[key] in self._open and not self._accounts[key].given_up
        return key in self._open

    def joins(self, key: Key) -> bool:
        """Whether a unit that is closed may have a run more, beside others that want one."""
        account = self._accounts[key]
        return not account.given_up and self._tally(account).runs < self._repeat.max

    def assessment(self, key: Key) -> Assessment:
        """Where a unit stands."""
        return self._standing(self._accounts[key]).alone(self._repeat)

    def status(self, key: Key) -> str:
        """`open`, why a unit is closed (`converged`, `max`), or what it was given up as (`failed`,
        `refused`, `unsupported`).
        """
        account = self._accounts[key]
        return account.given_up or ("open" if self.is_open(key) else self._tally(account).closed)

    def tally(self, key: Key) -> Tally:
        """What counts of a unit now."""
        return self._tally(self._accounts[key])

    def _standing(self, account: _Account) -> Standing:
        tally = self._tally(account)
        return Standing(
            account.unit.cell.factors,
            tally.values,
            account.given_up,
            tally.runs,
            tally.boots,
            account.lost,
        )

    def rounds(self) -> Rounds:
        """The rounds of boots by the compared factor's levels."""
        by_level: dict[str | None, set[int]] = {}
        for account in self._accounts.values() if self._compare else ():
            level = account.unit.cell.factors.get(self._compare.factor) if self._compare else None
            by_level.setdefault(level, set()).update(self._tally(account).visited)
        return rounds(by_level.values())

    def next_block(self) -> None:
        """Close what is decided and begin the next block."""

        def is_due(account: _Account) -> bool:
            """Whether an open unit is looked at after this block."""
            runs = self._tally(account).runs
            return runs % max(runs // LOOKS, 1) == 0 or runs + account.lost >= most(self._repeat)

        order = self.rounds()
        due_groups = {self._group_of[key] for key in self._open if is_due(self._accounts[key])}
        for keys in (self._groups[at] for at in sorted(due_groups)):
            accounts = (self._accounts[key] for key in keys)
            if all(self._tally(a).runs + a.lost < self._repeat.min for a in accounts):
                continue  # none has the least number of runs that any could close with
            group = {key: self._standing(self._accounts[key]) for key in keys}
            for key, reason in group_closings(group, self._compare, self._target, order).items():
                self._tally(self._accounts[key]).closed = reason
                if reason:
                    self._open.discard(key)
                else:
                    self._open.add(key)
        self.block += 1
        self.done = set()

    @property
    def failed(self) -> bool:
        """Whether a unit was given up, or has nothing but failures; or all was refused."""
        ends = {a.given_up for key, a in self._accounts.items() if key not in self._baselines}
        return any(
            account.given_up == "failed"
            or (account.failures and self.is_open(key) and not self._tally(account).runs)
            for key, account in self._accounts.items()
        ) or ("refused" in ends and ends <= {*FINAL})

    def is_possible(self, block: int, records: int) -> bool:
        """Whether the last of so many records can be of that block, each of which leaves one."""
        return block < (records if self._blocks is None else self._blocks)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to be run."""
        return not self._open or (self._blocks is not None and self.block >= self._blocks)

    @property
    def keys(self) -> KeysView[Key]:
        """All units, controls too."""
        return self._accounts.keys()

    @property
    def open_keys(self) -> list[Key]:
        """Units that still want runs, in file order."""
        return [key for key in self._accounts if self.is_open(key)]

    @property
    def open_count(self) -> int:
        """How many units still want runs; controls keep none waiting."""
        return len(self._open)

    @property
    def size(self) -> int:
        """How many units there are beside controls."""
        return len(self._accounts) - len(self._baselines)
