"""Build a report: the sections that have something to say, over one result folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from netbench.read.load import no_collector
from netbench.report.blocks import Section
from netbench.report.label import label_of, labelled
from netbench.report.source import Source


class Report(NamedTuple):
    """The sections of a result, for any renderer. `source` is what it and plots are made from."""

    source: Source
    sections: tuple[Section, ...]

    @property
    def name(self) -> str:
        return self.source.result.name

    @property
    def label(self) -> str:
        """What must stand beside every number of it; "" for what was measured on hardware."""
        return label_of(self.source.result)

    def section(self, key: str) -> Section:
        """A section by its key. Errors: KeyError."""
        for section in self.sections:
            if section.key == key:
                return section
        raise KeyError(key)


def build(path: Path | str, with_cells: bool = False) -> Report:
    """Read a result folder and make its report. with_cells: with the tables of cells, which that of
    a fleet leaves out. Errors: ReportError when it is no result, StoreError when it can't be read.
    """
    return of_source(replace(Source.of(path), with_cells=with_cells))


def of_source(source: Source) -> Report:
    """The report of a result that was already read."""
    from netbench.report.sections import sections

    of_cells = source.with_cells or not source.result.is_fleet
    label = label_of(source.result)
    with no_collector():
        built = [section(source) for section in sections(of_cells, source.result.is_fleet)]
    return Report(
        source, tuple(labelled(section, label) for section in built if section is not None)
    )
