"""Cautions, gravest first."""

from __future__ import annotations

from netbench.report.blocks import Cautions, Prose, Section
from netbench.report.source import Source


def cautions(source: Source) -> Section:
    """All cautions with their remedies; says so when there is none."""
    items = tuple(source.cautions)
    blocks = (
        (Cautions(items),) if items else (Prose(("None: no check items anything to warn of.",)),)
    )
    return Section("cautions", "Cautions", blocks)
