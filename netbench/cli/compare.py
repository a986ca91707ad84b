"""`compare`: two results, or the levels of a factor of one."""

from __future__ import annotations

import argparse
from pathlib import Path

from netbench import api
from netbench.base.errors import RequestError
from netbench.cli.output import say, say_json
from netbench.cli.verb import add_json, add_result

OPTIONS = ("factor", "baseline", "margin", "metrics", "gates", "history", "force")


def run(options: argparse.Namespace) -> int:
    chosen = {name: getattr(options, name) for name in OPTIONS}
    if len(options.others) > 1:
        raise RequestError("compare: name one result, or two")
    compared = api.compare(options.result, *options.others, **chosen)
    if options.json:
        say_json(compared.to_json())
    else:
        say(compared.text())
    if compared.refusal and not compared.fell:
        raise RequestError(f"compare: {compared.refusal}")
    return 1 if compared.fell else 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    add_result(parser, "A")
    parser.add_argument(
        "others", type=Path, nargs="*", metavar="B", help="a second one, to compare with A"
    )
    parser.add_argument(
        "--factor", metavar="F", help="compare the levels of F (default: the factor of `compare:`)"
    )
    parser.add_argument(
        "--baseline", metavar="LEVEL", help="the level to compare with (default: the first)"
    )
    parser.add_argument(
        "--margin", metavar="SHARE", help="an interval inside it is equivalent, such as 1%%"
    )
    parser.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="M",
        dest="metrics",
        help="compare only M (may be repeated)",
    )
    parser.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="GATE",
        dest="gates",
        help="exit 1 where a whole interval lies past GATE, such as 'throughput<-2%%' (may be"
        " repeated)",
    )
    parser.add_argument(
        "--history",
        type=Path,
        metavar="DIR",
        help="intervals hold how far earlier results of the campaign, below DIR, lie apart; two"
        " results have no verdicts without",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="judge the gates on two results without --history, as if campaigns did not differ;"
        " compare campaigns that measured different things",
    )
