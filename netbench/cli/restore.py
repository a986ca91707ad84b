"""`restore`: put back what a dead campaign left changed."""

from __future__ import annotations

import argparse

from netbench.cli.output import say
from netbench.cli.verb import Verb, add_result


def _run(options: argparse.Namespace) -> int:
    from netbench import api

    say("\n".join(api.restore(options.result)) or "nothing is left to put back")
    return 0


VERB = Verb("restore", "put back what a dead campaign left changed", _run, add_result)
