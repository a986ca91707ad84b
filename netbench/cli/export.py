"""`export`: a verb that is documented and not built yet."""

from __future__ import annotations

import argparse

from netbench.cli.verb import Verb
from netbench.errors import NotBuiltYet


def _run(options: argparse.Namespace) -> int:
    raise NotBuiltYet("`export` is not built yet; `report --csv F` writes a table of the cells")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*")


VERB = Verb("export", "write a result in another format (not built yet)", _run, _add_arguments)
