"""Rows of tables that tell metrics by cell and side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netbench.report.blocks import Value
from netbench.report.source import Source

PREFIXES = {"system": "", "sender": "sender_", "receiver": "receiver_"}
"""Of a metric's name, by side; `system`: both together."""
ONE_SIDED = {"gso_size": "sender", "gro_size": "receiver"}
"""Of one side alone, so that their names do not say whose they are."""


def told(source: Source, name: str) -> bool:
    """Whether a run has a metric, of any side."""
    return any(f"{prefix}{name}" in source.result.metrics for prefix in PREFIXES.values())


def side_rows(source: Source, names: Sequence[str]) -> Iterator[tuple[Value, ...]]:
    """One row a cell and side that has any of these metrics; where one kernel is both sides a row
    of both together.
    """
    for c in source.cells:
        together = source.result.shared.get(c.pair, False)
        for side, prefix in PREFIXES.items():
            if together != (side == "system"):
                continue
            values = [
                c.intervals.get(name if ONE_SIDED.get(name) == side else f"{prefix}{name}")
                for name in names
            ]
            if any(values):
                yield (*source.key(c), side, *values)
