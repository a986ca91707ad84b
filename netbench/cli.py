"""The command line: one verb a function, no logic of its own. Heavy imports wait until a verb needs
them.
"""

from __future__ import annotations

import argparse
import errno
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from netbench.errors import NotBuiltYet, RequestError, StoreError

GONE = (
    errno.EPIPE,
    errno.EIO,
)  # nobody reads our output any more: a closed pipe, a closed terminal
LISTS = ("methods", "meters", "settings", "results")


class _Parser(argparse.ArgumentParser):
    """Says everything by streams that may be dead; argparse of Python 3.11.2 (Debian 12) fails on
    them.
    """

    def print_help(self, file: Any = None) -> None:
        say(self.format_help())

    def error(self, message: str) -> NoReturn:
        with suppress(OSError):
            print(
                f"{self.format_usage()}{self.prog}: error: {message}", file=sys.stderr, flush=True
            )
        raise SystemExit(RequestError.exit_code)


def run(argv: list[str]) -> int:
    """Parse the command line and run its verb. Errors: NetbenchError; SystemExit(2) from
    argparse.
    """
    made = parser()
    options, unknown = made.parse_known_args(argv)
    if unknown and options.verb is not not_built:
        made.error(f"unrecognized arguments: {' '.join(unknown)}")
    verb: Callable[[argparse.Namespace], int] = options.verb
    return verb(options)


def parser() -> argparse.ArgumentParser:
    """All verbs and their options."""
    top = _Parser(prog="netbench", description="Benchmark campaigns of network transfers.")
    verbs = top.add_subparsers(title="verbs", required=True, metavar="VERB")

    def verb(
        name: str, function: Callable[[argparse.Namespace], int], about: str, to_json: bool = False
    ) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
        made.set_defaults(verb=function)
        if to_json:
            made.add_argument("--json", action="store_true", help="the same content for programs")
        return made

    for name, function, about in (
        ("check", check, "can this campaign run here, and what will make it noisy"),
        ("plan", plan, "cells, order and estimated time; touches no host"),
    ):
        made = verb(name, function, about, to_json=True)
        _campaign(made)
    made = verb("run", run_campaign, "run a campaign and print its report")
    _campaign(made)
    made.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="where result folders go (results)",
    )
    made = verb("resume", resume, "go on with a campaign where it stopped")
    _result(made)
    made = verb("report", report, "the report of a result", to_json=True)
    _result(made)
    for kind in ("html", "markdown", "csv"):
        made.add_argument(f"--{kind}", type=Path, metavar="F", help=f"also write it as {kind} to F")
    made = verb(
        "list",
        list_names,
        "methods, meters, settings or results, with the reason where one can't run here",
        to_json=True,
    )
    made.add_argument("what", choices=LISTS)
    made.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="where result folders are (results)",
    )
    made = verb(
        "transfer",
        transfer,
        "one transfer without a campaign file: send=sendfile source=F ...",
        to_json=True,
    )
    made.add_argument(
        "words",
        nargs="*",
        metavar="PATH=VALUE",
        help="keys of `transfer:`, or of the campaign (repeat.min=5)",
    )
    made.add_argument("--results", type=Path, metavar="DIR", help="keep the result below DIR")
    made = verb("meter", meter, "one meter alone on this machine: what each CPU did", to_json=True)
    made.add_argument("name", metavar="NAME", help="see `list meters`")
    made.add_argument("--seconds", type=float, default=1.0, metavar="N", help="how long (1)")
    made = verb("restore", restore, "put back what a dead campaign left changed")
    _result(made)
    _lab(verb("lab", lab, "hosts made on this machine: up KIND, down, status", to_json=True))
    verb("schema", schema, "JSON Schema of the campaign file, for editors")
    _compare(
        verb(
            "compare",
            compare,
            "two results, or the levels of a factor of one, with intervals and verdicts",
            to_json=True,
        )
    )
    later = verb("export", not_built, "write a result in another format (not built yet)")
    later.add_argument("words", nargs="*")
    later.set_defaults(name="export")
    return top


def _campaign(made: argparse.ArgumentParser) -> None:
    made.add_argument("campaign", type=Path, metavar="C", help="the campaign file")
    made.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        dest="sets",
        help="change a key (may be repeated)",
    )
    made.add_argument(
        "--quick", action="store_true", help="3 runs of 1 s, warm-up 200 ms: does it work at all"
    )


def _result(made: argparse.ArgumentParser) -> None:
    made.add_argument("result", type=Path, metavar="R", help="a result folder")


def _compare(made: argparse.ArgumentParser) -> None:
    made.add_argument("result", type=Path, metavar="A", help="a result folder")
    made.add_argument(
        "other", type=Path, nargs="?", metavar="B", help="another one, which is compared with A"
    )
    made.add_argument(
        "--factor", metavar="F", help="compare the levels of F in A (what its campaign compares)"
    )
    made.add_argument(
        "--baseline", metavar="LEVEL", help="the level that others are compared with (the first)"
    )
    made.add_argument(
        "--margin",
        metavar="SHARE",
        help="what does not matter, such as 1%%: wholly inside it is equivalent",
    )
    made.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="M",
        dest="metrics",
        help="only M (may be repeated)",
    )
    made.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="GATE",
        dest="gates",
        help=(
            "exit 1 where a whole interval lies past it, such as 'throughput<-2%%' (may be"
            " repeated)"
        ),
    )


