"""`judge`: two revisions of a kernel, from git to a letter."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from netbench.cli import power_lines
from netbench.cli.output import fold, say
from netbench.cli.report import render
from netbench.cli.verb import Verb, add_results
from netbench.control_characters import escape_controls
from netbench.errors import RequestError
from netbench.units import parse_time

if TYPE_CHECKING:
    from netbench.model import Campaign

SPREADS = (0.005, 0.01, 0.02)  # of boots, where no earlier result tells it


def _run(options: argparse.Namespace) -> int:
    from netbench import api, campaign, judge
    from netbench.built_kernels import pinned, require_builds
    from netbench.lab import require_lab
    from netbench.new_file import write_unless_same

    try:
        seconds = parse_time(options.time) / 1e9
    except ValueError as error:
        raise RequestError(f"judge: --time: {error}") from error
    question = judge.Question(
        *(options.base, options.patched, options.repo, options.on, options.suite, seconds),
        *(options.config, options.fragment),
    )
    text = judge.written(question)
    asked = campaign.parse(text, "judge")
    pinned(asked)  # a wrong revision, and what is not installed, are told before a file is written
    require_builds(asked)
    require_lab(asked)
    file = options.output or Path(f"judge-{Path(options.suite).stem}.yaml")
    write_unless_same(text, file, "judge")
    wanted = campaign.load(file)
    for line in _before(wanted, file, options.results):
        print(escape_controls(fold(line, "    ")), file=sys.stderr, flush=True)
    conclusion = api.start(wanted, options.results, options.jobs)
    say(render(api.build_report(conclusion.path), "letter"))
    print(escape_controls(f"the result: {conclusion.path}"), file=sys.stderr)
    return conclusion.exit_code


def _before(wanted: Campaign, file: Path, results: Path) -> Iterator[str]:
    """What will be done, and what it will be able to show."""
    from netbench import api
    from netbench.analysis.boots import what_boots_buy
    from netbench.plan import Plan
    from netbench.units import count, format_duration

    plan = Plan(wanted)
    repeat = wanted.repeat
    yield f"{file}: {count(len(wanted.cells), 'cell')}; `run {file}` repeats it, edited or not"
    gain = what_boots_buy(
        repeat.boots,
        plan.blocks_a_boot,
        kernels=len(wanted.kernels),
        confidence=repeat.confidence,
    )
    yield f"{gain.lines[0]}: {format_duration(plan.seconds()[1])} once both kernels are built"
    earlier = _newest(results, wanted.name)
    outlook = api.power(wanted, earlier) if earlier is not None else None
    if earlier is not None and outlook is not None and outlook.metrics:
        yield from power_lines.lines(outlook, earlier)
    else:  # none, or one that ended before it could tell
        yield _without_pilot(repeat.boots, repeat.confidence)


def _newest(results: Path, name: str) -> Path | None:
    """The newest result of a campaign."""
    from netbench.analysis.overview import folders

    return next((folder for folder in folders(results) if folder.parent.name == name), None)


def _without_pilot(boots: int, confidence: float) -> str:
    """What differences can be shown, by how far boots lie apart."""
    from netbench.analysis.power import POWER, smallest_difference

    shown = [
        f"{math.expm1(smallest_difference(math.sqrt(2) * sd, boots, confidence)):.1%} where boots"
        f" of one kernel differ by {sd:.1%}"
        for sd in SPREADS
    ]
    return (
        f"what this can show in {POWER:.0%} of the cases, for one comparison: a change of"
        f" {', '.join(shown)} (standard deviation, which is not known before a first result)"
    )


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--base", required=True, metavar="REV", help="the revision without the patch"
    )
    parser.add_argument("--patched", required=True, metavar="REV", help="the revision with it")
    parser.add_argument(
        "--repo",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the kernel's git repository (default: here)",
    )
    parser.add_argument(
        "--on",
        default="lab",
        metavar="HOSTS",
        help="a campaign file whose hosts are booted, or lab: guests of this machine (default)",
    )
    parser.add_argument(
        "--suite",
        default="bulk",
        help="bulk (default), zerocopy, small, or a campaign file without kernels",
    )
    parser.add_argument(
        "--time",
        default="1h",
        metavar="T",
        help="how long it may measure, without the builds (default: 1h)",
    )
    parser.add_argument(
        "--config",
        default="",
        metavar="F",
        help="the kernels' configuration, a file or a target of make (default: tinyconfig with the"
        " fragment lab, which boots in a lab only)",
    )
    parser.add_argument(
        "--fragment", default="", metavar="F", help="lines that change the configuration"
    )
    parser.add_argument(
        "--output", type=Path, metavar="F", help="the campaign (default: judge-SUITE.yaml here)"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="compilers at a time")
    add_results(parser, "where result folders go")


VERB = Verb(
    "judge",
    "build two revisions of a kernel, boot and measure them, print a letter",
    _run,
    _add_arguments,
)
