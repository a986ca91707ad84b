"""`resume`: a campaign, from where it stopped."""

from __future__ import annotations

import argparse

from netbench import api
from netbench.cli.run import say_summary
from netbench.cli.verb import add_plain, add_result


def run(options: argparse.Namespace) -> int:
    conclusion = api.resume(options.result, options.plain)
    say_summary(options.result)
    return conclusion.exit_code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_result(parser)
    add_plain(parser)
