"""The boots: what was booted when, each cell's mean in each boot, and how far builds and boots lie
apart beside the runs within one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from netbench.read.cells import CellResult, rows_by_cell
from netbench.read.compare import builds_of
from netbench.report.blocks import Block, Column, Prose, Section, Table, Value, tabled
from netbench.report.numbers import count
from netbench.report.source import Source
from netbench.stats.by_boot import KERNEL, Split, pooled, split

# boots of a kernel that have a column each; of more the least and the greatest mean are shown
BESIDE = 8
HOSTS = 3  # hosts whose boot ids are shown
SHORT = 8  # characters of a boot id


def boots(source: Source) -> Section | None:
    """None where all runs lie in one boot and netbench booted nothing."""
    result = source.result
    if len(result.kernels) < 2 and not result.in_boots:
        return None
    blocks: list[Block] = [_booted(source)]
    sentences: list[str] = []
    for metric in (m for m in result.repeat.metrics if m in result.metrics):
        rows = list(_rows(source, metric))
        blocks += _tables(source, metric, rows)
        confidence = result.repeat.confidence
        by_build = pooled([row.nested for row in rows if row.nested])
        sentences += (
            _worth_of_builds(metric, by_build, confidence)
            if by_build
            else _worth(metric, [row.split for row in rows if row.split], confidence)
        )
    if not sentences:
        sentences.append(
            "How far boots of one kernel lie apart is not known: that takes two boots of it, and"
            " two runs in one of them."
        )
    return Section("boots", "Boots", (*blocks, Prose(tuple(sentences), bullets=True)))


def _booted(source: Source) -> Table:
    """One row a boot: its kernel, when it was used, and how much was run in it."""
    result = source.result
    hosts = list(result.hosts)[:HOSTS]
    entries = {(host, entry.boot): entry for host in hosts for entry in result.hosts[host]}
    builds = builds_of(result.runs)
    rows: list[dict[Column, Value]] = []
    releases: dict[str, dict[str, None]] = {}
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
        known = {host: e for host in hosts if (e := entries.get((host, number)))}
        releases.setdefault(kernel, {}).update(
            dict.fromkeys(str(e.facts["kernel"]) for e in known.values() if e.facts.get("kernel"))
        )
        ids = ", ".join(f"{h} {e.boot_id[:SHORT]}" for h, e in known.items())
        ok = (group["status"] == "ok") & (group["excluded"] == "")
        rows.append(
            {
                **{Column(name, kind="key"): word for name, word in words.items()},
                Column("first run"): f"{started.min():%m-%d %H:%M:%S}" if len(started) else None,
                Column("blocks"): f"{group['block'].min()} to {group['block'].max()}",
                Column("runs"): len(group),
                Column("ok"): int(ok.sum()),
                Column("boot ids", kind="prose"): ids or None,
            }
        )
    notes = ["Times are UTC. Boots are numbered in the order in which they ran."]
    notes += [
        f"{kernel or 'The kernel'} is {' and '.join(names)}."
        for kernel, names in releases.items()
        if names
    ]
    if len(result.hosts) > len(hosts):
        notes.append(f"{count(len(result.hosts) - len(hosts), 'host')} more: see facts.json.")
    return tabled("What was booted", rows, notes)


@dataclass(frozen=True)
class _Row:
    """A cell's means by boot, and what its runs say of boots, and of builds."""

    cell: CellResult
    means: dict[int, float]
    split: Split | None
    nested: Split | None


def _rows(source: Source, metric: str) -> Iterator[_Row]:
    """The cells that have the metric."""
    runs = source.result.ok
    places = rows_by_cell(runs)
    values, numbers = runs[metric].to_numpy(dtype=float), runs["boot"].to_numpy()
    builds, confidence = builds_of(runs), source.result.repeat.confidence
    for cell in source.cells:
        mine = places.get((cell.cell, cell.pair), np.array([], dtype=np.int64))
        mine = mine[~np.isnan(values[mine])]
        if len(mine):
            each = {
                int(boot): float(values[mine[numbers[mine] == boot]].mean())
                for boot in np.unique(numbers[mine])
            }
            yield _Row(
                cell,
                each,
                split(values[mine], numbers[mine], confidence),
                split(values[mine], numbers[mine], confidence, builds),
            )


def _tables(source: Source, metric: str, rows: Sequence[_Row]) -> list[Table]:
    """The means by boot, a table a kernel."""
    tables: list[Table] = []
    for kernel in dict.fromkeys(row.cell.factors.get(KERNEL, "") for row in rows):
        mine = [row for row in rows if row.cell.factors.get(KERNEL, "") == kernel]
        title = f"{source.result.describe(metric).title} by boot" + (
            f", kernel {kernel}" if kernel else ""
        )
        tables.append(_table(source, source.result.describe(metric).unit, title, mine))
    if tables:
        note = (
            "between, within: standard deviations of boots, and of runs within a boot, in % of the"
            " mean; share: what is between boots of the variance of a run, with its interval."
        )
        if any(row.nested for row in rows):
            note += (
                " builds: that of builds, where between is that of boots within a build (left out"
                " where each build has one boot: builds then holds both)."
            )
        tables[-1] = replace(tables[-1], notes=(note,))
    return tables


