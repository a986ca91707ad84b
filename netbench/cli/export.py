"""`export`: results as tables in files, or in the form that another program reads."""

from __future__ import annotations

import argparse

from netbench import api
from netbench.base.errors import RequestError
from netbench.cli.output import tell
from netbench.cli.verb import add_paths

TABLES = ("runs", "cells", "samples", "facts")
FORMS = {
    "benchstat": "the runs in Go's benchmark format, for benchstat",
    "ministat": "the runs as a file for each cell and metric below F, for ministat",
    "otava": "the means as CSV, one row a result, for Apache Otava",
    "hgrm": "the latencies of requests as a file for each cell below F, for HdrHistogram's plotter",
    "openmetrics": "the latencies of requests as a histogram for each cell, for Prometheus",
}


def run(options: argparse.Namespace) -> int:
    *paths, file = options.paths
    if not paths:
        raise RequestError("export: expected results and, last, what to write: export R... F")
    form = next((form for form in FORMS if getattr(options, form)), None)
    if form is not None:
        if options.table:
            raise RequestError(f"--{form} has a form of its own; leave --table out")
        notes = api.export_text(paths, form, file)
    else:
        notes = api.export_table(paths, options.table or TABLES[0], file)
    tell(*(f"netbench: {note}" for note in notes))
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} [--results DIR] [--table T | --FORM] R... F"
    add_paths(parser, "R... F", "what to write is last: a file that ends in .parquet or .csv")
    parser.add_argument(
        "--table",
        choices=TABLES,
        metavar="T",
        help=f"which table a file gets: {', '.join(TABLES)} (default: {TABLES[0]})",
    )
    forms = parser.add_mutually_exclusive_group()
    for form, about in FORMS.items():
        forms.add_argument(f"--{form}", action="store_true", help=f"write {about}")
