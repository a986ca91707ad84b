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


def sections() -> Iterator[Callable[[Source], Section | None]]:
    """The functions of SECTIONS, in order."""
    for name in SECTIONS:
        yield getattr(import_module(f"{__name__}.{name}"), name)
