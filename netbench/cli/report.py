"""`report`: the report of a result, as text or JSON and as files."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from netbench import api
from netbench.base.errors import RequestError
from netbench.cli.output import columns, say, tell
from netbench.cli.verb import add_json, add_redact, add_result, read_result

if TYPE_CHECKING:
    from netbench.report.build import Report

FILES = ("html", "markdown", "csv", "junit")


def run(options: argparse.Namespace) -> int:
    if options.index or options.result is None:
        return _index(options)
    forms = [form for form in ("letter", "ktap", "json") if getattr(options, form)]
    if len(forms) > 1:
        names = " and ".join(f"--{form}" for form in forms)
        raise RequestError(f"{names} are forms of one report; give one of them")
    form = forms[0] if forms else "text" if options.full or options.cells else "first"
    with read_result(options.result, options.redact) as result:
        report = api.build_report(result, cells=options.cells)
        files = {kind: getattr(options, kind) for kind in FILES if getattr(options, kind)}
        form = next((kind for kind, file in files.items() if str(file) == "-"), form)
        text = render(report, form)
        api.write_report(report, {kind: file for kind, file in files.items() if kind != form})
    if options.csv and report.label:
        tell(f"netbench: {options.csv}: {report.label}; a CSV has no column that says so")
    say(text)
    return 0


def _index(options: argparse.Namespace) -> int:
    """Write the page of all results below a folder."""
    others = ("markdown", "csv", "junit", "letter", "ktap", "json", "redact")
    given = [f"--{name}" for name in others if getattr(options, name)]
    if not options.index:
        raise RequestError("report: name a result folder, or the folder of many with --index DIR")
    if options.result or given:
        what = " and ".join([*(["a result"] if options.result else []), *given])
        raise RequestError(f"report: --index is of all results of a folder; leave out {what}")
    file = options.html or options.index / "index.html"
    api.write_index(options.index, file)
    say(str(file))
    return 0


def render(report: Report, kind: str, **more: str) -> str:
    """A report as `first` (its first screen), `text`, `json`, `letter`, `ktap` or a file's form."""
    form = import_module(f"netbench.report.{kind}")
    return str(form.render(report, columns(), **more) if kind == "first" else form.render(report))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    add_result(parser, optional=True)
    for kind in FILES:
        parser.add_argument(
            f"--{kind}",
            type=Path,
            metavar="F",
            help=f"also write it as {kind} to F; -: print that instead",
        )
    parser.add_argument(
        "--index",
        type=Path,
        metavar="DIR",
        help="write a page of all results below DIR instead, as DIR/index.html or to --html F",
    )
    parser.add_argument("--full", action="store_true", help="print all, not the first screen alone")
    parser.add_argument("--cells", action="store_true", help="with tables of cells, and all hosts")
    parser.add_argument("--letter", action="store_true", help="print text for a cover letter")
    parser.add_argument(
        "--ktap", action="store_true", help="print KTAP instead: not ok is worse, SKIP inconclusive"
    )
    add_redact(parser)
