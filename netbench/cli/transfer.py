"""`transfer`: one cell without a campaign file."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from netbench.base.control_characters import escape_controls
from netbench.cli.output import say
from netbench.cli.report import render, sections_text
from netbench.cli.verb import Verb

if TYPE_CHECKING:
    from netbench.run.seconds import Second

SECTIONS = ("cells", "settings", "proof", "cautions")


def _run(options: argparse.Namespace) -> int:
    from netbench import api

    result = api.transfer(*options.words, results=options.results, seconds=_say_second)
    say(render(result.report, "json") if options.json else sections_text(result.report, SECTIONS))
    if options.results:
        with suppress(OSError):
            print(escape_controls(str(result.path)), file=sys.stderr)
    return 0


def _say_second(second: Second) -> None:
    """A line for a second, on standard error: `  1.00-  2.00 s   2.65 GB  21.2 Gb/s`."""
    rate = second.bytes * 8 / 1e9 / (second.end - second.begin)
    again = "" if second.retransmits is None else f"  retransmits {second.retransmits}"
    with suppress(OSError):
        print(
            f"{second.begin:6.2f}-{second.end:6.2f} s {second.bytes / 1e9:8.2f} GB {rate:7.2f} Gb/s"
            f"{again}",
            file=sys.stderr,
            flush=True,
        )


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
