"""Reference of the command line, from its argparse parser: what `--help` prints."""

from __future__ import annotations

import argparse
import os

from netbench.cli import parser
from tools.docs.markdown import block, join


def verbs() -> str:
    """A part for each verb."""
    os.environ["COLUMNS"] = "80"  # argparse folds for the terminal that builds the site
    top = parser.build(*parser.VERBS)
    (choices,) = (a for a in top._actions if isinstance(a, argparse._SubParsersAction))
    return join(
        block(top.format_help()),
        *(join(f"## {name}", block(verb.format_help())) for name, verb in choices.choices.items()),
    )
