"""`judge`: two revisions of a kernel, from git to a letter."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from netbench import api
from netbench.base.errors import RequestError
from netbench.base.names import shell_word
from netbench.base.units import count, format_duration, listed, parse_time
from netbench.cli.output import fold, say, tell
from netbench.cli.report import render
from netbench.cli.verb import add_results

if TYPE_CHECKING:
    from netbench.kernels.judge import Written
    from netbench.model import Campaign


def run(options: argparse.Namespace) -> int:
    from netbench import campaign
    from netbench.base.whole_file import write_new
    from netbench.kernels import judge
    from netbench.kernels.built import pinned, require_builds
    from netbench.lab import require_lab

    try:
        seconds = parse_time(options.time) / 1e9
    except ValueError as error:
        raise RequestError(f"judge: --time: {error}") from error
    question = judge.Question(
        *(options.base, options.patched, options.repo, options.on, options.suite, seconds),
        *(options.config, options.fragment),
    )
    written = judge.written(question)
    asked = campaign.parse(written.text, "judge")
    pinned(asked)  # a wrong revision, and what is not installed, are told before a file is written
    require_builds(asked)
    require_lab(asked)
    file = options.output or Path(f"judge-{Path(options.suite).stem}.yaml")
    write_new(written.text, file, "judge")
    judged = campaign.parse(written.text, str(file))
    tell(*(fold(line, "    ") for line in _before(judged, written, file)))
    conclusion = api.start(judged, options.results, options.jobs)
    say(render(api.build_report(conclusion.path), "letter"))
    tell(f"the result: {conclusion.path}")
    return conclusion.exit_code


def _before(wanted: Campaign, written: Written, file: Path) -> Iterator[str]:
    """What will be done, and what it will be able to show."""
    from netbench.plan.plan import Plan
    from netbench.stats.by_boot import what_boots_buy
    from netbench.stats.power import POWER

    repeat = wanted.repeat
    again = f"`run {shell_word(file)}` repeats it, edited or not"
    yield f"{file}: {count(len(wanted.cells), 'cell')}; {again}"
    if written.dropped:
        yield f"there is no time for {listed(written.dropped, 4)}"
    shown, _ = what_boots_buy(repeat.boots, Plan(wanted).blocks_a_boot, kernels=len(wanted.kernels))
    yield f"{shown}: {format_duration(round(written.seconds))} once both kernels are built"
    yield (
        f"what this can show in {POWER:.0%} of the cases: a change of {written.shown:.1%}, where"
        f" {written.boots.words}"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
