"""`watch`: a campaign while it runs, by a process of its own that only reads."""

from __future__ import annotations

import argparse
import sys

from netbench.base.terminal import is_drawable
from netbench.cli.output import say, say_json
from netbench.cli.verb import Verb, add_result


def _run(options: argparse.Namespace) -> int:
    try:
        _watch(options)
    except KeyboardInterrupt:  # the campaign goes on whatever becomes of this process
        return 0
    return 0


def _watch(options: argparse.Namespace) -> None:
    from netbench.live import follow
    from netbench.live.screen import render

    if options.json:
        say_json(follow.snapshot(options.result).to_json())
    elif is_drawable(sys.stdout):
        say(follow.follow(options.result))
    else:
        import shutil

        view = follow.snapshot(options.result)
        lines = render(view, max(40, shutil.get_terminal_size().columns))
        say("\n".join([*lines, "", follow.ending(options.result, view.state)]))


VERB = Verb(
    "watch",
    "watch a campaign while it runs: reads its result, changes nothing",
    _run,
    add_result,
    to_json=True,
)
