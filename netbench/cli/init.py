"""`init`: campaigns to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path

from netbench import api, starter
from netbench.base.errors import RequestError
from netbench.base.names import shell_word
from netbench.cli.output import say, say_json, table
from netbench.cli.verb import add_json


def run(options: argparse.Namespace) -> int:
    if options.template is None:
        _refuse_without_template(options)
        known = starter.templates()
        if options.json:
            say_json([{"name": one.name, "about": one.about} for one in known])
        else:
            say(table([(one.name, one.about) for one in known]))
        return 0
    hosts = options.hosts.split(",") if options.hosts is not None else []
    file = options.output or Path(f"{options.template}.yaml")
    api.init(options.template, file, hosts, options.ssh_config)
    next_step = f"python -m netbench check {shell_word(file)}"
    if options.json:
        say_json({"file": str(file), "next": next_step})
    else:
        edit = "" if hosts else "name your hosts in it, then "
        say(f"{file} is written; {edit}`{next_step}`")
    return 0


def _refuse_without_template(options: argparse.Namespace) -> None:
    for name in ("hosts", "output", "ssh_config"):
        if getattr(options, name) is not None:
            raise RequestError(
                f"init: --{name.replace('_', '-')} needs a template; `init` alone lists them"
            )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument(
        "template", nargs="?", metavar="NAME", help="the template; left out: all are listed"
    )
    parser.add_argument(
        "--hosts",
        metavar="A,B",
        help="SSH destinations, or local, the sender first: fills in their addresses, and comments"
        " out what cannot run there",
    )
    parser.add_argument(
        "--ssh-config", metavar="F", help="in place of ~/.ssh/config, also for the campaign"
    )
    parser.add_argument(
        "--output", type=Path, metavar="F", help="the campaign (default: NAME.yaml here)"
    )
