"""The sections of a report, in its order.

A section is one file here, `NAME.py`, with one function NAME: Source -> Section (None: nothing to
say), and one row below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import NamedTuple

from netbench.report.blocks import Section
from netbench.report.source import Source


class _Row(NamedTuple):
    """A section; of_cells: it has a row for each cell and pair, and a fleet's report has it on
    demand; module: where it is not a file here.
    """

    name: str
    of_cells: bool = False
    module: str = ""


SECTIONS = (
    _Row("summary"),
    _Row("fleet", module="netbench.fleet.section"),
    _Row("matrix", of_cells=True),
    _Row("cells", of_cells=True),
    _Row("comparison", of_cells=True),
    _Row("boots"),
    _Row("factors"),
    _Row("effects", of_cells=True),
    _Row("promise"),
    _Row("cautions"),
    _Row("meters", of_cells=True),
    _Row("interrupts", of_cells=True),
    _Row("who_paid", of_cells=True),
    _Row("counters", of_cells=True),
    _Row("processes", of_cells=True),
    _Row("profile"),
    _Row("proof", of_cells=True),
    _Row("settings", of_cells=True),
    _Row("environment"),
    _Row("method"),
)


def sections(of_cells: bool = True) -> Iterator[Callable[[Source], Section | None]]:
    """The functions of SECTIONS, in order; of_cells: with those that are of cells."""
    for row in SECTIONS:
        if of_cells or not row.of_cells:
            yield getattr(import_module(row.module or f"{__name__}.{row.name}"), row.name)
