"""The parser of the command line: every verb with its options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from netbench import __version__
from netbench.base.control_characters import escape_controls
from netbench.cli import (
    bisect,
    bundle,
    check,
    compare,
    export,
    init,
    judge,
    lab,
    listing,
    merge,
    meter,
    plan,
    query,
    report,
    restore,
    schema,
    transfer,
    watch,
)
from netbench.cli.output import say
from netbench.cli.run import RESUME, RUN
from netbench.cli.verb import find_latest

VERBS = (
    init.VERB,
    check.VERB,
    plan.VERB,
    RUN,
    RESUME,
    merge.VERB,
    watch.VERB,
    report.VERB,
    compare.VERB,
    bundle.VERB,
    export.VERB,
    query.VERB,
    listing.VERB,
    transfer.VERB,
    meter.VERB,
    restore.VERB,
    lab.VERB,
    schema.VERB,
    judge.VERB,
    bisect.VERB,
)


class _Parser(argparse.ArgumentParser):
    """argparse of Python 3.11.2 (Debian 12) fails on streams that are closed; this one does not."""

    def _print_message(self, message: str, file: IO[str] | None = None) -> None:  # type: ignore[override]
        if file is sys.stdout:
            say(message)
        else:
            with suppress(OSError):
                print(escape_controls(message), end="", file=sys.stderr, flush=True)


def run(argv: list[str]) -> int:
    """Parse the command line and run its verb. Errors: NetbenchError; SystemExit of argparse."""
    top = build()
    options, more = top.parse_known_args(argv)
    if more and (not hasattr(options, "paths") or any(word.startswith("-") for word in more)):
        top.error(f"unrecognized arguments: {' '.join(more)}")
    if more:  # argparse ends a list of words at the first option
        options.paths += map(Path, more)
    find_latest(options)
    verb: Callable[[argparse.Namespace], int] = options.verb
    return verb(options)


def build() -> argparse.ArgumentParser:
    """The parser with all verbs and their options."""
    top = _Parser(
        prog="python -m netbench",
        description="Benchmark campaigns of network transfers.",
        epilog="`python -m netbench VERB --help` describes a verb.",
    )
    top.add_argument("--version", action="version", version=f"netbench {__version__}")
    parsers = top.add_subparsers(title="verbs", required=True, metavar="VERB")
    for verb in VERBS:
        about = f"{verb.about[0].upper()}{verb.about[1:]}."
        parser = parsers.add_parser(verb.name, help=verb.about, description=about)
        parser.set_defaults(verb=verb.run)
        if verb.to_json:
            parser.add_argument("--json", action="store_true", help="print JSON, for programs")
        verb.add_arguments(parser)
    return top
