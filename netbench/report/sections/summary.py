"""Summary: the answers first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from netbench.base.units import format_duration, listed
from netbench.read import offered
from netbench.read.cells import CellResult
from netbench.read.pivot import copies_here, pivots
from netbench.read.shown_levels import NO_TOOL, shown
from netbench.report.blocks import Block, Finding, Findings, Prose, Section, Span
from netbench.report.label import explained, label_of
from netbench.report.numbers import count, number, words
from netbench.report.phrases import control_lines, fixed, in_context, in_short_of, title, where
from netbench.report.sections.environment import OFFLOADS
from netbench.report.sections.profile import change_sentence
from netbench.report.sections.requests import knees
from netbench.report.source import Source
from netbench.stats.comparison import FEW, NO_VERDICT, VERDICTS, Comparison
from netbench.stats.words import amount, percent

SENTENCES = 8  # sentences that are all said; more are told as ranges
NAMED = 4
STATUS_ORDER = ("converged", "max", "unstable", "failed", "refused", "unsupported", "interrupted")


def summary(source: Source) -> Section:
    """The question and its answer: comparisons, or extremes; then the campaign's state."""
    result = source.result
    blocks: list[Block] = [Prose((line,)) for line in explained(label_of(result))]
    asked = tuple(filter(None, (result.about, source.offered)))
    blocks += [Prose(asked)] if asked else []
    if source.fleets:
        answers = tuple(map(Finding, source.add_on.of_fleets(source)))
    else:
        answers = tuple(_compared(source) if source.comparisons else _overview(source))
    profiled = (f"By profile, {change_sentence(source, d)}" for d in source.profile_differences)
    for more in (knees(source), _others(source), profiled):
        findings = tuple(map(Finding, more))
        answers += findings if len(findings) <= SENTENCES else ()
    if answers:
        blocks.append(Findings(tuple(each.sentence for each in answers), True, answers))
    else:
        blocks.append(Prose(("No run has given a result.",)))
    blocks.append(Prose(tuple(filter(None, (_state(source), fixed(result))))))
    return Section("summary", f"{result.name}: summary", tuple(blocks))


def _compared(source: Source) -> Iterator[Finding]:
    each = sum(len(family) for family in source.answers.values()) <= SENTENCES
    for metric, family in source.answers.items():
        yield from _told(source, family, each)
        what = title(metric, source.result)
        yield from map(Finding, control_lines(what, source.controls(family)))
    yield from map(Finding, gone_along(source, source.answers))


def gone_along(source: Source, families: Mapping[str, Sequence[Comparison]]) -> Iterator[str]:
    """Of each level that is compared what is compared with it: a sentence."""
    every = [c for family in families.values() for c in family]
    for level in dict.fromkeys(c.level for c in every):
        of_level = [c for c in every if c.level == level]
        if along := _along(source, of_level):
            yield f"Not {' against '.join(of_level[0].names)} alone: {along}."


def _others(source: Source) -> Iterator[str]:
    """The other factors: a sentence a level, in the metrics of `repeat`, or the first."""
    closing = [name for name in source.answers if name in source.result.repeat.metrics]
    for families in source.other_answers.values():
        shown = [families[m] for m in closing or [*families][:1] if m in families]
        for level in dict.fromkeys(c.level for family in shown for c in family):
            of_level = [[c for c in family if c.level == level] for family in shown]
            sentence_text = _level_told(source, [family for family in of_level if family])
            along = _along(source, [c for family in of_level for c in family])
            yield f"{sentence_text.removesuffix('.')}; {along}." if along else sentence_text


def _level_told(source: Source, families: Sequence[Sequence[Comparison]]) -> str:
    """One level in several metrics: the least and the greatest change, and the verdicts."""
    texts = [
        f"{title(family[0].metric, source.result)} {_ends(family, source.several)}"
        f" ({_verdicts(family)})"
        for family in families
    ]
    return f"{' against '.join(families[0][0].names)}: {'; '.join(texts)}."


def _ends(family: Sequence[Comparison], several: bool) -> str:
    """The least and the greatest change of several, which are no interval, and where they are."""
    ranked = sorted((c for c in family if c.ratio > 0), key=lambda c: c.ratio)
    if not ranked:
        return "without a ratio"
    amounts = [amount(c.ratio) for c in (ranked[0], ranked[-1])]
    if amounts[0] == amounts[1]:
        return amounts[0]
    apart = [name for name in ranked[0].context if len({c.context.get(name) for c in family}) > 1]
    where = (
        [c.pair] * several + [f"{name}={shown(c.context.get(name, ''))}" for name in apart]
        for c in (ranked[0], ranked[-1])
    )
    return ", ".join(f"{what} with {' '.join(at)}" for what, at in zip(amounts, where, strict=True))