def _lab(made: argparse.ArgumentParser) -> None:
    made.add_argument("action", choices=("up", "down", "status"))
    made.add_argument(
        "kind",
        nargs="?",
        default="netns",
        metavar="KIND",
        help="what `up` makes: netns (network namespaces) or qemu (guests)",
    )
    made.add_argument("--hosts", type=int, default=2, metavar="N", help="how many (2)")
    made.add_argument("--rate", metavar="R", help="rate of the data link, such as 1Gb/s")
    made.add_argument("--delay", metavar="T", help="delay of the data link each way, such as 5ms")
    made.add_argument("--name", metavar="NAME", help="of this lab, where there are several")
    made.add_argument(
        "--kernels",
        metavar="A,B",
        help="of guests: series or releases of Debian's, such as 6.1,6.12; the first is started",
    )
    made.add_argument(
        "--disk",
        action="store_true",
        help="each guest has a /boot that outlives its boots, with these kernels",
    )


def say(text: str) -> None:
    """Print what a verb answers. That nobody reads it any more is no error: the work is done.
    Errors: StoreError.
    """
    try:
        print(text, end="" if not text or text.endswith("\n") else "\n", flush=True)
    except OSError as error:
        if error.errno not in GONE:
            raise StoreError(
                f"cannot write to standard output: {error.strerror}; free some space, or send it"
                " elsewhere"
            ) from error


def _say_json(value: Mapping[str, Any] | list[Any]) -> None:
    say(json.dumps(value, indent=1, ensure_ascii=False))


def check(options: argparse.Namespace) -> int:
    from netbench import api, campaign, console

    findings = api.check(campaign.load(options.campaign, options.sets, quick=options.quick))
    if options.json:
        _say_json(console.findings_json(findings))
    else:
        say(console.findings_text(findings))
    return RequestError.exit_code if any(finding.level == "error" for finding in findings) else 0


def plan(options: argparse.Namespace) -> int:
    from netbench import campaign, console
    from netbench.plan import Plan

    planned = Plan(campaign.load(options.campaign, options.sets, quick=options.quick))
    if options.json:
        _say_json(planned.to_json())
    else:
        say(console.plan_text(planned))
    return 0


def run_campaign(options: argparse.Namespace) -> int:
    from netbench import api, campaign, console

    conclusion = api.start(
        campaign.load(options.campaign, options.sets, quick=options.quick), options.results
    )
    say(console.summary(conclusion.path))
    say(str(conclusion.path))
    return conclusion.exit_code


def resume(options: argparse.Namespace) -> int:
    from netbench import api, console

    conclusion = api.resume(options.result)
    say(console.summary(options.result))
    say(str(options.result))
    return conclusion.exit_code if conclusion else 0


def report(options: argparse.Namespace) -> int:
    from netbench import api, console

    made = api.build_report(options.result)
    for kind in ("html", "markdown", "csv"):
        if getattr(options, kind):
            api.write_report(made, kind, getattr(options, kind))
    if options.csv and made.label:
        print(
            f"netbench: {options.csv}: {made.label}; the columns of a CSV have no place to say so",
            file=sys.stderr,
        )
    say(console.render(made, "json" if options.json else "text"))
    return 0


def compare(options: argparse.Namespace) -> int:
    from netbench import api, console

    chosen = {
        name: getattr(options, name)
        for name in ("factor", "baseline", "margin", "metrics", "gates")
    }
    found = api.compare(options.result, options.other, **chosen)
    _say_json(found.to_json()) if options.json else say(console.compared_text(found))
    return 1 if found.fell else 0


def list_names(options: argparse.Namespace) -> int:
    from netbench import api, console

    table = api.listing(options.what, options.results)
    if options.json:
        _say_json(table)
    else:
        say(console.listing_text(options.what, table))
    return 0


def transfer(options: argparse.Namespace) -> int:
    from netbench import api, console

    found = api.transfer(*options.words, results=options.results)
    say(
        console.render(found.report, "json")
        if options.json
        else console.transfer_text(found.report)
    )
    if options.results:
        with suppress(OSError):
            print(found.path, file=sys.stderr)
    return 0


def meter(options: argparse.Namespace) -> int:
    from netbench import api, console

    reading = api.meter(options.name, options.seconds)
    if options.json:
        _say_json(reading)
    else:
        say(console.meter_text(reading))
    return 0


def restore(options: argparse.Namespace) -> int:
    from netbench import api

    say("\n".join(api.restore(options.result)) or "nothing is left to put back")
    return 0


def lab(options: argparse.Namespace) -> int:
    from netbench import api, console

    if options.action == "up":
        made = api.lab_up(
            options.kind,
            options.hosts,
            options.rate,
            options.delay,
            options.name,
            kernels=options.kernels,
            disk=options.disk,
        )
        say(json.dumps(made.block(), indent=1) if options.json else made.yaml())
    else:
        found = api.lab_down(options.name) if options.action == "down" else api.lab_status()
        _say_json(found) if options.json else say(console.lab_text(found))
    return 0


def schema(options: argparse.Namespace) -> int:
    from netbench import campaign

    _say_json(campaign.json_schema())
    return 0


def not_built(options: argparse.Namespace) -> int:
    raise NotBuiltYet(f"`{options.name}` is not built yet")
