"""`schema`: the JSON Schema of the campaign file."""

from __future__ import annotations

import argparse

from netbench.cli.output import say_json
from netbench.cli.verb import Verb


def _run(options: argparse.Namespace) -> int:
    from netbench import campaign

    say_json(campaign.json_schema())
    return 0


VERB = Verb("schema", "JSON Schema of the campaign file, for editors", _run, lambda parser: None)
