"""Patterns over the output of programs, and what they find as numbers. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from netbench.base.units import (
    printed,
    printed_microseconds,
    printed_rate,
    printed_size,
    printed_time,
)
from netbench.result.record import Capture, ToolReading
from netbench.tools.search import Match, compiled, search
from netbench.tools.tool import THROUGHPUT, Reading, moved, shown

TEXT_MAX = 200  # characters of a match that a record keeps
GROUPS = "the named groups bytes and seconds, or rate"


def groups_wanted(metric: str) -> str:
    """What the pattern of a metric has to have, in words."""
    return GROUPS if metric == THROUGHPUT else "the named group value"


def lacks_groups(metric: str, pattern: str) -> bool:
    """Whether a pattern has not the groups that its metric needs. Errors: ValueError."""
    groups = set(compiled(pattern).groupindex)
    if metric == THROUGHPUT:
        return not ({"bytes", "seconds"} <= groups or "rate" in groups)
    return "value" not in groups


def read(captures: Sequence[tuple[str, str]], *texts: str) -> Reading:
    """What patterns find, by metric. Errors: ValueError."""
    tool = None
    by_metric = {}
    matches = search([pattern for _, pattern in captures], *texts)
    for (metric, pattern), match in zip(captures, matches, strict=True):
        if match is None:
            output = shown(next(filter(str.strip, texts), ""))
            raise ValueError(
                f"{metric}: its output does not match the pattern {pattern!r}: {output}"
            )
        try:
            if metric == THROUGHPUT:
                tool, by_metric[metric] = _throughput(match), Capture(match.text[:TEXT_MAX])
            else:
                by_metric[metric] = _value(match)
        except ValueError as error:
            raise ValueError(
                f"{metric}: no number where the pattern matches {shown(match.text)}: {error}"
            ) from error
    return Reading(tool, by_metric)


def _group(match: Match, name: str) -> str:
    """A group with its unit, where that is in a group of its own."""
    groups = match.groups
    return " ".join(filter(None, (groups.get(name), groups.get("unit"))))


def _throughput(match: Match) -> ToolReading:
    if match.groups.get("rate") is not None:
        rate = _group(match, "rate")
        printed_rate(rate)  # a rate that cannot be read fails the run
        return ToolReading(rate=rate)
    seconds = printed_time(match.groups.get("seconds") or "")
    return moved(printed_size(_group(match, "bytes")), seconds)


def _value(match: Match) -> Capture:
    """Times in µs and rates in Gb/s, so that all runs have one unit; what else there is, as it was
    printed.
    """
    text, quantity = match.text[:TEXT_MAX], _group(match, "value")
    number, unit = printed(quantity)
    if not unit:
        return Capture(text, number)
    for parse, divisor, base in ((printed_microseconds, 1.0, "µs"), (printed_rate, 1e9, "Gb/s")):
        try:
            return Capture(text, parse(quantity) / divisor, base)
        except ValueError:
            continue
    return Capture(text, number, unit[:20])
