"""`query`: SQL over the tables of results."""

from __future__ import annotations

import argparse
import sys

from netbench.base.control_characters import escape_controls
from netbench.cli.output import say, say_json
from netbench.cli.verb import Verb, add_paths


def _run(options: argparse.Namespace) -> int:
    from netbench import api
    from netbench.tables.answers import as_json, in_columns

    answer = api.query(options.sql, options.paths)
    if options.json:
        say_json(as_json(answer))
    elif answer.columns:
        say(in_columns(answer))
    for note in answer.notes:
        print(escape_controls(f"netbench: {note}"), file=sys.stderr)
    return 0


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sql",
        metavar="SQL",
        help="one statement or several, as DuckDB takes them, over the tables runs, cells, samples"
        " and facts; the answer of the last one is printed",
    )
    add_paths(parser)


VERB = Verb("query", "SQL over the tables of results", _run, _add_arguments, to_json=True)
