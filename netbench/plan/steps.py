"""The steps of a plan: what the conductor does, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass

from netbench.model import Cell, Pair

Key = tuple[str, str]


@dataclass(frozen=True)
class Unit:
    """A cell on a pair; what one run measures."""

    cell: Cell
    pair: Pair

    @property
    def key(self) -> Key:
        return self.cell.id, self.pair.name


@dataclass(frozen=True)
class Boot:
    """Bring every host up on a kernel ("": its original kernel). `number` counts from 1, `build`
    too: which build of the kernel it is, None where there is one.
    """

    number: int
    kernel: str
    build: int | None = None


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
    """One measured transfer. `number` is its place in the block, from 0. `round` counts from 1,
    None in a campaign of one pair; `beside`: the pairs that are to run at the same time.
    """

    unit: Unit
    block: int
    boot: int
    number: int
    round: int | None = None
    beside: tuple[Pair, ...] = ()


@dataclass(frozen=True)
class ProfileRun:
    """One transfer under the profiler, outside the measured runs. `round` counts from 0."""

    unit: Unit
    round: int
    boot: int


Step = Apply | Verify | Run | ProfileRun