def _along(source: Source, family: Sequence[Comparison]) -> str:
    """What goes with a level or with its baseline alone in cells that are compared: keys that
    `include` gave, and what moved unasked: `with sg=off came tso off, gso off, and 8 more`; "" for
    nothing.
    """
    went: dict[str, dict[str, None]] = {name: {} for name in family[0].names}
    for c in family:
        side, base = (_beside(source, c, level) for level in (c.level, c.baseline))
        for name, these, others in zip(c.names, (side, base), (base, side), strict=True):
            went[name] |= dict.fromkeys(what for what in these if what not in others)
    texts = (f"with {name} came {listed([*w], NAMED, ', ')}" for name, w in went.items() if w)
    return ", ".join(texts)


def _beside(source: Source, c: Comparison, level: str) -> list[str]:
    """What a compared cell has besides the swept levels, offloads first."""
    cell = source.cell_of(c, level)
    if cell is None:
        return []
    swept = source.result.swept
    given = [f"{k}={shown(v)}" for k, v in cell.factors.items() if k not in swept]
    moved = [what for *place, what in source.result.moved if place == [*cell.place]]
    for what in sorted(moved, key=lambda what: _feature(what) == ""):
        name, _, states = what.partition(" from ")
        given.append(f"{_feature(what) or name.partition('.')[2]} {states.rpartition(' to ')[2]}")
    return given


def _feature(moved: str) -> str:
    """The offload that a change of a feature is of; "" for what has no setting."""
    return OFFLOADS.get(moved.partition(" from ")[0].partition(".")[2], "")


def _verdicts(family: Sequence[Comparison]) -> str:
    """`better`, or `better in 2, inconclusive in 1 of 3 contexts`."""
    tally = Counter(c.verdict for c in family)
    doubtful = sum(bool(c.flags) for c in family)
    if len(family) == 1:
        return f"{family[0].verdict}{', in doubt' if doubtful else ''}"
    each = ", ".join(f"{v} in {tally[v]}" for v in (*VERDICTS, NO_VERDICT) if tally[v])
    return f"{each} of {len(family)} contexts{f', {doubtful} in doubt' if doubtful else ''}"


def _told(source: Source, family: Sequence[Comparison], each: bool) -> Iterator[Finding]:
    """The comparisons of a metric: each in a sentence, or each level in one."""
    levels = dict.fromkeys(c.level for c in family)
    of_level = ([c for c in family if c.level == level] for level in levels)
    for members in ([c] for c in family) if each else of_level:
        if len(members) > 1:
            told = _level_told(source, [members])
        else:
            told = in_context(members[0], source.several, source.result)
        yield _finding(source, told, members, family)


def _finding(
    source: Source, told: str, mine: Sequence[Comparison], family: Sequence[Comparison]
) -> Finding:
    """A sentence on comparisons of one metric with their intervals; of one its head."""
    levels = len({c.level for c in mine}) > 1
    spans = []
    for c in mine:
        words = [where(c, source.several), f"{c.factor}={shown(c.level)}" if levels else ""]
        low, high = percent(c.low), percent(c.high)
        spans.append(Span(" ".join(filter(None, words)), percent(c.ratio), low, high, c.verdict))
    cells = [source.cell_of(c, level) for c in mine for level in (c.level, c.baseline)]
    first, margin = mine[0], percent(1 + (mine[0].margin or 0.0))
    drawn = Finding(told, tuple(spans), "%", 0.0, margin, doubts=source.doubts(filter(None, cells)))
    if len(mine) > 1:
        return drawn
    of = f"{title(first.metric, source.result)}, {' against '.join(first.names)}"
    known = (cell.intervals.get(first.metric) for cell in cells[::-1] if cell)
    unit = source.result.describe(first.metric).unit
    told = f"{' to '.join(number(each.mean) for each in known if each)} {unit}, n {first.n}"
    place = ", ".join(filter(None, (where(first, source.several, source.apart), told.strip())))
    return drawn._replace(head=in_short_of(first, family), of=of, place=place)


