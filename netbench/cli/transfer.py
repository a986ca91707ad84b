"""`transfer`: one cell without a campaign file."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path

from netbench.cli.output import say
from netbench.cli.report import render, sections_text
from netbench.cli.verb import Verb
from netbench.control_characters import escape_controls

SECTIONS = ("cells", "settings", "proof", "cautions")


def _run(options: argparse.Namespace) -> int:
    from netbench import api

    result = api.transfer(*options.words, results=options.results)
    say(render(result.report, "json") if options.json else sections_text(result.report, SECTIONS))
    if options.results:
        with suppress(OSError):
            print(escape_controls(str(result.path)), file=sys.stderr)
    return 0


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar="PATH=VALUE",
        help="keys of `transfer:`, such as send=sendfile source=F, or of the campaign"
        " (repeat.min=5)",
    )
    parser.add_argument("--results", type=Path, metavar="DIR", help="keep the result below DIR")


VERB = Verb(
    "transfer",
    "one cell without a campaign file, as one would use iperf3",
    _run,
    _add_arguments,
    to_json=True,
)
