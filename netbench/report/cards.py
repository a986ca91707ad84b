"""A finding as a card: its sentence, a small drawing of its intervals, its verdict in a word, a
shape and a colour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

from markupsafe import Markup

from netbench.report.blocks import Finding, Span
from netbench.report.numbers import number
from netbench.stats.comparison import VERDICTS

WIDTH, ROW, LEFT, RIGHT = 270, 18, 30, 240
BESIDE = 55  # between the middles of two numbers
MOST_SPANS = 6
LONGEST = 42  # letters of a label
MIXED = "mixed"
SYMBOLS = {"better": "▲", "worse": "▼", "equivalent": "■", "inconclusive": "○"}
Across = Callable[[float], float]
_SHAPES = {
    "better": "M{x} {t}l5 9h-10z",
    "worse": "M{x} {b}l5 -9h-10z",
    "equivalent": "M{l} {t}h8v8h-8z",
}
_ROUND = "M{l} {y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"


def card(finding: Finding) -> dict[str, Any]:
    """What the template of a card needs; `verdict` is "" where nothing is to be drawn."""
    verdicts = {span.verdict for span in finding.spans} - {""}
    verdict = next(iter(verdicts)) if len(verdicts) == 1 else MIXED if verdicts else ""
    return {
        "sentence": finding.sentence,
        "verdict": verdict,
        "symbol": SYMBOLS.get(verdict, "◆"),
        "drawing": _drawing(finding) if finding.spans else "",
        "more": max(0, len(finding.spans) - MOST_SPANS),
    }


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


def _drawing(finding: Finding) -> Markup:
    """A row for each of the first spans, on one scale."""
    spans = finding.spans[:MOST_SPANS]
    reference, margin = finding.reference, finding.margin or 0.0
    known = [x for s in spans for x in (s.at, s.low, s.high) if math.isfinite(x)]
    if not known:
        return Markup("")
    shown = [*known, *([] if reference is None else [reference - margin, reference + margin])]
    low, high = min(shown), max(shown)
    gap = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    low, high = low - gap, high + gap

    def across(value: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * (value - low) / (high - low), 1)

    named = len(spans) > 1
    step = ROW + (13 if named else 0)
    bottom = step * len(spans) + 4
    parts = []
    if reference is not None:
        if margin:
            x, wide = across(reference - margin), across(reference + margin)
            parts.append(
                f'<rect class="band" x="{x}" y="0" width="{wide - x:.1f}" height="{bottom}"/>'
            )
        x = across(reference)
        parts.append(f'<path class="axis" d="M{x} 0V{bottom}"/>')
    for at, span in enumerate(spans):
        if named:
            parts.append(f'<text x="0" y="{at * step + 11}">{escape(_short(span.label))}</text>')
        parts += _span(span, across, (at + 1) * step - ROW // 2)
    unit = f" {finding.unit}" if finding.unit and finding.unit != "%" else finding.unit
    parts += [
        f'<text class="end" x="{across(value)}" y="{bottom + 12}" text-anchor="middle">'
        f"{escape(_end(value, reference, unit))}</text>"
        for value in _ticks(known, reference, across)
    ]
    told = "; ".join(f"{s.label}: {_told(s, reference, unit)}" for s in spans)
    size = f'viewBox="0 0 {WIDTH} {bottom + 16}" width="{WIDTH}" height="{bottom + 16}"'
    return Markup(f'<svg role="img" {size}><title>{escape(told)}</title>{"".join(parts)}</svg>')


def _ticks(known: Sequence[float], reference: float | None, across: Across) -> list[float]:
    """What is written below: what all is held against, and the ends, as far as there is room."""
    ticks: list[float] = []
    ends = sorted((min(known), max(known)), key=lambda x: -abs(x - (reference or 0.0)))
    for value in [*([] if reference is None else [reference]), *ends]:
        if all(abs(across(value) - across(other)) > BESIDE for other in ticks):
            ticks.append(value)
    return ticks


def _span(span: Span, across: Across, y: int) -> Iterator[str]:
    kind = span.verdict if span.verdict in VERDICTS else "plain"
    if math.isfinite(span.low) and math.isfinite(span.high):
        yield f'<path class="line {kind}" d="M{across(span.low)} {y}H{across(span.high)}"/>'
    if math.isfinite(span.at):
        x = across(span.at)
        shape = _SHAPES.get(kind, _ROUND)
        path = shape.format(x=x, y=y, t=y - 4.5, b=y + 4.5, l=round(x - 4, 1))
        yield f'<path class="mark {kind}" d="{path}"/>'


def _end(value: float, reference: float | None, unit: str) -> str:
    if reference is None:
        return f"{number(value)}{unit}"
    return f"{value:+.{2 if abs(value) < 1 else 1}f}{unit}" if value else f"0{unit}"


def _told(span: Span, reference: float | None, unit: str) -> str:
    said = _end(span.at, reference, unit)
    if math.isfinite(span.low) and math.isfinite(span.high):
        said += f" ({_end(span.low, reference, '')} to {_end(span.high, reference, unit)})"
    return f"{said}, {span.verdict}" if span.verdict else said
