"""Campaign -> steps. Pure: no clock, no I/O; the same campaign and seed always give the same order.

The unit of work is a cell on a pair. Each block is one pass over all units in a random order of its own; factors that cost a
reset of a link or a host are strata: outermost within a block, visited in random order, once a block.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from netbench.model import Campaign, Cell, Pair

OVERHEAD_SECONDS = 0.03  # connection, deployment of a run and its record, as measured between local hosts
ASSUMED_BYTES_PER_SECOND = 1.25e9  # for bytes-bounded runs, whose length nobody knows before: a 10 Gb/s link
VERIFY_SECONDS = 0.2


@dataclass(frozen=True)
class Unit:
    """A cell on a pair; what one run measures."""

    cell: Cell
    pair: Pair

    @property
    def key(self) -> tuple[str, str]:
        return self.cell.id, self.pair.name


@dataclass(frozen=True)
class Boot:
    """Bring a host up on a kernel."""

    host: str
    kernel: str


@dataclass(frozen=True)
class Apply:
    """Put a unit's settings on its hosts, read back."""

    unit: Unit


@dataclass(frozen=True)
class Verify:
    """Show once, outside the measured runs, that what arrives is what was sent."""

    unit: Unit


@dataclass(frozen=True)
class Run:
    """One measured transfer. `number` is its place in the block, from 0."""

    unit: Unit
    block: int
    boot: int
    number: int


@dataclass(frozen=True)
class Profile:
    """Profile a unit for some seconds, outside the measured runs."""

    unit: Unit


@dataclass(frozen=True)
class Restore:
    """Put back everything that was changed."""


Step = Boot | Apply | Verify | Run | Profile | Restore
Key = tuple[str, str]


@dataclass(frozen=True)
class Plan:
    """What a campaign will do."""

    campaign: Campaign

    @property
    def units(self) -> tuple[Unit, ...]:
        """Every cell on every pair, in file order."""
        return tuple(Unit(cell, pair) for cell in self.campaign.cells for pair in self.campaign.pairs)

    def _order(self, block: int) -> list[Unit]:
        """All units in this block's order: strata shuffled, then the units within each."""
        chance = random.Random(f"netbench {self.campaign.seed} {block}")
        strata: dict[tuple[str, ...], list[Unit]] = {}
        costly = [factor.name for factor in self.campaign.factors if factor.costly]
        for unit in self.units:
            strata.setdefault(tuple(unit.cell.factors.get(name, "") for name in costly), []).append(unit)
        order = list(strata.values())
        chance.shuffle(order)
        for units in order:
            chance.shuffle(units)
        return [unit for units in order for unit in units]

    def block(
        self,
        number: int,
        is_open: Callable[[Key], bool],
        done: Collection[Key] = (),
        boot: int = 0,
        pairs: Collection[Pair] | None = None,
    ) -> Iterator[Step]:
        """The steps of one block, lazily: `is_open` is asked when a unit's turn has come; `done` has run in it already.

        `boot` is the number of the boot that the hosts are in. `pairs` are those to be served; all are by default.
        """
        place = 0
        for unit in self._order(number):
            if unit.key in done or (pairs is not None and unit.pair not in pairs) or not is_open(unit.key):
                continue
            if self.campaign.settings or unit.cell.settings:
                yield Apply(unit)
            if number == 0 and self.campaign.verify:
                yield Verify(unit)
            if is_open(unit.key):
                yield Run(unit, number, boot, place)
                place += 1

    def order(self) -> list[str]:
        """Cell ids in the order of the first `repeat.min` blocks."""
        return [unit.cell.id for block in range(self.campaign.repeat.min) for unit in self._order(block)]

    def seconds(self) -> tuple[float, float]:
        """Estimated time for `repeat.min` and for `repeat.max` blocks. Bytes-bounded runs are guessed at 10 Gb/s."""
        once = sum(run_seconds(unit) for unit in self.units)
        verify = VERIFY_SECONDS * len(self.units) if self.campaign.verify else 0.0
        least, most = (verify + once * blocks for blocks in (self.campaign.repeat.min, self.campaign.repeat.max))
        limit = self.campaign.limit / 1e9 if self.campaign.limit else most
        return min(least, limit), min(most, limit)

    def to_json(self) -> dict[str, object]:
        """`{cells: [{cell, factors}], order: [...], seconds}`, and what a reader of the result needs beside it."""
        campaign = self.campaign
        compare = campaign.compare
        return {
            "name": campaign.name,
            "seed": campaign.seed,
            "pairs": [pair.name for pair in campaign.pairs],
            "swept": [factor.name for factor in campaign.factors],
            "cells": [{"cell": cell.id, "factors": dict(cell.factors)} for cell in campaign.cells],
            "order": self.order(),
            "seconds": round(self.seconds()[0], 1),
            "seconds_at_most": round(self.seconds()[1], 1),
            "repeat": _repeat(campaign),
            "not_built": list(campaign.unbuilt),
            "compare": None
            if compare is None
            else {"factor": compare.factor, "baseline": compare.baseline, "margin": compare.margin},
        }


def _repeat(campaign: Campaign) -> Mapping[str, object]:
    repeat = campaign.repeat
    return {
        "min": repeat.min,
        "max": repeat.max,
        "confidence": repeat.confidence,
        "precision": repeat.precision,
        "metrics": list(repeat.metrics),
        "boots": repeat.boots,
    }


def run_seconds(unit: Unit) -> float:
    """Estimated time of one run of a unit."""
    transfer = unit.cell.transfer
    if transfer.bytes is not None:
        speed = transfer.rate / 8 if transfer.rate else ASSUMED_BYTES_PER_SECOND
        return transfer.warmup / 1e9 + transfer.bytes / speed + OVERHEAD_SECONDS
    return (transfer.warmup + (transfer.duration or 0)) / 1e9 + OVERHEAD_SECONDS
