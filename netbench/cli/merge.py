"""`merge`: the parts of a campaign as one result."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from netbench.base.errors import RequestError
from netbench.cli.output import fold, say
from netbench.cli.verb import Verb, add_paths

if TYPE_CHECKING:
    from netbench.fleet.merge import Merged


def _run(options: argparse.Namespace) -> int:
    from netbench import api

    *paths, folder = options.paths
    if not paths:
        raise RequestError("merge: expected results and, last, where to: merge R1 R2... DIR")
    merged = api.merge(paths, folder)
    say_merged(merged)
    say(fold(f"the whole report: python -m netbench report {merged.path}"))
    say(str(merged.path))
    return 1 if merged.holes else 0


def say_merged(merged: Merged) -> None:
    """What is missing in a merged result, and what its reader should know."""
    for line in (*merged.notes, *merged.holes):
        print(fold(f"netbench: {line}"), file=sys.stderr)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} [--results DIR] R1 R2... DIR"
    add_paths(
        parser,
        "R1 R2... DIR",
        "where to is last: a new folder becomes the result; one that is there gets it below, as"
        " NAME/TIME-ID",
    )


VERB = Verb(
    "merge",
    "join the parts of a campaign into one result; exit 1 where a part is missing or not finished",
    _run,
    _add_arguments,
)
