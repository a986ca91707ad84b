"""`bisect`: which commit made a kernel worse."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from netbench import api
from netbench.base.errors import Lost, RequestError
from netbench.base.names import shell_word
from netbench.base.units import listed
from netbench.cli.output import fold, say, tell
from netbench.cli.verb import add_campaign, add_results, load_campaign

if TYPE_CHECKING:
    from netbench.kernels.bisection import Answer
    from netbench.model import Campaign


def run(options: argparse.Namespace) -> int:
    from netbench.kernels import bisection

    campaign = _checked(options)
    kernel = campaign.kernels[bisection.sides_of(campaign).tried]
    log: list[str] = []

    def told(step: bisection.Step) -> None:
        log.append(step.line)
        tell(fold(step.line, "    "))

    def ask(good: str, tried: str) -> Answer:
        return _answer(campaign, good, tried, options)

    suspects = bisection.search(kernel, options.good, options.bad, ask, told)
    say("\n".join(fold(line, "    ") for line in log) + "\n")
    if len(suspects) == 1:
        say(f"the first bad commit is {suspects[0]}")
        return 0
    say("the first bad commit is one of these, of which none can be told apart from the others:")
    say("\n".join(f"  {commit}" for commit in suspects))
    return 1


def _checked(options: argparse.Namespace) -> Campaign:
    """The campaign, with gates that can be parsed. Errors: RequestError; CampaignError."""
    from netbench.kernels.bisection import sides_of
    from netbench.read import gates

    campaign = load_campaign(options)
    sides_of(campaign)
    try:
        for gate in options.gates:
            gates.parse(gate)
    except ValueError as error:
        raise RequestError(f"bisect: {error}") from error
    return campaign


def _answer(wanted: Campaign, good: str, tried: str, options: argparse.Namespace) -> Answer:
    """What a campaign of both says. Errors: Lost, LabError where that is nothing of the commit."""
    from netbench.kernels.bisection import Answer, Says, between
    from netbench.kernels.compile import BuildFailed
    from netbench.report.phrases import NAMED, with_interval

    try:
        conclusion = api.start(between(wanted, good, tried), options.results, options.jobs)
    except BuildFailed as error:
        return Answer(Says.SKIP, str(error))
    if conclusion.why == "interrupted":
        raise KeyboardInterrupt
    if conclusion.why == "lost":
        raise Lost(f"bisect: {conclusion.reason}; run it again: what was built is kept")
    compared = api.compare(conclusion.path, gates=options.gates)
    reasons = [
        f"{outcome.gate.metric} {with_interval(c, True)}"
        for outcome in compared.outcomes
        for c in compared.families.get(outcome.gate.metric, ())
        if not math.isnan(c.low)
    ]
    report = f"`report {shell_word(conclusion.path)}`"
    why = listed(reasons, NAMED) or f"nothing could be compared ({report})"
    if compared.fell:
        return Answer(Says.BAD, why)
    passed = all(outcome.passed for outcome in compared.outcomes)
    return Answer(Says.GOOD if passed else Says.SKIP, why)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_campaign(parser)
    parser.add_argument("--good", required=True, metavar="REV", help="a revision that is good")
    parser.add_argument("--bad", required=True, metavar="REV", help="a later one that is bad")
    parser.add_argument(
        "--fail-if",
        action="append",
        required=True,
        metavar="GATE",
        dest="gates",
        help="a commit is bad where a whole interval lies past GATE, such as 'throughput<-3%%', and"
        " good where none reaches it (may be repeated)",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="compilers at a time")
    add_results(parser, "where result folders go")
