"""`run` and `resume`: a campaign, from its beginning or from where it stopped."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from netbench.base.errors import RequestError
from netbench.cli.merge import say_merged
from netbench.cli.output import fold, say
from netbench.cli.report import sections_text
from netbench.cli.verb import Verb, add_campaign, add_result, add_results, load_campaign

if TYPE_CHECKING:
    from netbench.model import Campaign


def _run(options: argparse.Namespace) -> int:
    from netbench import api

    campaign = load_campaign(options)
    if options.engine:
        return _run_parted(options, campaign)
    if options.scheduler is not None or options.parts is not None or options.insecure:
        raise RequestError("--scheduler, --insecure and --parts are of --engine dask")
    if options.part is not None:
        from netbench.fleet.parts import part_of

        campaign = part_of(campaign, *options.part)
    conclusion = api.start(campaign, options.results, options.jobs, options.plain)
    _say_summary(conclusion.path)
    return conclusion.exit_code


def _run_parted(options: argparse.Namespace, campaign: Campaign) -> int:
    from netbench import api

    if options.part is not None:
        raise RequestError("--engine dask runs all parts; leave --part out")
    parted = api.start_parts(
        campaign, options.results, options.scheduler, options.parts, options.insecure
    )
    say_merged(parted.merged)
    _say_summary(parted.merged.path)
    return parted.exit_code


def _resume(options: argparse.Namespace) -> int:
    from netbench import api

    conclusion = api.resume(options.result, options.plain)
    if conclusion is None:  # nothing has changed: a summary would read all records again
        _say_place(options.result)
        return 0
    _say_summary(options.result)
    return conclusion.exit_code


def _say_summary(result: Path) -> None:
    """The answers, the matrix, the cells and the cautions, and last the result folder."""
    from netbench.report.build import build

    say(sections_text(build(result), ("summary", "matrix", "cells", "cautions")) + "\n")
    _say_place(result)


def _say_place(result: Path) -> None:
    say(fold(f"the whole report: python -m netbench report {result}"))
    say(str(result))


def _part(word: str) -> tuple[int, int]:
    from netbench.fleet.parts import parse_part

    try:
        return parse_part(word)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    add_campaign(parser)
    add_results(parser, "where result folders go")
    parser.add_argument(
        "--part",
        type=_part,
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
    _add_plain(parser)


def _add_resume_arguments(parser: argparse.ArgumentParser) -> None:
    add_result(parser)
    _add_plain(parser)


def _add_plain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plain", action="store_true", help="lines instead of a view, on a terminal too"
    )


RUN = Verb(
    "run", "run a campaign; prints its summary and last the result folder", _run, _add_run_arguments
)
RESUME = Verb(
    "resume",
    "continue a campaign where it stopped, in the same order",
    _resume,
    _add_resume_arguments,
)
