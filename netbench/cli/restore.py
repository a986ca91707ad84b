"""`restore`: put back what dead campaigns left changed."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path

from netbench import api
from netbench.base.errors import HostError, NetbenchError, RequestError
from netbench.cli.output import say
from netbench.cli.verb import add_result
from netbench.result import campaign_state

BRIEF = 400  # of a line of the list: programs and features may be long


def run(options: argparse.Namespace) -> int:
    if options.result:
        if options.all:
            raise RequestError("restore: --all is of all campaigns; leave the result out")
        say("\n".join(api.restore(options.result)) or "nothing is left to put back")
        return 0
    left, failed = api.left_changed(), []
    for identity, (about, *lines) in left.items():
        brief = [textwrap.shorten(line, BRIEF, placeholder=" ...") for line in lines]
        say("\n  ".join([f"{identity} {about}", *brief]))
        if options.all:
            try:
                say("\n".join(api.restore(Path(identity))))
            except (NetbenchError, OSError) as error:  # the others can still be put back
                failed.append(str(error))
    if failed:
        folder = campaign_state.state_folder() / "campaigns" / "ID"
        end = f"a campaign whose hosts are no more is forgotten by removing {folder}"
        raise HostError("\n".join([*failed, end]))
    if not left:
        say("nothing is left to put back")
    elif not options.all:
        say("`restore ID` puts back what one campaign left changed, `restore --all` all of it")
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_result(parser, "R|ID", optional=True)
    parser.add_argument(
        "--all", action="store_true", help="put back what any campaign of this account left changed"
    )
