"""`restore`: put back what a dead campaign left changed."""

from __future__ import annotations

import argparse
import sys

from netbench.cli.output import say
from netbench.cli.verb import Verb, add_result
from netbench.control_characters import escape_controls


def _run(options: argparse.Namespace) -> int:
    from netbench import api

    done = api.restore(options.result, options.trust, _show)
    say("\n".join(done) or "nothing is left to put back")
    return 0


def _show(lines: str) -> None:
    print(escape_controls(lines), file=sys.stderr, flush=True)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_result(parser)
    parser.add_argument(
        "--trust",
        action="store_true",
        help="act on what this account has not signed too, once it is shown",
    )


VERB = Verb("restore", "put back what a dead campaign left changed", _run, _add_arguments)
