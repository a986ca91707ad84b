"""`watch`: a campaign while it runs, by a process of its own that only reads."""

from __future__ import annotations

import argparse
import sys

from netbench.base.terminal import is_drawable
from netbench.cli.output import say
from netbench.cli.verb import add_result


def run(options: argparse.Namespace) -> int:
    try:
        _watch(options)
    except KeyboardInterrupt:  # the campaign goes on whatever becomes of this process
        return 0
    return 0


def _watch(options: argparse.Namespace) -> None:
    from netbench.live import watched
    from netbench.live.screen import render

    if is_drawable(sys.stdout):
        say(watched.follow(options.result))
    else:
        import shutil

        view = watched.snapshot(options.result)
        lines = render(view, max(40, shutil.get_terminal_size().columns))
        say("\n".join([*lines, "", watched.ending(options.result, view.state)]))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_result(parser)