def _table(source: Source, unit: str, title: str, rows: Sequence[_Row]) -> Table:
    numbers = sorted({boot for row in rows for boot in row.means})
    nested = any(row.nested for row in rows)
    told: list[dict[Column, Value]] = []
    for row in rows:
        words = {
            column: word for column, word in source.keyed(row.cell).items() if column.name != KERNEL
        }
        means = {f"boot {boot}": row.means.get(boot) for boot in numbers}
        if len(numbers) > BESIDE:
            every = row.means.values()
            means = {"least": min(every), "greatest": max(every)}
        builds, between, within = _parts(row)
        told.append(
            {
                **(words or {Column("cell", kind="key"): "all"}),
                **{Column(name, unit): value for name, value in means.items()},
                **({Column("builds", "%"): builds} if nested else {}),
                Column("between", "%"): between,
                Column("within", "%"): within,
                Column("share", "%"): _share(row.split),
            }
        )
    return tabled(title, told)


def _parts(row: _Row) -> tuple[Value, Value, Value]:
    """Deviations of builds, boots and runs in percent."""
    whole = row.nested or row.split
    if whole is None or not whole.mean:
        return None, None, None
    builds = row.nested.apart if row.nested else math.nan
    told = (
        None if math.isnan(sd) else f"{100 * sd / abs(whole.mean):.2f}"
        for sd in (builds, whole.between, whole.within)
    )
    of_builds, of_boots, within = told
    return of_builds, of_boots, within


def _share(split: Split | None) -> Value:
    """What is between boots of the variance, with its interval."""
    if split is None or not split.mean or not split.between + split.within:
        return None
    return f"{100 * split.share:.0f} ({100 * split.low:.0f} to {100 * split.high:.0f})"


def _worth(title: str, splits: Sequence[Split], confidence: float) -> Iterator[str]:
    """What more boots, or more runs in each, would buy."""
    whole = pooled(splits)
    if whole is None:
        return
    k, r = round(whole.boots), whole.runs
    now, with_boots, with_runs = (
        whole.half_width(n, each, confidence) for n, each in ((k, r), (2 * k, r), (k, 2 * r))
    )
    runs = f"{r:.3g} {'run' if r == 1 else 'runs'}"
    yield (
        f"{title}: boots differ by {_percent(whole.between)} of the mean, runs"
        f" within a boot by {_percent(whole.within)} (standard deviations, over all cells). An"
        f" interval over {k} boots of {runs} is then ±{_percent(now)}; {2 * k} boots would make it"
        f" ±{_percent(with_boots)}, {2 * r:.3g} runs a boot ±{_percent(with_runs)}:"
        f" {_advice(now, with_boots, with_runs)}."
    )


def _worth_of_builds(title: str, whole: Split, confidence: float) -> Iterator[str]:
    """What more builds, more boots of each, or more runs in each would buy."""
    k, b, r = whole.builds, whole.boots, whole.runs
    sizes = {
        f"{2 * k} builds": (b, r, confidence, 2 * k),
        f"{2 * b:.3g} boots a build": (2 * b, r, confidence, k),
        f"{2 * r:.3g} runs a boot": (b, 2 * r, confidence, k),
    }
    own = (
        f"builds, with the one boot of each, differ by {_percent(whole.apart)} of the mean"
        if math.isnan(whole.between)
        else f"builds differ by {_percent(whole.apart)} of the mean, boots of one build by"
        f" {_percent(whole.between)}"
    )
    more = [f"{what} ±{_percent(whole.half_width(*n))}" for what, n in sizes.items()]
    yield (
        f"{title}: {own}, runs within a boot by {_percent(whole.within)} (standard deviations, over"
        f" all cells). An interval over {k} builds of {b:.3g} boots of {r:.3g} runs is then"
        f" ±{_percent(whole.half_width(b, r, confidence, k))}; more of them: {', '.join(more)}."
    )


def _percent(fraction: float) -> str:
    """Two digits: 0.00811 -> `0.81%`, 0.0145 -> `1.5%`."""
    return f"{100 * fraction:.2f}%" if fraction < 0.00995 else f"{100 * fraction:.1f}%"


def _advice(now: float, with_boots: float, with_runs: float) -> str:
    if with_runs > 0.9 * now:
        return "more boots are what narrows it; more runs a boot buy next to nothing"
    return (
        "more boots narrow it more than more runs a boot"
        if with_boots < 0.9 * with_runs
        else "runs are as good as boots"
    )
