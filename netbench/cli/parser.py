"""The parser of the command line: every verb, and where it is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from typing import IO

from netbench import __version__
from netbench.base.control_characters import escape_controls
from netbench.base.errors import RequestError
from netbench.base.hints import hints
from netbench.base.names import PRINTED, PROGRAM, WRITTEN, shell_word
from netbench.cli import foreign
from netbench.cli.output import say

VERBS = {
    "demo": ("cli.demo", "a campaign of half a minute on this machine, and its report"),
    "init": ("cli.init", "a commented campaign to begin with; lists them, fills in hosts"),
    "check": ("cli.check", "whether a campaign can run, and what will disturb it; sets nothing"),
    "plan": ("cli.plan", "cells, order and estimated time; touches no host"),
    "run": ("cli.run", "run a campaign; prints its summary and last the result folder"),
    "ab": ("cli.ab", "before and after a change, which is made and undone in every block"),
    "resume": ("cli.resume", "continue a campaign where it stopped, in the same order"),
    "merge": ("fleet.merge_verb", "join the parts of a campaign; exit 1 where one is missing"),
    "watch": ("cli.watch", "watch a campaign while it runs: reads its result, changes nothing"),
    "report": ("cli.report", "the report of a result"),
    "compare": ("cli.compare", "two results, or the levels of a factor: intervals and verdicts"),
    "bundle": ("cli.bundle", "one archive of a result, with its reports; unpacked, it is a result"),
    "export": ("cli.export", "results as Parquet, CSV, or for other programs"),
    "query": ("cli.query", "SQL over the tables of results"),
    "list": ("cli.choices", "methods, meters, settings, tools, facts, metrics, cautions, results"),
    "transfer": ("cli.transfer", "one cell without a campaign file, as one would use iperf3"),
    "meter": ("cli.meter", "one meter alone on this machine: what each CPU did"),
    "restore": ("cli.restore", "put back what a dead campaign left changed; alone: list it"),
    "lab": ("lab.lab_verb", "hosts made on this machine, as root: up KIND, down, status"),
    "schema": ("cli.schema", "JSON Schema of the campaign file, for editors"),
    "judge": ("kernels.judge_verb", "build, boot and measure two revisions of a kernel; a letter"),
    "bisect": ("kernels.bisect_verb", "the commit that made a kernel worse, each step measured"),
}
"""Of each verb its module, which has `add_arguments` and `run`, and a line of help."""


VERSION = f"netbench {__version__} (formats: results {WRITTEN}, printed {PRINTED})"


class _Parser(argparse.ArgumentParser):
    """argparse of Python 3.11.2 (Debian 12) fails on streams that are closed; this one does not."""

    def _print_message(self, message: str, file: IO[str] | None = None) -> None:  # type: ignore[override]
        if file is sys.stdout:
            say(message)
        else:
            with suppress(OSError):
                print(escape_controls(message), end="", file=sys.stderr, flush=True)


def run(argv: list[str]) -> int:
    """Parse the command line and run its verb; without one, and for `help VERB`, print the help.
    Errors: NetbenchError; SystemExit of argparse.
    """
    if argv[:1] == ["help"]:
        argv = [*argv[1:2], "--help"]
    top = build(*argv[:1])
    if not argv:
        top.print_help(sys.stderr)
        return RequestError.exit_code
    if argv[0].startswith("-") and argv[0] not in ("-h", "--help", "-V", "--version"):
        flag = argv[0].partition("=")[0]
        hint = f"`{PROGRAM} help` lists the verbs"
        if flag in hints("iperf3") or flag in hints("netperf"):
            hint = f"as iperf3 and netperf do: `{PROGRAM} transfer {argv[0]} ...`"
        elif does := foreign.option("", flag):
            hint = f"{flag}: {does}"
        raise RequestError(f"the verb comes first; {hint}")
    if argv[0] not in VERBS and not argv[0].startswith("-"):
        near = get_close_matches(argv[0], VERBS, 1)
        hint = f"did you mean {near[0]}?" if near else f"`{PROGRAM} help` lists the verbs"
        raise RequestError(f"there is no verb {argv[0]!r}; {hint}")
    if argv[0] == "transfer" and foreign.has_flags(argv[1:]):
        raise RequestError(foreign.answer(argv[1:]))
    options, more = top.parse_known_args(argv)
    lists = ("words", "paths", "others")
    words = next((getattr(options, name) for name in lists if hasattr(options, name)), None)
    if more:  # argparse ends a list of words at the first option
        flags = [word for word in more if word.startswith("-")]
        hint = f"`{PROGRAM} help {argv[0]}` lists what there is"
        if flags:
            known = {flag: foreign.option(argv[0], flag.partition("=")[0]) for flag in flags}
            known_flags = [f"{flag}: {does}" for flag, does in known.items() if does]
            message = "; ".join([f"{argv[0]} has no option {' '.join(flags)}", *known_flags, hint])
            raise RequestError(message)
        if words is None:
            hint = foreign.option(argv[0], "word") or hint
            raise RequestError(f"{argv[0]}: {shell_word(more[0])} is one word too many; {hint}")
        words += more
    import_module("netbench.cli.verb").find_results(options)  # --help needs nothing of it
    verb: Callable[[argparse.Namespace], int] = options.verb
    return verb(options)


def build(*chosen: str, program: str = PROGRAM) -> argparse.ArgumentParser:
    """The parser with all verbs, and the options of chosen ones, whose modules alone are loaded."""
    top = _Parser(
        prog=program,
        description="Benchmark campaigns of network transfers.",
        epilog=f"`{program} VERB --help` describes a verb.",
    )
    top.add_argument("-V", "--version", action="version", version=VERSION)
    parsers = top.add_subparsers(title="verbs", required=True, metavar="VERB")
    for name, (place, about) in VERBS.items():
        described = f"{about[0].upper()}{about[1:]}."
        parser = parsers.add_parser(name, help=about, description=described, allow_abbrev=False)
        if name in chosen:
            module = import_module(f"netbench.{place}")
            parser.set_defaults(verb=module.run)
            module.add_arguments(parser)
    return top
