"""`bundle`: one archive of a result, to send or to publish."""

from __future__ import annotations

import argparse
from pathlib import Path

from netbench import api
from netbench.cli.output import say
from netbench.cli.verb import add_redact, add_result, read_result


def run(options: argparse.Namespace) -> int:
    from netbench.result.bundles import SUFFIX, inside

    with read_result(options.result, options.redact) as result:
        report = api.build_report(result)
        name = "-".join(inside(report.source.result.path).parts)
        file = options.output or Path(f"{name}{SUFFIX}")
        api.write_bundle(report, file)
    say(str(file))
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_result(parser)
    parser.add_argument(
        "--output", type=Path, metavar="F", help="the archive (default: NAME-TIME-ID.zip here)"
    )
    add_redact(parser)
