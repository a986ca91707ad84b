"""The sections of a report, in its order.

A section is one function NAME: Source -> Section (None: nothing to say), in a file here, and one
row below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import NamedTuple

from netbench.report.blocks import Section
from netbench.report.source import ADD_ON, Source


class _Row(NamedTuple):
    """A section; of_cells: it has a row for each cell and pair, and a fleet's report has it on
    demand; module: the file here, or the add-on, where that has another name.
    """

    name: str
    module: str = ""
    of_cells: bool = False


SECTIONS = (
    _Row("summary"),
    _Row("fleet", ADD_ON),
    _Row("matrix", "cell_tables", of_cells=True),
    _Row("cells", "cell_tables", of_cells=True),
    _Row("requests", of_cells=True),
    _Row("comparison", "level_tables", of_cells=True),
    _Row("boots", "boot_tables"),
    _Row("factors", "level_tables"),
    _Row("cautions", "how_made"),
    _Row("meters", "sides", of_cells=True),
    _Row("interrupts", "sides", of_cells=True),
    _Row("counters", "sides", of_cells=True),
    _Row("processes", "sides", of_cells=True),
    _Row("profile"),
    _Row("proof", "proof_and_settings", of_cells=True),
    _Row("settings", "proof_and_settings", of_cells=True),
    _Row("environment"),
    _Row("method", "how_made"),
)


def sections(
    of_cells: bool = True, of_fleets: bool = True
) -> Iterator[Callable[[Source], Section | None]]:
    """Those of SECTIONS, in order; of_cells: with those of cells; of_fleets: with the add-on's."""
    for row in SECTIONS:
        if (of_cells or not row.of_cells) and (of_fleets or row.module != ADD_ON):
            file = row.module or row.name
            yield getattr(import_module(file if "." in file else f"{__name__}.{file}"), row.name)
