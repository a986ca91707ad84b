"""Campaign -> steps. Pure: no clock, no I/O; the same campaign and seed always give the same order.

The unit of work is a cell on a pair. Pairs of one round (rounds.py) run the same cell side by side,
as a wave. Each block is one pass over all waves in a random order of its own; factors that cost a
reset of a link or a host are strata: outermost within a block, visited in random order, once a
block.

Where kernels are swept, or a campaign wants several boots, boots are outermost: in each round every
kernel is booted once, in random order; each boot has the same number of blocks, of the cells that
are on its kernel. A kernel of several builds is booted on the next of them in each round.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from netbench.model import CONTROL, NOTHING, Campaign, Cell, Pair, Repeat
from netbench.plan.rounds import Rounds, campaign_rounds

# Connection, deployment of a run and its record, as measured between local hosts.
OVERHEAD_SECONDS = 0.03
# For bytes-bounded runs, whose length is not known before: a 10 Gb/s link.
ASSUMED_BYTES_PER_SECOND = 1.25e9
ASSUMED_REQUESTS_PER_SECOND = 20_000
VERIFY_SECONDS = 0.2
PROFILE_OVERHEAD_SECONDS = 0.4  # symbols are read before, stacks after a run
BOOT_SECONDS = 30.0  # a guess between a guest's 5 s and a server's minutes

Key = tuple[str, str]


class Unit(NamedTuple):
    """A cell on a pair; what one run measures."""

    cell: Cell
    pair: Pair

    @property
    def key(self) -> Key:
        return self.cell.id, self.pair.name


class Boot(NamedTuple):
    """Bring every host up on a kernel ("": its original kernel). `number` counts from 1, `build`
    too: which build of the kernel it is, None where there is one.
    """

    number: int
    kernel: str
    build: int | None = None


class Apply(NamedTuple):
    """Put a unit's settings on its hosts, read back."""

    unit: Unit


class Verify(NamedTuple):
    """Show once, outside the measured runs, that what arrives is what was sent."""

    unit: Unit


class Run(NamedTuple):
    """One measured transfer. `number` is its place in the block, from 0. `round` counts from 1,
    None in a campaign of one pair; `beside`: the pairs that are to run at the same time.
    """

    unit: Unit
    block: int
    boot: int
    number: int
    round: int | None = None
    beside: tuple[Pair, ...] = ()


class ProfileRun(NamedTuple):
    """One transfer under the profiler, outside the measured runs. `round` counts from 0."""

    unit: Unit
    round: int
    boot: int


Step = Apply | Verify | Run | ProfileRun


