"""`query`: SQL over the tables of results."""

from __future__ import annotations

import argparse

from netbench import api
from netbench.cli.output import say, say_json, tell
from netbench.cli.verb import add_json, add_paths


def run(options: argparse.Namespace) -> int:
    answer = api.query(options.sql, options.paths)
    if options.json:
        say_json(answer.json())
    elif answer.columns:
        say(answer.text())
    tell(*(f"netbench: {note}" for note in answer.notes))
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument(
        "sql",
        metavar="SQL",
        help="one statement or several, as DuckDB takes them, over the tables runs, cells, samples"
        " and facts; the answer of the last one is printed",
    )
    add_paths(parser)
