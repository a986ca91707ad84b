"""Cautions, gravest first."""

from __future__ import annotations

from dataclasses import replace

from netbench.read.shown_levels import shown
from netbench.report.blocks import Cautions, Prose, Section
from netbench.report.source import Source


def cautions(source: Source) -> Section:
    """All cautions with their remedies; says so when there is none."""
    items = tuple(replace(one, where=tuple(map(shown, one.where))) for one in source.cautions)
    blocks = (
        (Cautions(items),) if items else (Prose(("None: no check found anything to warn of.",)),)
    )
    return Section("cautions", "Cautions", blocks)
