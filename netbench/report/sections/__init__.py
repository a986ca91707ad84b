"""The sections of a report, in its order.

A section is one file here, `NAME.py`, with one function NAME: Source -> Section (None: nothing to
say), and one row below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module

from netbench.report.blocks import Section
from netbench.report.source import Source

SECTIONS = (
    "summary",
    "fleet",
    "matrix",
    "cells",
    "comparison",
    "boots",
    "factors",
    "effects",
    "published",
    "promise",
    "cautions",
    "netperf",
    "meters",
    "interrupts",
    "who_paid",
    "counters",
    "processes",
    "profile",
    "proof",
    "settings",
    "environment",
    "method",
)
OF_CELLS = (
    "matrix",
    "cells",
    "comparison",
    "effects",
    "netperf",
    "meters",
    "interrupts",
    "who_paid",
    "counters",
    "processes",
    "proof",
    "settings",
)
"""Sections with a row for each cell and pair: a fleet's report has them on demand."""


def sections(of_cells: bool = True) -> Iterator[Callable[[Source], Section | None]]:
    """The functions of SECTIONS, in order; of_cells: with those that are OF_CELLS."""
    for name in SECTIONS:
        if of_cells or name not in OF_CELLS:
            yield getattr(import_module(f"{__name__}.{name}"), name)
