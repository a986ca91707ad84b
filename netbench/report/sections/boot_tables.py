"""The boots: what was booted when, each cell's mean in each boot, and how far boots lie apart
beside the runs within one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from netbench.read.cells import CellResult, rows_by_cell
from netbench.read.compare import builds_of
from netbench.report.blocks import Block, Prose, Row, Section, Table, Value, keyed, tabled
from netbench.report.phrases import releases
from netbench.report.source import Source
from netbench.stats.by_boot import KERNEL, Split, split

# boots of a kernel that have a column each; of more the least and the greatest mean are shown
BESIDE = 8
UNKNOWN = (
    "How far boots of one kernel lie apart is not known: that takes two boots of it, and two runs"
    " in one of them."
)
HOW = "between, within: standard deviations of boots, and of runs within a boot, in % of the mean."


def boots(source: Source) -> Section | None:
    """None where all runs lie in one boot and netbench booted nothing."""
    result = source.result
    if len(result.kernels) < 2 and not result.in_boots:
        return None
    blocks: list[Block] = [_booted(source)]
    splits: list[Split | None] = []
    for metric in (m for m in result.repeat.metrics if m in result.metrics):
        cells = list(_cells(source, metric))
        blocks += _tables(source, metric, cells)
        splits += [cell.split for cell in cells]
    unknown = () if any(splits) else (Prose((UNKNOWN,)),)
    return Section("boots", "Boots", (*blocks, *unknown))


def _booted(source: Source) -> Table:
    """One row a boot: its kernel, when it was used, and how much was run in it."""
    result = source.result
    builds = builds_of(result.runs)
    rows: list[Row] = []
    for number, kernel in result.kernels.items():
        group = result.runs[result.runs["boot"] == number]
        words = {"boot": str(number)}
        if KERNEL in result.factors:
            # What failed to come up after it was not in it.
            group = group[group[KERNEL] == kernel]
            words["kernel"] = kernel
        if builds:
            words["build"] = str(builds.get(number, 1))
        started = group["started"].dropna()
        rows.append(
            {
                **keyed([*words], *words.values()),
                "first run": f"{started.min():%m-%d %H:%M:%S}" if len(started) else None,
                "blocks": f"{group['block'].min()} to {group['block'].max()}",
                "runs": len(group),
                "ok": int(((group["status"] == "ok") & (group["excluded"] == "")).sum()),
            }
        )
    notes = ["Times are UTC. Boots are numbered in the order in which they ran."]
    if kernels := releases(result, filter(None, result.kernels.values())):
        notes.append(f"{kernels}.")
    return tabled("What was booted", rows, *notes)


class _Cell(NamedTuple):
    """A cell's means by boot, and what its runs say of boots."""

    cell: CellResult
    means: dict[int, float]
    split: Split | None

    @property
    def kernel(self) -> str:
        return self.cell.factors.get(KERNEL, "")


def _cells(source: Source, metric: str) -> Iterator[_Cell]:
    """Those that have the metric."""
    runs = source.result.ok
    places = rows_by_cell(runs)
    values, boots = runs[metric].to_numpy(dtype=float), runs["boot"].to_numpy()
    for cell in source.cells:
        rows = places.get((cell.cell, cell.pair), np.array([], dtype=np.int64))
        rows = rows[~np.isnan(values[rows])]
        if len(rows):
            of_cell, its_boots = values[rows], boots[rows]
            means = {int(b): float(of_cell[its_boots == b].mean()) for b in np.unique(its_boots)}
            yield _Cell(cell, means, split(of_cell, its_boots))


def _tables(source: Source, metric: str, cells: Sequence[_Cell]) -> Iterator[Table]:
    """The means by boot, a table a kernel."""
    described = source.result.describe(metric)
    kernels = list(dict.fromkeys(cell.kernel for cell in cells))
    for kernel in kernels:
        title = f"{described.title} by boot" + (f", kernel {kernel}" if kernel else "")
        of_kernel = [cell for cell in cells if cell.kernel == kernel]
        numbers = sorted({boot for cell in of_kernel for boot in cell.means})
        notes = [HOW] if kernel == kernels[-1] else []
        rows = [_row(source, cell, described.unit, numbers) for cell in of_kernel]
        yield tabled(title, rows, *notes)


def _row(source: Source, cell: _Cell, unit: str, boots: Sequence[int]) -> Row:
    words = dict(zip(source.keys, source.key(cell.cell), strict=True))
    words.pop(KERNEL, None)
    words = words or {"cell": "all"}
    means = {f"boot {boot}": cell.means.get(boot) for boot in boots}
    if len(boots) > BESIDE:
        means = {"least": min(cell.means.values()), "greatest": max(cell.means.values())}
    whole = cell.split

    def percent(sd: float) -> Value:
        """A deviation in percent of the mean."""
        return f"{100 * sd / abs(whole.mean):.2f}" if whole and whole.mean else None

    return {
        **keyed([*words], *words.values()),
        **{f"{name} [{unit}]": mean for name, mean in means.items()},
        "between [%]": percent(whole.between) if whole else None,
        "within [%]": percent(whole.within) if whole else None,
    }
