"""`transfer`: one cell without a campaign file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from netbench import api
from netbench.cli.output import say, tell
from netbench.cli.report import render
from netbench.cli.verb import add_json

if TYPE_CHECKING:
    from netbench.run.transfer import Second


def run(options: argparse.Namespace) -> int:
    result = api.transfer(*options.words, results=options.results, seconds=_say_second)
    say(render(result.report, "json" if options.json else "text" if options.full else "first"))
    if options.results:
        tell(str(result.path))
    return 0


def _say_second(second: Second) -> None:
    """A line for a second, on standard error: `  1.00-  2.00 s   2.65 GB  21.2 Gb/s`."""
    rate = second.bytes * 8 / 1e9 / (second.end - second.begin)
    again = "" if second.retransmits is None else f"  retransmits {second.retransmits}"
    tell(
        f"{second.begin:6.2f}-{second.end:6.2f} s {second.bytes / 1e9:8.2f} GB {rate:7.2f} Gb/s"
        f"{again}"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument(
        "words",
        nargs="*",
        metavar="PATH=VALUE",
        help="keys of `transfer:`, such as send=sendfile source=F, or of the campaign"
        " (repeat.min=5)",
    )
    parser.add_argument("--full", action="store_true", help="print the whole report")
    parser.add_argument("--results", type=Path, metavar="DIR", help="keep the result below DIR")
