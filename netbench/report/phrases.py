"""Comparisons in words, for every form of a report: what a metric is called, where a comparison is,
its sentence, controls, gates, and the finding that a card draws.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence

from netbench.base.units import count, listed
from netbench.read import offered
from netbench.read.control import holds
from netbench.read.gates import Outcome
from netbench.read.metrics import describe
from netbench.read.result import Result
from netbench.read.shown_levels import shown, used
from netbench.report.numbers import share
from netbench.stats.comparison import FEW_RUNS, FLAGS, RESULT, Comparison
from netbench.stats.words import TIMES, bounds, change, in_short, signed

ALONE = "its process alone"
VOID = "nothing was compared"
NAMED = 8  # comparisons of a gate; the rest are counted


def answering(metrics: Collection[str], asked: Collection[str], rate: str) -> list[str]:
    """The metrics whose comparisons answer the question. CPU busy says little where throughput
    differs: it is left to its table, unless it was asked for or a `rate` fixes all throughput; then
    demand would say the same again.
    """
    idle = "_demand" if rate and offered.METRIC not in metrics else "_cpu"
    return [m for m in metrics if m in asked or not m.partition(".")[0].endswith(idle)]


def is_of_process(metric: str, *results: Result) -> bool:
    """Whether a metric of one side counts its process alone (rusage), without what the kernel does
    for it in softirq: the sides share a kernel, and no meter of the kernel tells them apart.
    """
    together = all(result.shared and all(result.shared.values()) for result in results)
    one_side = metric.startswith(("sender_", "receiver_"))
    return together and one_side and metric.endswith(("_cpu", "_demand"))


def title(metric: str, *results: Result) -> str:
    """`sender CPU`, or `sender CPU (its process alone)`."""
    name = (results[0].describe(metric) if results else describe(metric)).title
    return f"{name} ({ALONE})" if is_of_process(metric, *results) else name


def releases(result: Result, kernels: Iterable[str]) -> str:
    """What each of the kernels that were booted calls itself: `old: Linux 6.1.9, new: Linux
    6.12.4`; "" where netbench booted none.
    """
    named: dict[str, dict[str, None]] = {kernel: {} for kernel in kernels}
    for entry in (entry for entries in result.hosts.values() for entry in entries):
        if entry.on in named and entry.facts.get("kernel"):
            named[entry.on][f"Linux {entry.facts['kernel']}"] = None
    return ", ".join(f"{level}: {' and '.join(names)}" for level, names in named.items() if names)


def fixed(result: Result) -> str:
    """What campaign.yaml writes for all cells."""
    keys = []
    for name, word in (result.asked or {}).items():
        part, _, key = name.partition(".")
        if part in ("transfer", "settings") and key not in result.factors:
            keys.append(f"{key} {shown(word).replace(chr(34), '')}")
    return f"In all cells: {', '.join(keys)}." if keys else ""


def where(c: Comparison, several: bool, named: Collection[str] | None = None) -> str:
    """Which of a family a comparison is: `send=splice pin=apart`; several: pairs of hosts, of which
    it says its own; of the factors those that are `named`, None: all.
    """
    levels = used(c.context).items()
    words = [f"{n}={shown(v)}" for n, v in levels if v and (named is None or n in named)]
    return " ".join([c.pair, *words] if several else words)


def sentence(c: Comparison, *results: Result) -> str:
    """A comparison in words with its verdict, and what the metric is where its name says less."""
    notes = [c.verdict] if c.verdict in ("better", "worse") else []
    notes += [f"CPU of {ALONE}"] if is_of_process(c.metric, *results) else []
    return f"{c.sentence} ({'; '.join(notes)})" if notes else c.sentence


def in_context(c: Comparison, several: bool, *results: Result) -> str:
    """The sentence of a comparison after where it is: `pin=apart: send=splice moves ... .`"""
    place, text = where(c, several), sentence(c, *results)
    return f"{place}: {text}." if place else f"{text}."


def in_short_of(c: Comparison, family: Iterable[Comparison]) -> tuple[str, str]:
    """A comparison's change and interval, as all of its family: factors where one is large."""
    return in_short(c.ratio, c.low, c.high, any(each.ratio >= TIMES for each in family))


def control_lines(what: str, controls: Sequence[Comparison]) -> Iterator[str]:
    """The controls of the metric that `what` names in a sentence; their table has each."""
    of = f"{what}, {'control' if len(controls) == 1 else count(len(controls), 'control')}"
    if known := [c for c in controls if not math.isnan(c.low)]:
        ratios = sorted(c.ratio for c in known)
        by = " to ".join(dict.fromkeys(signed(ratio) for ratio in (ratios[0], ratios[-1])))
        low, high = min(c.low for c in known), max(c.high for c in known)
        differ = sum(not holds(c) for c in known)
        differing = f"; {differ} of {len(known)} differ from themselves" if differ else ""
        yield (
            f"{of}: baseline against itself {by}%, {'within ' * (len(known) > 1)}{signed(low)} to"
            f" {signed(high)}%{differing}."
        )
    for why in dict.fromkeys(c.why for c in controls if math.isnan(c.low)):
        yield f"{of}: no comparison, {why}."


def gate_line(outcome: Outcome, several: bool, every: int = 0) -> str:
    """A gate and its outcome; every: comparisons of the metric that has most."""
    fell, unjudged = outcome.fell, outcome.unjudged
    total = len(fell) + outcome.held + len(unjudged)
    parts = []
    if fell:
        fallen = listed([with_interval(c, several) for c in fell], NAMED)
        parts.append(f"FELL in {len(fell)} of {total}: {fallen}")
    if outcome.cleared:
        parts.append(f"passed in {outcome.cleared} of {total}")
    if open_ := outcome.held - outcome.cleared:
        parts.append(f"cannot tell in {open_} of {total}: the interval reaches across")
    if unjudged:
        whys = [f"{_of(c, several)}{c.why or c.unsettled}" for c in unjudged]
        some = f" in {len(unjudged)} of {total}" if len(unjudged) < total else ""
        cannot = "tell" if all(c.unsettled == FEW_RUNS for c in unjudged) else "be judged"
        parts.append(f"cannot {cannot}{some}: {listed(whys, NAMED)}")
    if 0 < total < every:
        parts.append(f"no value in {every - total} more")
    return f"{outcome.gate.text}: {'; '.join(parts) or f'cannot be judged: {VOID}'}."


def with_interval(c: Comparison, several: bool) -> str:
    """A comparison that has one: where, the change, its interval and doubts."""
    doubts = "; ".join(FLAGS[flag] for flag in c.flags)
    return (
        f"{_of(c, several)}{change(c.ratio)}, {share(c.confidence)} interval"
        f" {bounds(c.low, c.high)}{f' ({doubts})' if doubts else ''}"
    )


def _of(c: Comparison, several: bool) -> str:
    """The level and place before what is said of it; "" where there is one thing alone."""
    level = f"{c.factor}={c.level}" if c.factor != RESULT else ""
    words = f"{level} {where(c, several)}".strip()
    return f"{words}: " if words else ""
