"""Earlier results of a campaign: how far its own level moves from one campaign to the next.

Two campaigns of the same cells differ although nothing was changed between them, and no number of
runs within them tells by how much: only other campaigns do. Each earlier result gives one mean of
logarithms for a cell, and the variance T of these means holds the campaign's level and the runs of
one campaign. Without a change A and B are draws as these are, so the variance of B - A is 2 T, and
(B - A) / sqrt(2 T) of k earlier results is Student's t with k - 1 degrees of freedom. Cells of one
campaign share its level, so they are not pooled: that would count the same campaigns again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from netbench.base.errors import NetbenchError
from netbench.base.opening import open_file
from netbench.base.units import listed
from netbench.read.compare import Place, by_place
from netbench.read.load import load
from netbench.read.matching import NAMED, differences, match
from netbench.read.result import Result
from netbench.result.files import read_plan
from netbench.stats.dependence import followed
from netbench.stats.intervals import Numbers, means_of
from netbench.stats.pairs import Series, by_unit

FEWEST = 2  # earlier results that have a spread


@dataclass(frozen=True)
class Level:
    """What one campaign says of one cell: the mean of its logarithms, the variance of that mean as
    its own runs (boots, where there are several) show it, and how many of these there are.
    """

    mean: float
    variance: float
    boots: int


@dataclass(frozen=True)
class History:
    """Earlier results of a campaign below `folder`, and in words what was left out or differs."""

    folder: Path
    results: tuple[Result, ...] = ()
    notes: tuple[str, ...] = ()

    def levels(self, a: Result, metric: str) -> Mapping[Place, list[Level]]:
        """What the earlier results say of each cell and pair of A; of those that match several
        cells of A, nothing.
        """
        found: dict[Place, list[Level]] = {}
        for result in self.results:
            if metric not in result.metrics:
                continue
            series = by_place(result.ok, metric)
            matches = match(a, result).matches
            places = [m.a for m in matches]
            for m in matches:
                mine = series.get(m.b)
                if places.count(m.a) == 1 and mine is not None and (mine.values > 0).all():
                    found.setdefault(m.a, []).append(level(mine))
        return found


def level(series: Series) -> Level:
    """The level of a cell, by its boots where it has several; one value has no variance (NaN)."""
    logs, boots = units(series), len(series.boots)
    estimate = followed if boots == 1 else means_of
    variance = float(estimate(logs).error) ** 2 if len(logs) > 1 else np.nan
    return Level(float(logs.mean()), variance, boots)


def units(series: Series) -> Numbers:
    """The logarithms of runs, or their means by boot or build where there are several boots."""
    logs = series.logs
    several = len(series.boots) > 1
    return by_unit(series.boot, logs, series.builds)[1] if several else logs


def spread(means: Numbers, within: Numbers, own: Numbers) -> Numbers:
    """Variance of B - A where nothing was changed, with k - 1 degrees of freedom.

    means: of k earlier results along the last axis; within: the variances of these means by their
    own runs (NaN: not known); own: the variance of B - A by the runs of A and B alone, below which
    it never is. Where A and B have fewer runs than the earlier results, what that adds is added.
    Degrees of freedom that it would add (Satterthwaite) are not taken: with two earlier results
    that happened to lie close together it would find 10% differences where there are none.
    """
    known = np.where(np.isnan(within), np.inf, within)
    fewer_runs = np.maximum(0.0, own - 2 * known.mean(axis=-1))
    total: Numbers = np.maximum(2 * means.var(axis=-1, ddof=1) + fewer_runs, own)
    return total


def find(folder: Path, a: Result, b: Result) -> History:
    """The other results of A's campaign below a folder. One that has the records of A, of B or of
    another is a copy and counts once; those that cannot be read are named.
    """
    seen = {_records(result.path) for result in (a, b)}
    results: list[Result] = []
    notes: list[str] = []
    for path in _named(folder, a.name):
        try:
            if (content := _records(path)) in seen:
                continue
            seen.add(content)
            results.append(load(path))
        except (NetbenchError, OSError) as error:
            notes.append(f"left out of the history: {path}: {error}")
    return History(folder, tuple(results), (*notes, *_differing(a, results)))


def _named(folder: Path, name: str) -> Iterator[Path]:
    """Result folders of a campaign, in the order of their paths."""
    for file in sorted(folder.rglob("plan.json")):
        try:
            if read_plan(file).name == name and (file.parent / "records.jsonl").is_file():
                yield file.parent
        except NetbenchError:
            continue  # it does not say whose it is


def _records(path: Path) -> bytes:
    with open_file(path / "records.jsonl") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _differing(a: Result, results: Sequence[Result]) -> Iterator[str]:
    """What earlier results differ in from A: it is part of the spread."""
    for result in results:
        if found := list(dict.fromkeys(d.what for d in differences(a, result))):
            yield (
                f"{result.path} differs from A in {listed(found, NAMED)}; what that changes is part"
                " of the spread between earlier results"
            )
