"""The factors that `compare` does not name: what their levels do, as `compare --factor` says it."""

from __future__ import annotations

from netbench.report.blocks import Block, Prose, Section
from netbench.report.sections.comparison import noted_once, table
from netbench.report.source import Source
from netbench.report.titles import title


def factors(source: Source) -> Section | None:
    """A table for each other factor and metric that answers; None where nothing else is swept."""
    several = len(source.result.plan.pairs) > 1
    tables: list[Block] = [
        table(
            f"{factor} against {family[0].baseline}: {title(metric, source.result)}",
            family,
            several,
        )
        for factor, families in source.other_answers.items()
        for metric, family in families.items()
    ]
    if not tables:
        return None
    how = "Each factor is a question of its own: its intervals are corrected for its rows alone."
    return Section("factors", "The other factors", (*noted_once(tables), Prose((how,))))
