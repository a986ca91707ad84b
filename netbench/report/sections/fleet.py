"""Which of these hosts is slow: a campaign with many pairs by its hosts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from netbench.analysis.fleet import Fleet
from netbench.analysis.fleet_facts import Differing
from netbench.analysis.fleet_outliers import LINK, PAIR, RECEIVER, SENDER, Shift
from netbench.analysis.words import signed
from netbench.facts.comparison import shortened
from netbench.report.blocks import Block, Column, Plot, Prose, Section, Table, Value
from netbench.report.fleet_words import place, sentences
from netbench.report.numbers import count, share
from netbench.report.source import Source
from netbench.report.titles import title
from netbench.units import listed

MOST_ROWS = 24
"""Hosts in a table, those that lie furthest from the median, where cells are not asked for."""
MOST_CELLS = 4
"""Cells that have tables and drawings of their own; of the others the outliers are named."""
MOST_VALUES = 6
HOSTS_NAMED = 4
LONG = 60


def fleet(source: Source) -> Section | None:
    """Sentences, a heat map and tables for each metric and cell; None where there are few pairs."""
    blocks: list[Block] = []
    for metric, found in source.fleets.items():
        several = len(found) > 1
        told = [line for each in found for line in sentences(source.result, each, several)]
        blocks.append(Prose(tuple(told), bullets=True))
        for number, each in enumerate(found[:MOST_CELLS]):
            what = f"{place(each, several)}{title(metric, source.result)}"
            blocks.append(
                Plot("fleet", metric, f"{what} of each pair against the fleet's median", "", number)
            )
            blocks += _tables(source, each, what)
    if not blocks:
        return None
    every = [each for found in source.fleets.values() for each in found]
    blocks += _facts(source.fleet_facts)
    blocks.append(Prose(tuple(_how(source, every))))
    return Section("fleet", "Which host is slow", tuple(blocks))


def _tables(source: Source, each: Fleet, what: str) -> Iterator[Block]:
    yield _hosts(each, what, source.with_cells)
    if links := each.of(LINK):
        yield Table(
            f"{what}: links",
            (Column("link", kind="key"), Column("pairs"), Column("shift", "%"), Column("interval")),
            tuple((s.name, s.pairs, *_shift(s)) for s in links.values()),
            ("Pairs that cross a link against those that do not.",),
        )
    if each.groups:
        yield Table(
            f"{what}: groups",
            (
                Column("group", kind="key"),
                Column("as", kind="key"),
                Column("hosts"),
                Column("pairs"),
                Column("shift", "%"),
                Column("interval"),
            ),
            tuple(
                (g.group, g.kind, g.hosts, g.pairs, signed(g.ratio), _interval(g.low, g.high))
                for g in each.groups
            ),
            (
                "Each group against the rest of the fleet, without what is said of outlying hosts,"
                " pairs and links; intervals hold all of them at once.",
            ),
        )
    if each.unmeasured:
        rows = each.unmeasured if source.with_cells else each.unmeasured[:MOST_ROWS]
        more = len(each.unmeasured) - len(rows)
        yield Table(
            f"{what}: pairs without a value",
            (Column("pair", kind="key"), Column("why", kind="prose")),
            tuple((u.pair, u.why) for u in rows),
            (f"{more} more; all with --cells.",) if more else (),
        )


def _hosts(each: Fleet, what: str, every: bool) -> Table:
    """Each host as sender and as receiver, those furthest from the median first."""
    o = each.observed
    used = sorted({*o.sender.tolist(), *o.receiver.tolist()})
    named = {host: at for at, host in enumerate(c.name for c in each.causes)}
    rows = []
    for host in (o.hosts[i] for i in used):
        shifts = [each.shift_of(host, kind) for kind in (SENDER, RECEIVER)]
        rows.append((host, shifts))

    def far(row: tuple[str, Sequence[Shift | None]]) -> tuple[int, float]:
        host, shifts = row
        own = [s for s in shifts if s and _values(each, host, s)[0] is not None]
        most = max((abs(math.log(s.ratio)) for s in own), default=0.0)
        return (named.get(host, len(named)), -most)

    rows.sort(key=far)
    shown = rows if every else rows[:MOST_ROWS]
    columns = (
        Column("host", kind="key"),
        Column("sends", "%"),
        Column("interval"),
        Column("drawn in", "%"),
        Column("receives", "%"),
        Column("interval"),
        Column("drawn in", "%"),
    )
    table = tuple(
        (host, *(value for s in shifts for value in _values(each, host, s)))
        for host, shifts in shown
    )
    notes = [
        f"Against the fleet's median; intervals ({share(each.confidence)}) hold all at once. Drawn"
        " in: towards the median, by what runs and pairs leave unknown of it (shrinkage).",
    ]
    if any(host in named for host, _ in shown):
        notes.append(
            "† outlying; `as n1`: the pair is slow, or fast, by n1, so the host is unknown."
        )
    if len(shown) < len(rows):
        notes.append(f"The {len(shown)} furthest of {len(rows)} hosts; all with --cells.")
    marked = frozenset(i for i, (host, _) in enumerate(shown) if host in named)
    return Table(f"{what}: hosts", columns, table, tuple(notes), marked)


def _shift(shift: Shift) -> tuple[Value, Value]:
    return signed(shift.ratio), _interval(shift.low, shift.high)


def _values(each: Fleet, host: str, shift: Shift | None) -> tuple[Value, Value, Value]:
    """A host's shift in one direction; of a pair that another host explains, that host's name."""
    if shift is None:
        return None, None, None
    other = each.explained(shift.name) if shift.kind == PAIR else ""
    if other not in ("", host):
        return None, f"as {other}", None
    return (*_shift(shift), None if math.isnan(shift.shrunk) else signed(shift.shrunk))


def _interval(low: float, high: float) -> Value:
    return None if math.isnan(low) or math.isnan(high) else f"{signed(low)} to {signed(high)}"


def _facts(found: Sequence[Differing]) -> Iterator[Table]:
    """What differs within the fleet: a row a value."""
    rows: list[tuple[Value, ...]] = []
    for each in found:
        usual = each.values[0][0]
        for i, (value, hosts) in enumerate(each.values[:MOST_VALUES]):
            words = shortened(value, usual)[0] if i else _cut(value)
            who = count(len(hosts), "host") + (
                "" if i == 0 else f": {listed(hosts, HOSTS_NAMED, ', ')}"
            )
            rows.append((each.fact, who, words))
        if len(each.values) > MOST_VALUES:
            rows.append((each.fact, "", f"{len(each.values) - MOST_VALUES} values more"))
        if each.unread:
            rows.append((each.fact, listed(each.unread, HOSTS_NAMED, ", "), "not read"))
    if rows:
        yield Table(
            "Facts that differ within the fleet",
            (
                Column("fact", kind="key"),
                Column("hosts", kind="key"),
                Column("value", kind="prose"),
            ),
            tuple(rows),
        )


def _cut(value: str) -> str:
    return value if len(value) <= LONG else f"{value[:LONG]} ..."


def _how(source: Source, every: Sequence[Fleet]) -> Iterator[str]:
    """How hosts were told apart, and what could not be."""
    first = every[0]
    o = first.observed
    apart = [
        kind
        for kind, known in (
            ("senders", first.analysis.senders_apart),
            ("receivers", first.analysis.receivers_apart),
        )
        if known
    ]
    least, most = int(o.n.min()), int(o.n.max())
    runs = f"{least} to {most} runs" if least < most else count(most, "run")
    yield (
        f"Of logarithms, over {count(len(o.pairs), 'pair')} with {runs} each. Outlying is what"
        " lies further from the median than such things lie apart by themselves, tested for all at"
        f" once (Holm, {share(first.confidence)})."
    )
    if len(apart) < 2:
        lone = {"senders", "receivers"} - set(apart)
        yield (
            f"Effects of {' and '.join(sorted(lone, reverse=True))} cannot be told from those of"
            " pairs, since hosts have one pair in a direction: what stands in the table is the"
            " pair's. More partners for each host (pairs: bisection) tell them apart."
        )
    for each in every:
        parts = [f"pairs {_percent(each.spread.pair)}"]
        parts += [f"{kind} {_percent(each.spread.of(kind == 'senders'))}" for kind in apart]
        where = place(each, len(every) > 1)
        noise = f"; a run by {_percent(_noise(each))}" if each.observed.freedom.any() else ""
        yield (
            f"{where}{title(each.metric, source.result)}: without outliers these lie apart by"
            f" (standard deviation) {', '.join(parts)}{noise}."
        )
        if not each.analysis.settled:
            yield f"{where}Which are outlying did not settle: those named are of the last pass."
    lone_runs = sum(int((each.observed.n < 2).sum()) for each in every)
    if lone_runs:
        yield (
            f"{count(lone_runs, 'pair')} with one run: what is outlying there may be the run, so no"
            " pair is named by it."
        )


def _noise(each: Fleet) -> float:
    """The variance of a run."""
    return float(np.median(each.observed.error * each.observed.n))


def _percent(variance: float) -> str:
    return f"{100 * math.sqrt(variance):.2g}%"
