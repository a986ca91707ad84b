"""Which of these hosts is slow: a campaign with many pairs by its hosts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from netbench.base.units import listed
from netbench.facts.comparison import shortened
from netbench.fleet.differing_facts import Known
from netbench.fleet.effects import Fleet
from netbench.fleet.fit import LINK, PAIR, RECEIVER, SENDER
from netbench.fleet.words import place, sentences
from netbench.report.blocks import Block, Column, Plot, Prose, Section, Table, Value
from netbench.report.numbers import count, share
from netbench.report.source import Source
from netbench.report.titles import title
from netbench.stats.words import signed

MOST_ROWS = 12
"""Of a table where cells are not asked for: those that lie furthest towards worse."""
MOST_CELLS = 4
"""Cells that have tables and drawings of their own; of the others the outliers are named."""
MOST_VALUES = 6
HOSTS_NAMED = 4
AS = {SENDER: "sends", RECEIVER: "receives", PAIR: "moves", LINK: "link"}
OF_SHIFT = (Column("shift", "%"), Column("interval"))


def fleet(source: Source) -> Section | None:
    """Sentences, a drawing and tables for each metric and cell; None where there are few pairs."""
    blocks: list[Block] = []
    for metric, found in source.fleets.items():
        blocks.append(Prose(tuple(sentences(source.result, found)), bullets=True))
        for number, each in enumerate(found[:MOST_CELLS]):
            what = f"{place(each, len(found) > 1)}{title(metric, source.result)}"
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
            rows = shifts if every else shifts[:MOST_ROWS]
            notes = ["† outlying."] if any(s.outlying for s in rows) else []
            if len(rows) < len(shifts):
                notes.append(f"The {len(rows)} worst of {len(shifts)}; all with --cells.")
            yield Table(
                f"{what}: {kind}s",
                (Column(kind, kind="key"), Column("pairs"), *OF_SHIFT),
                tuple((s.name, s.pairs, *_shift(s.ratio, s.low, s.high)) for s in rows),
                tuple(notes),
                frozenset(i for i, s in enumerate(rows) if s.outlying),
            )
    if shared := each.fit.shared:
        yield Table(
            f"{what}: links and groups",
            (Column("name", kind="key"), Column("as", kind="key"), Column("hosts"), *OF_SHIFT),
            tuple((s.name, AS[s.kind], s.hosts, *_shift(s.ratio, s.low, s.high)) for s in shared),
            ("Each against the rest of the fleet; intervals hold all of them at once.",),
        )
    if each.unmeasured:
        rows_of = list(each.unmeasured.items())
        more = 0 if every else len(rows_of) - MOST_ROWS
        yield Table(
            f"{what}: pairs without a value",
            (Column("pair", kind="key"), Column("why", kind="prose")),
            tuple(rows_of if every else rows_of[:MOST_ROWS]),
            (f"{more} more; all with --cells.",) if more > 0 else (),
        )


def _shift(ratio: float, low: float, high: float) -> tuple[Value, Value]:
    return signed(ratio), None if math.isnan(low) else f"{signed(low)} to {signed(high)}"


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
        columns = (
            Column("fact", kind="key"),
            Column("hosts", kind="key"),
            Column("value", "", "prose"),
        )
        yield Table("Facts that differ within the fleet", columns, tuple(rows))


def _how(each: Fleet) -> str:
    """How hosts were told apart, and what could not be."""
    least, most = int(each.observed.n.min()), int(each.observed.n.max())
    runs = f"{least} to {most} runs" if least < most else count(most, "run")
    told = (
        f"Of logarithms, over {count(len(each.observed.pairs), 'pair')} with {runs} each; intervals"
        f" ({share(each.confidence)}) are each one's own. Outlying is what lies far beyond the tail"
        " that the others show; the rest is their spread, and the lowest of it no fault."
    )
    if not {SENDER, RECEIVER} & each.fit.limits.keys():
        told += (
            " Few pairs of a host in a direction do not tell it from its partners, so pairs are"
            " shown. More partners (pairs: {bisection: all, rounds: 8}) tell them apart."
        )
    return told