@dataclass(frozen=True)
class Plan:
    """What a campaign will do. `boot_ids`: of its hosts, where they are known; until then hosts
    share a kernel where the campaign says so.
    """

    campaign: Campaign
    boot_ids: Mapping[str, str] = field(default_factory=lambda: NOTHING)

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """Every cell on every pair, in file order."""
        return tuple(
            Unit(cell, pair) for cell in self.campaign.cells for pair in self.campaign.pairs
        )

    @property
    def compared(self) -> dict[Key, Mapping[str, str]]:
        """The factors of every cell on every pair of the campaign, also of those that other parts
        of it run; without controls. They are one family.
        """
        return {
            (cell.id, pair): cell.factors
            for cell in self.campaign.cells
            if not cell.control
            for pair in self.campaign.all_pairs
        }

    @cached_property
    def controls(self) -> Mapping[Key, Key]:
        """By control, the unit of its baseline."""
        return {
            unit.key: (unit.cell.id.removesuffix(CONTROL), unit.pair.name)
            for unit in self.units
            if unit.cell.control
        }

    @cached_property
    def rounds(self) -> Rounds:
        """The pairs that run side by side."""
        return campaign_rounds(self.campaign, self.boot_ids)

    @cached_property
    def _round_of(self) -> dict[Pair, tuple[int, tuple[Pair, ...]]]:
        """By pair, the number of its round, from 0, and the pairs of it."""
        return {pair: each for each in enumerate(self.rounds) for pair in each[1]}

    @cached_property
    def boots(self) -> bool:
        """Whether hosts are booted at all."""
        return self.campaign.boots_hosts

    @property
    def blocks_a_boot(self) -> int:
        """How many blocks each boot has: together they give every cell `repeat.min` runs."""
        repeat = self.campaign.repeat
        return math.ceil(repeat.min / repeat.boots)

    @property
    def blocks(self) -> int | None:
        """How many blocks there are, where boots decide that."""
        return self._boots_in_all * self.blocks_a_boot if self.boots else None

    @cached_property
    def repeat(self) -> Repeat:
        """When a cell closes: as the campaign says, or with as many runs as boots decide."""
        repeat = self.campaign.repeat
        runs = repeat.boots * self.blocks_a_boot
        return repeat._replace(min=runs, max=runs) if self.boots else repeat

    @cached_property
    def kernels(self) -> list[str]:
        """Kernels that cells are on, in file order; "" is the one that hosts come with."""
        return list(dict.fromkeys(cell.kernel or "" for cell in self.campaign.cells))

    def boot(self, block: int) -> Boot | None:
        """The boot that a block belongs to; None where hosts are left as they are."""
        if not self.boots:
            return None
        number = block // self.blocks_a_boot
        round_, at = divmod(number, len(self.kernels))
        kernels = self.kernels.copy()
        random.Random(f"netbench {self.campaign.seed} boots {round_}").shuffle(kernels)
        return self.boot_on(kernels[at], number + 1, round_)

    def boot_on(self, kernel: str, number: int = 0, round_: int = 0) -> Boot:
        """A boot on a kernel, whose builds take turns; without a number it is of no block."""
        builds = self.builds_of(kernel)
        return Boot(number, kernel, round_ % builds + 1 if builds > 1 else None)

    def builds_of(self, kernel: str) -> int:
        """How many builds a kernel has."""
        known = self.campaign.kernels.get(kernel)
        return len(known.each) if known else 1

    @cached_property
    def _costly(self) -> tuple[str, ...]:
        return tuple(factor.name for factor in self.campaign.factors if factor.costly)

    def _order(self, block: int, units: Iterable[Unit]) -> list[Unit]:
        """Those of some units that belong to a block, in its order: strata shuffled, then the waves
        within each.

        Each wave has a place drawn for it alone, so that some of the units are in the same order as
        among all of them. A wave of one pair is at that unit's place in a campaign of no rounds.
        """
        boot = self.boot(block)
        start = hashlib.blake2b(f"netbench {self.campaign.seed} {block}".encode(), digest_size=16)

        def draw(*words: str) -> bytes:
            drawn = start.copy()
            drawn.update("\0".join(words).encode())
            return drawn.digest()

        strata: dict[tuple[str, ...], bytes] = {}
        places: dict[Key, tuple[bytes, bytes]] = {}
        of_boot = [u for u in units if boot is None or (u.cell.kernel or "") == boot.kernel]
        for unit in of_boot:
            levels = self._stratum(unit)
            if levels not in strata:
                strata[levels] = draw("stratum", *levels)
            first = self._round_of[unit.pair][1][0]
            places[unit.key] = strata[levels], draw("unit", unit.cell.id, first.name)
        return sorted(of_boot, key=lambda unit: places[unit.key])

    def block(
        self,
        number: int,
        is_open: Callable[[Key], bool],
        keys: Iterable[Key] | None = None,
        boot: int = 0,
        joins: Callable[[Key], bool] = lambda key: False,
    ) -> Iterator[tuple[Step, ...]]:
        """The steps of a block, lazily, in groups of those that are executed at the same time:
        `is_open` is asked right before a unit's step. `keys` are the units that the block still has
        to run, all by default. `boot` is the number of the boot that the hosts are in. `joins`:
        whether a unit that is not open runs along while another of its wave is, so that the others
        find the network as busy as before.
        """
        first = self._first(number)
        units = self.units if keys is None else [self._by_key[key] for key in keys]
        ordered = self._order(number, units)
        waves = groupby(ordered, key=lambda unit: (unit.cell.id, self.round_of(unit)))
        for place, wave in enumerate(list(side_by_side) for _, side_by_side in waves):

            def here(wave: list[Unit] = wave) -> list[Unit]:
                live = any(is_open(unit.key) for unit in wave)
                return [unit for unit in wave if live and (is_open(unit.key) or joins(unit.key))]

            if there := [u for u in here() if self.campaign.settings or u.cell.settings]:
                yield tuple(map(Apply, there))
            if first and self.campaign.verify and (there := here()):
                yield tuple(map(Verify, there))
            if there := here():
                yield tuple(self._runs(there, number, boot, place))

    def round_of(self, unit: Unit) -> int:
        """The round of a unit, from 1."""
        return self._round_of[unit.pair][0] + 1

    def _runs(self, wave: Iterable[Unit], block: int, boot: int, place: int) -> Iterator[Run]:
        pairs = [unit.pair for unit in wave]
        several = len(self.campaign.all_pairs) > 1  # with those of its other parts
        for at, unit in enumerate(wave):
            if several:
                beside = (*pairs[:at], *pairs[at + 1 :])
                yield Run(unit, block, boot, place, self.round_of(unit), beside)
            else:
                yield Run(unit, block, boot, place)

    def profiles(
        self, due: Collection[tuple[Key, int]], kernel: str | None, boot: int
    ) -> Iterator[Step]:
        """The steps of the profile runs that are due, as (unit, round): of the units on a kernel,
        or of all (None). Each round is in an order of its own, so that what drifts meets all cells
        alike.
        """
        for number in sorted({number for _, number in due}):
            units = [
                self._by_key[key]
                for key, round_ in due
                if round_ == number and kernel in (None, self._by_key[key].cell.kernel or "")
            ]
            random.Random(f"netbench {self.campaign.seed} profiles {number}").shuffle(units)
            strata = [self._stratum(unit) for unit in units]
            for unit in sorted(units, key=lambda unit: strata.index(self._stratum(unit))):
                if self.campaign.settings or unit.cell.settings:
                    yield Apply(unit)
                yield ProfileRun(unit, number, boot)

    def _stratum(self, unit: Unit) -> tuple[str, ...]:
        """Its levels of the factors that cost a reset of a link or a host."""
        return tuple(unit.cell.factors.get(name, "") for name in self._costly)

    @cached_property
    def _by_key(self) -> Mapping[Key, Unit]:
        return {unit.key: unit for unit in self.units}

    def _first(self, block: int) -> bool:
        """Whether the cells of a block run for the first time in it."""
        boot = self.boot(block)
        return (
            block == 0
            if boot is None
            else block % self.blocks_a_boot == 0 and boot.number <= len(self.kernels)
        )

    def wanted(
        self, block: int, is_open: Callable[[Key], bool], done: Collection[Key]
    ) -> list[Unit]:
        """What a block still has to do."""
        units = [unit for unit in self.units if unit.key not in done and is_open(unit.key)]
        return self._order(block, units)

    @property
    def _boots_in_all(self) -> int:
        return len(self.kernels) * self.campaign.repeat.boots if self.boots else 0

    def all_boots(self) -> list[Boot]:
        """Every boot, in order; none where hosts are left as they are."""
        boots = (self.boot(block) for block in range(0, self.blocks or 0, self.blocks_a_boot))
        return [boot for boot in boots if boot]

    def seconds_of_boots(self, block: int) -> float:
        """Estimated time of the boots that come after that of a block, including the last one
        back to the original kernels.
        """
        now = self.boot(block)
        return BOOT_SECONDS * (1 + self._boots_in_all - now.number) if now else 0.0

    def order(self) -> list[str]:
        """Cell ids in the order of the first block."""
        return [unit.cell.id for unit in self._order(0, self.units)]

    @property
    def runs_total(self) -> int:
        """How many runs there are if every unit has `repeat.min`."""
        return len(self.units) * self.repeat.min

    def seconds(self) -> tuple[float, float]:
        """Estimated time for `repeat.min` and `repeat.max` blocks; of bytes at 10 Gb/s."""
        once = sum(map(self.run_seconds, self.units))
        waves = sum(map(self._share, self.units))
        fixed = VERIFY_SECONDS * waves if self.campaign.verify else 0.0
        fixed += BOOT_SECONDS * (self._boots_in_all + 1) if self.boots else 0.0
        least, most = (fixed + once * runs for runs in (self.repeat.min, self.repeat.max))
        profile = self.campaign.profile
        most += self._profile_seconds
        least += self._profile_seconds if profile and profile.cells == "all" else 0.0
        limit = self.campaign.limit / 1e9 if self.campaign.limit else most
        return min(least, limit), min(most, limit)

    def run_seconds(self, unit: Unit) -> float:
        """Estimated time that a run of a unit adds to a campaign: its share in that of its wave."""
        return run_seconds(unit) * self._share(unit)

    def _share(self, unit: Unit) -> float:
        """A run's share in the time of those that run beside it."""
        return 1 / len(self._round_of[unit.pair][1])

    @property
    def _profile_seconds(self) -> float:
        """Estimated time of the profile runs of all units."""
        profile = self.campaign.profile
        if profile is None:
            return 0.0
        once = sum(unit.cell.transfer.warmup for unit in self.units) / 1e9
        once += len(self.units) * (profile.duration / 1e9 + PROFILE_OVERHEAD_SECONDS)
        return profile.runs * once + (BOOT_SECONDS * len(self.kernels) if self.boots else 0.0)


def run_seconds(unit: Unit) -> float:
    """Estimated time of one run of a unit."""
    transfer = unit.cell.transfer
    if transfer.requests is not None:
        seconds = transfer.requests / ASSUMED_REQUESTS_PER_SECOND
        return transfer.warmup / 1e9 + seconds + OVERHEAD_SECONDS
    if transfer.bytes is not None:
        speed = transfer.rate / 8 if transfer.rate else ASSUMED_BYTES_PER_SECOND
        return transfer.warmup / 1e9 + transfer.bytes / speed + OVERHEAD_SECONDS
    return (transfer.warmup + (transfer.duration or 0)) / 1e9 + OVERHEAD_SECONDS
