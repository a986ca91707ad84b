"""Figures that others published of the same experiment: `netbench/published/NAME.yaml`, a list of
messages that campaign NAME repeats.

A message has author, date, subject and reference; hardware, link and kernel where it says them;
`metrics` with their
units and `variants` (what he measured beside each other: kernels, machines), and `rows`. A row is
one condition: `of` which variant; `at`, the levels of the campaign's cell that repeats it (without
`at` there is none, and `about` says what it was); a value for each metric, as printed; and `lines`,
the lines of the message that have it. Of levels, `file` stands for any that names a file. A variant
may have levels of its own (`at`), which count where the campaign sweeps their factor. `ratios`: the
levels that he compares. `said`: his own words. `notes`: what a reader must know of the figures.

A result finds its figures by the campaign's name and its cells' levels, and a row its cell where
the levels of all factors agree; a factor that the result did not sweep must be written so in its
campaign. What has no counterpart is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from netbench.analysis.result import Result

FOLDER = Path(__file__).parent.parent / "published"
FILE = "file"
SETUP = ("hardware", "link", "kernel")
_NUMBER = re.compile(r"\d+(?:\.\d+)?\Z")
Levels = Mapping[str, str]


@dataclass(frozen=True)
class Row:
    """One condition: its variant, the levels of its cell (None: it has no counterpart), and by
    metric its values as printed.
    """

    of: str
    at: Levels | None
    values: Mapping[str, str]
    lines: tuple[str, ...]
    about: str = ""


@dataclass(frozen=True)
class Ratio:
    """Two levels of a factor that were compared."""

    factor: str
    level: str
    against: str


@dataclass(frozen=True)
class Message:
    """What one message published."""

    author: str
    date: str
    subject: str
    reference: str
    metrics: Mapping[str, str]
    variants: Mapping[str, Levels]
    rows: tuple[Row, ...]
    setup: tuple[str, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    said: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def year(self) -> str:
        return self.date.partition("-")[0]

    def variant(self, name: str, result: Result) -> str:
        """What a variant's values are under: its name, or the year where the result swept it."""
        return self.year if set(self.variants[name]) & set(result.swept) else name


@dataclass(frozen=True)
class Beside:
    """A cell of a result, and what was published of it: `values` by variant and metric. Values of a
    variant whose levels the result swept are under the year: which variant it is, the cell says.
    """

    cell: str
    levels: Levels
    values: Mapping[tuple[str, str], str] = field(default_factory=dict)


def messages(campaign: str) -> list[Message]:
    """The messages that a campaign of that name repeats."""
    files = {file.stem: file for file in FOLDER.glob("*.yaml")}
    if campaign not in files:
        return []
    document = yaml.load(files[campaign].read_text(), Loader=yaml.BaseLoader)
    return [_message(each) for each in document]


def _message(each: Mapping[str, Any]) -> Message:
    names = ("author", "date", "subject", "reference")
    return Message(
        **{name: each[name] for name in names},
        metrics=each["metrics"],
        variants={variant["name"]: variant.get("at", {}) for variant in each["variants"]},
        rows=tuple(_row(row, each["metrics"]) for row in each["rows"]),
        setup=tuple(each[name] for name in SETUP if name in each),
        ratios=tuple(Ratio(**ratio) for ratio in each.get("ratios", ())),
        said=tuple(each.get("said", ())),
        notes=tuple(each.get("notes", ())),
    )


def _row(row: Mapping[str, Any], metrics: Mapping[str, str]) -> Row:
    values = {name: row[name] for name in metrics if name in row}
    return Row(row["of"], row.get("at"), values, tuple(row["lines"]), row.get("about", ""))


def number(value: str) -> float | None:
    """A printed value as a number; None for a range, or one with a unit of its own."""
    return float(value) if _NUMBER.match(value) else None


def beside(message: Message, result: Result) -> list[Beside]:
    """The cells of a result of which something was published, in the plan's order."""
    found: list[Beside] = []
    for cell in result.cells:
        values = {
            (message.variant(row.of, result), metric): value
            for row in message.rows
            if row.at is not None
            and _same(_levels(row.at, message.variants[row.of], result), cell.factors, result)
            for metric, value in row.values.items()
        }
        if values:
            levels = {name: cell.factors[name] for name in result.swept if name in cell.factors}
            found.append(Beside(cell.cell, levels, values))
    return found


def _levels(at: Levels, variant: Levels, result: Result) -> Levels:
    """The levels of a row, with those of its variant that the result swept."""
    return {**at, **{name: level for name, level in variant.items() if name in result.swept}}


def _same(wanted: Levels, factors: Levels, result: Result) -> bool:
    """Whether a cell is at all levels of a row, and sweeps nothing else."""
    asked = result.asked or {}
    if any(name in factors and name not in wanted for name in result.swept):
        return False
    return all(
        is_level(
            level,
            factors.get(name) or asked.get(f"transfer.{name}") or asked.get(f"settings.{name}", ""),
        )
        for name, level in wanted.items()
    )


def is_level(wanted: str, level: str) -> bool:
    """Whether a level is the one that the data name."""
    return level == wanted or (wanted == FILE and level.startswith("{file:"))


def ratio_of(one: Beside, base: Beside, variant: str, metric: str) -> float | None:
    """The published ratio of two cells; None where it cannot be told."""
    values = (each.values.get((variant, metric), "") for each in (one, base))
    level, against = (number(value) for value in values)
    return level / against if level and against else None


def pairs(ratio: Ratio, cells: Sequence[Beside]) -> Iterator[tuple[Beside, Beside]]:
    """The cells at the level of a ratio, each with that which differs from it by that alone."""
    for one in cells:
        if not is_level(ratio.level, one.levels.get(ratio.factor, "")):
            continue
        for base in cells:
            others = {**one.levels, ratio.factor: base.levels.get(ratio.factor, "")}
            if is_level(ratio.against, others[ratio.factor]) and others == base.levels:
                yield one, base
