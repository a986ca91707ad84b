"""`merge`: the parts of a campaign as one result."""

from __future__ import annotations

import argparse

from netbench import api
from netbench.base.errors import RequestError
from netbench.base.names import PROGRAM, shell_word
from netbench.cli.output import fold, say, tell
from netbench.cli.verb import add_paths


def run(options: argparse.Namespace) -> int:
    *paths, folder = options.paths
    if not paths:
        raise RequestError("merge: expected results and, last, where to: merge R1 R2... DIR")
    merged = api.merge(paths, folder)
    tell(*(fold(f"netbench: {line}") for line in (*merged.notes, *merged.holes)))
    say(fold(f"the whole report: {PROGRAM} report {shell_word(merged.path)}"))
    say(str(merged.path))
    return 1 if merged.holes else 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} [--results DIR] R1 R2... DIR"
    add_paths(
        parser,
        "R1 R2... DIR",
        "where to is last: a new folder becomes the result; one that is there gets it below, as"
        " NAME/TIME-ID",
    )
