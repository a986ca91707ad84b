"""`init`: campaigns to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path

from netbench import api
from netbench.base.errors import RequestError
from netbench.base.names import PROGRAM, shell_word
from netbench.cli.output import say, say_json, table
from netbench.cli.verb import add_json


def run(options: argparse.Namespace) -> int:
    from netbench import templates

    if options.template is None:
        if options.output is not None:
            raise RequestError("init: --output needs a template; `init` alone lists them")
        known = templates.templates()
        if options.json:
            say_json([{"name": one.name, "about": one.about} for one in known])
        else:
            say(table([(one.name, one.about) for one in known]))
        return 0
    file = options.output or Path(f"{options.template}.yaml")
    api.init(options.template, file)
    next_step = f"{PROGRAM} check {shell_word(file)}"
    if options.json:
        say_json({"file": str(file), "next": next_step})
    else:
        say(f"{file} is written; name your hosts in it, then `{next_step}`")
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument(
        "template", nargs="?", metavar="NAME", help="the template; left out: all are listed"
    )
    parser.add_argument(
        "--output", type=Path, metavar="F", help="the campaign (default: NAME.yaml here)"
    )
