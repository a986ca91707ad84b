"""`run`: a campaign, from its beginning."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from netbench import api
from netbench.base.errors import RequestError, StoreError
from netbench.base.names import PROGRAM, shell_word
from netbench.cli.output import fold, say, tell
from netbench.cli.report import render
from netbench.cli.verb import add_campaign, add_plain, add_results, load_campaign

if TYPE_CHECKING:
    from netbench.model import Campaign


def run(options: argparse.Namespace) -> int:
    campaign = load_campaign(options)
    if options.engine:
        return _run_parted(options, campaign)
    if options.scheduler is not None or options.parts is not None or options.insecure:
        raise RequestError("--scheduler, --insecure and --parts are of --engine dask")
    part = campaign if options.part is None else api.part(campaign, options.part)
    conclusion = api.start(part, options.results, options.jobs, options.plain)
    say_summary(conclusion.path)
    return conclusion.exit_code


def _run_parted(options: argparse.Namespace, campaign: Campaign) -> int:
    if options.part is not None:
        raise RequestError("--engine dask runs all parts; leave --part out")
    parted = api.start_parts(
        campaign, options.results, options.scheduler, options.parts, options.insecure
    )
    merged = parted.merged
    tell(*(fold(f"netbench: {line}") for line in (*merged.notes, *merged.holes)))
    say_summary(merged.path)
    return parted.exit_code


def say_summary(result: Path) -> None:
    """The first screen of the report, and last the result folder."""
    from netbench.report.build import build

    if not result.exists():
        raise StoreError(
            f"{result} is not there any more: was the folder moved? give `report` its new path"
        )
    say(render(build(result), "first"))
    say(f"the whole report: {PROGRAM} report --full {shell_word(result)}")
    say(str(result))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_campaign(parser)
    add_results(parser, "where result folders go")
    parser.add_argument(
        "--part",
        metavar="K/N",
        help="run the K-th of N parts of the campaign's pairs, into a result of its own; `merge`"
        " joins them",
    )
    parser.add_argument(
        "--engine", choices=("dask",), help="run all parts, as tasks on Dask, and merge them"
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="a Dask scheduler, such as tls://HOST:8786, whose workers see DIR (default: the parts"
        " run on this machine)",
    )
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="use a Dask scheduler without TLS, where whoever reaches it runs code as its user",
    )
    parser.add_argument(
        "--parts",
        type=int,
        metavar="N",
        help="how many parts (default: as many as there are places for)",
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="compilers at a time, for kernels from git"
    )
    add_plain(parser)
