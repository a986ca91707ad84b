"""The sections of a report, in its order.

A section is one file with one function Source -> Section (None: nothing to say) and one row here.
"""

from __future__ import annotations

from collections.abc import Callable

from netbench.report.blocks import Section
from netbench.report.sections.cautions import cautions
from netbench.report.sections.cells import cells
from netbench.report.sections.comparison import comparison
from netbench.report.sections.environment import environment
from netbench.report.sections.method import method
from netbench.report.sections.processes import processes
from netbench.report.sections.proof import proof
from netbench.report.sections.settings import settings
from netbench.report.sections.summary import summary
from netbench.report.source import Source

SECTIONS: tuple[Callable[[Source], Section | None], ...] = (
    summary,
    cells,
    comparison,
    cautions,
    processes,
    proof,
    settings,
    environment,
    method,
)