def _overview(source: Source) -> Iterator[Finding]:
    """Without a question: the highest and the lowest cell of each metric, and how many can't be
    told from the highest. Throughput in each of several matrices, which have other bytes to move.
    """
    fixed = source.offered and not offered.free(source.result, source.cells)
    tables, curves = pivots(source.result, source.cells), source.load_curves
    for metric in source.metrics:
        if (metric == offered.METRIC and fixed) or source.repeats_cpu(metric):
            continue
        what = title(metric, source.result)
        if metric == offered.METRIC and 1 < len(tables) <= SENTENCES:
            for pivot in tables:
                written = pivot.where(source.several)
                written += [f"tool={NO_TOOL}"] * (pivot.context.get("tool") == NO_TOOL)
                where = ", ".join(written)
                named = [
                    (f"{pivot.down}={down},{pivot.across}={across}", cell)
                    for (down, across), cell in pivot.cells.items()
                ]
                yield from _extremes(source, f"{what}, {where}", metric, named)
        else:
            # of requests the rate is the question
            rates = {c.place: "" if curves else c.factors.get(offered.KEY) for c in source.cells}
            for rate in dict.fromkeys(rates.values()):
                at = f"{offered.KEY}={rate}"
                cells = [
                    (_name(source, cell).replace(f"{at},", ""), cell)
                    for cell in source.cells
                    if rates[cell.place] == rate
                ]
                place = f"{what}, {at}" if rate and len(cells) > 1 else what
                yield from _extremes(source, place, metric, cells)


def _extremes(
    source: Source, what: str, metric: str, cells: Sequence[tuple[str, CellResult]]
) -> Iterator[Finding]:
    """The highest and the lowest of these cells in a sentence; none without the metric."""
    everything = [(name, c) for name, c in cells if metric in c.intervals]
    copies = [one for one in everything if copies_here(source.result, one[1])]
    measured = [one for one in everything if one not in copies] or copies
    if not measured:
        return
    unit = source.result.describe(metric).unit
    ranked = sorted(measured, key=lambda one: one[1].intervals[metric].mean)
    (low, _), (high, _) = ends = ranked[0], ranked[-1]
    least, most = (cell.intervals[metric] for _, cell in ends)
    if len(ranked) == 1:
        line = f"{what}: {words(most)} {unit}."
        yield Finding(line, _spans(ranked, metric), unit, doubts=source.doubts([ranked[0][1]]))
        return
    near = [name for name, cell in ranked[-2::-1] if cell.intervals[metric].high >= most.low]
    apart = f", not told apart from {listed(near, NAMED)}" if near else ""
    rest = f"with {high}{apart}; least {words(least)} with {low}."
    if 0 < len(copies) < len(everything):
        rest += f" Not ranked: {count(len(copies), 'cell')} of tools that copy on one host."
    yield Finding(
        f"{what}: most {words(most)} {unit} {rest}",
        _spans(ends[::-1], metric),
        unit,
        head=(words(most), unit),
        place=f"most {what}, {rest}",
        doubts=source.doubts(cell for _, cell in ends),
    )


def _spans(named: Sequence[tuple[str, CellResult]], metric: str) -> tuple[Span, ...]:
    """The means of some cells, by their names."""
    every = ((name, cell.intervals[metric]) for name, cell in named)
    return tuple(Span(name, i.mean, i.low, i.high) for name, i in every)


def _name(source: Source, cell: CellResult) -> str:
    name = shown(cell.cell)
    return f"{name} {cell.pair}" if source.several else name


def _state(source: Source) -> str:
    runs = source.result.runs
    tally = Counter(c.status for c in source.cells)
    statuses = ", ".join(f"{tally[s]} {s}" for s in STATUS_ORDER if tally[s])
    text = f"{count(len(source.cells), 'cell')} ({statuses}), {count(len(runs), 'run')}"
    if controls := len(source.result.control_runs):
        text += f" and {controls} of the baseline again"
        text += f" ({count(len(source.result.controls), 'control')})"
    started = runs["started"].dropna()
    if len(started) == 0:
        return f"{text}."
    boots = source.result.kernels
    if len(boots) > 1 or source.result.in_boots:
        text += f" in {count(len(boots), 'boot')}"
        if kernels := set(boots.values()) - {""}:
            text += f" of {count(len(kernels), 'kernel')}"
    text += f", begun {started.min():%Y-%m-%d %H:%M} UTC"
    if len(runs) > 1:
        took = format_duration((started.max() - started.min()).total_seconds())
        text += f", {took} from the first run to the start of the last"
    few = "; few runs: for trying, no verdict" if source.result.repeat.max <= FEW else ""
    return f"{text}{few}."
