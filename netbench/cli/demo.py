"""`demo`: a campaign on this machine that needs nothing but netbench."""

from __future__ import annotations

import argparse

from netbench import api
from netbench.base.names import PROGRAM
from netbench.cli.output import say
from netbench.cli.run import say_summary
from netbench.cli.verb import add_plain, add_results


def run(options: argparse.Namespace) -> int:
    from netbench import campaign, templates

    asked = campaign.parse(templates.template("demo").text, "demo")
    conclusion = api.start(asked, options.results, plain=options.plain)
    page = conclusion.path / "report" / "index.html"
    api.write_report(api.build_report(conclusion.path), {"html": page})
    say_summary(conclusion.path)
    say(f"the report with plots: {page}\nthe campaign, to change: {PROGRAM} init demo")
    return conclusion.exit_code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser, "where result folders go")
    add_plain(parser)
