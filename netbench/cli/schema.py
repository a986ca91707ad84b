"""`schema`: the JSON Schema of the campaign file."""

from __future__ import annotations

import argparse

from netbench.cli.output import say_json


def run(options: argparse.Namespace) -> int:
    from netbench import campaign

    say_json(campaign.json_schema())
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""
