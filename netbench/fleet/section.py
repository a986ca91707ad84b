"""Which of these hosts is slow: a campaign with many pairs by its hosts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from netbench.base.units import listed
from netbench.facts.comparison import shortened
from netbench.fleet.causes import Cause
from netbench.fleet.differing_facts import Known
from netbench.fleet.fit import LINK, PAIR, RECEIVER, SENDER, Shared, Shift
from netbench.fleet.host_effects import Fleet
from netbench.fleet.host_words import cause_sentence, place, sentences
from netbench.fleet.host_words import of_fleets as of_fleets
from netbench.report.blocks import Block, Column, Plot, Prose, Section, Table, Value, keys, tabled
from netbench.report.numbers import count, share
from netbench.report.phrases import title
from netbench.report.source import Source
from netbench.stats.words import percent, signed

if TYPE_CHECKING:
    from netbench.report.plots import Axes

MOST_ROWS = 12
"""Of a table where cells are not asked for: those that lie furthest towards worse."""
MOST_CELLS = 4
"""Cells that have tables and drawings of their own; of the others the outliers are named."""
MOST_VALUES = 6
HOSTS_NAMED = 4
AS = {SENDER: "sends", RECEIVER: "receives", PAIR: "moves", LINK: "link"}
HEIGHT = 3.2  # inches
NAMED = 2  # of a kind, beside what is outlying
MARKS = {SENDER: ">", RECEIVER: "<", PAIR: "o"}


def fleet(source: Source) -> Section | None:
    """Sentences, a drawing and tables for each metric and cell; None where there are few pairs."""
    blocks: list[Block] = []
    for metric, fleets in source.fleets.items():
        blocks.append(Prose(tuple(sentences(source.result, fleets)), bullets=True))
        for number, each in enumerate(fleets[:MOST_CELLS]):
            what = f"{place(each, len(fleets) > 1)}{title(metric, source.result)}"
            blocks.append(Plot("fleet", metric, f"{what}: the spread of the fleet", "", number))
            blocks += _tables(each, what, source.with_cells)
    if not blocks:
        return None
    blocks += _facts(source.fleet_facts)
    (first, *_), *_ = source.fleets.values()
    return Section("fleet", "Which host is slow", (*blocks, Prose((_how(first),))))


def _tables(each: Fleet, what: str, every: bool) -> Iterator[Block]:
    for kind in (SENDER, RECEIVER, PAIR):
        if shifts := each.lowest(kind):
            shown = shifts if every else shifts[:MOST_ROWS]
            outlying = [i for i, s in enumerate(shown) if s.outlying]
            notes = ["† outlying."] if outlying else []
            if len(shown) < len(shifts):
                notes.append(f"The {len(shown)} worst of {len(shifts)}; all with --cells.")
            name = Column(kind, kind="key")
            rows = [{name: s.name, Column("pairs"): s.pairs, **_shift(s)} for s in shown]
            yield tabled(f"{what}: {kind}s", rows, *notes, marked=outlying)
    if shared := each.fit.shared:
        name, role = keys("name", "as")
        rows = [
            {name: s.name, role: AS[s.kind], Column("hosts"): s.hosts, **_shift(s)} for s in shared
        ]
        note = "Each against the rest of the fleet; intervals hold all of them at once."
        yield tabled(f"{what}: links and groups", rows, note)
    if each.unmeasured:
        pairs = list(each.unmeasured.items())
        more = 0 if every else len(pairs) - MOST_ROWS
        yield Table(
            f"{what}: pairs without a value",
            (*keys("pair"), Column("why", kind="prose")),
            tuple(pairs if every else pairs[:MOST_ROWS]),
            (f"{more} more; all with --cells.",) if more > 0 else (),
        )


def _shift(s: Shift | Shared) -> dict[Any, Value]:
    interval = None if math.isnan(s.low) else f"{signed(s.low)} to {signed(s.high)}"
    return {Column("shift", "%"): signed(s.ratio), Column("interval"): interval}


def _facts(known: Known) -> Iterator[Table]:
    """What differs within the fleet: a row a value, the most common first."""
    rows: list[tuple[Value, ...]] = []
    for fact, by_host in known.items():
        values = Counter(by_host.values()).most_common()
        for value, number in values[:MOST_VALUES]:
            hosts = [host for host, one in by_host.items() if one == value]
            few = f": {listed(hosts, HOSTS_NAMED, ', ')}" if value != values[0][0] else ""
            other = values[value == values[0][0]][0]
            rows.append((fact, f"{count(number, 'host')}{few}", shortened(value, other)[0]))
        if len(values) > MOST_VALUES:
            rows.append((fact, "", f"{len(values) - MOST_VALUES} values more"))
    if rows:
        columns = (*keys("fact", "hosts"), Column("value", kind="prose"))
        yield Table("Facts that differ within the fleet", columns, tuple(rows))


def _how(each: Fleet) -> str:
    """How hosts were told apart, and what could not be."""
    least, most = int(each.observed.n.min()), int(each.observed.n.max())
    runs = f"{least} to {most} runs" if least < most else count(most, "run")
    text = (
        f"Of logarithms, over {count(len(each.observed.pairs), 'pair')} with {runs} each; intervals"
        f" ({share(each.confidence)}) are each one's own. Outlying is what lies far beyond the tail"
        " that the others show; the rest is their spread, and the lowest of it no fault."
    )
    if not {SENDER, RECEIVER} & each.fit.limits.keys():
        text += (
            " Few pairs of a host in a direction do not tell it from its partners, so pairs are"
            " shown. More partners (pairs: {bisection: all, rounds: 8}) tell them apart."
        )
    return text


def spread(fleet: Fleet) -> Axes:
    """A mark each for senders, receivers and pairs, the worst first, in percent of the fleet's
    median; what is outlying is coloured and named, and a line is drawn where it would be.
    """
    from netbench.report.plots import AXIS, DOT, INK, WORSE, new_axes  # matplotlib

    axes = new_axes(HEIGHT)
    start = 0
    for kind, mark in MARKS.items():
        shifts = fleet.lowest(kind)
        if not shifts:
            continue
        at = start + np.arange(len(shifts))
        off = np.array([percent(s.ratio) for s in shifts])
        colours = [WORSE if s.outlying else DOT for s in shifts]
        axes.scatter(at, off, s=14, c=colours, marker=mark, label=f"{kind}s")
        for i, shift in enumerate(shifts):
            if i >= NAMED and not shift.outlying:
                continue
            weight, colour = ("bold", WORSE) if shift.outlying else ("normal", INK)
            axes.annotate(
                shift.name,
                (at[i], off[i]),
                xytext=(5, -3),
                textcoords="offset points",
                fontsize=7,
                fontweight=weight,
                color=colour,
            )
        if limit := fleet.fit.limits.get(kind):
            axes.hlines(percent(limit), at[0], at[-1], colors=WORSE, linestyles=":")
        start += len(shifts) + max(len(shifts) // 20, 2)
    axes.axhline(0, color=AXIS, linewidth=0.8, zorder=0)
    axes.set_xticks([])
    axes.set_xlabel("senders ▸, receivers ◂, pairs ●: each in order; dotted: outlying beyond")
    axes.set_ylabel("against the fleet's median [%]")
    return axes


def to_json(source: Source) -> dict[str, Any]:
    """`{analyses, facts}`: an analysis for each metric and cell.

    In an analysis `outlying` has what is named, each with its sentence; `shifts` the hosts by kind
    (sender, receiver) and the pairs, `shared` links and groups, as ratios with intervals; `limits`,
    by kind, the ratio beyond which one is outlying. `facts`: those that differ, by host.
    """
    every = [each for fleets in source.fleets.values() for each in fleets]
    return {"analyses": [_analysis(source, each) for each in every], "facts": source.fleet_facts}


def _analysis(source: Source, each: Fleet) -> dict[str, Any]:
    return {
        "metric": each.metric,
        "cell": each.cell,
        "confidence": each.confidence,
        "median": each.middle,
        "limits": each.fit.limits,
        "outlying": [
            {"sentence": cause_sentence(source.result, each, cause), **_plain(cause)}
            for cause in each.causes
        ],
        "shifts": [_plain(shift) for shift in each.fit.shifts],
        "shared": [_plain(shared) for shared in each.fit.shared],
        "unmeasured": each.unmeasured,
    }


def _plain(row: Cause | Shift | Shared) -> dict[str, Any]:
    """A row without NaN, which JSON has not."""

    def without(items: list[tuple[str, Any]]) -> dict[str, Any]:
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in items}

    return asdict(row, dict_factory=without)
