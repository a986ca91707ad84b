"""A verb of the command line, and the arguments that several verbs share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netbench.model import Campaign

RESULTS = Path("results")
LATEST = "latest"


@dataclass(frozen=True)
class Verb:
    """`run` gets the parsed options and returns the exit status. `about` is one line of help;
    `to_json`: the verb has the option --json.
    """

    name: str
    about: str
    run: Callable[[argparse.Namespace], int]
    add_arguments: Callable[[argparse.ArgumentParser], None]
    to_json: bool = False


def add_campaign(parser: argparse.ArgumentParser) -> None:
    """A campaign file and the changes to it."""
    parser.add_argument("campaign", type=Path, metavar="C", help="the campaign file")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        dest="sets",
        help="change a key, such as transfer.chunk=8K (may be repeated)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="3 runs of 1 s and a warm-up of 200 ms for each cell"
    )


def load_campaign(options: argparse.Namespace) -> Campaign:
    """The campaign that `add_campaign`'s arguments name. Errors: CampaignError, OSError."""
    from netbench import campaign

    return campaign.load(options.campaign, options.sets, quick=options.quick)


def result_folder(word: str) -> Path:
    """A result folder that was named; `latest` is the newest below `results`. Errors:
    ArgumentTypeError.
    """
    if word != LATEST or Path(word).exists():
        return Path(word)
    from netbench.listing import folders

    newest = next(iter(folders(RESULTS)), None)
    if newest is None:
        raise argparse.ArgumentTypeError(f"no results below {RESULTS}; name a result folder")
    return newest


def add_result(parser: argparse.ArgumentParser) -> None:
    """A result folder."""
    parser.add_argument(
        "result",
        type=result_folder,
        metavar="R",
        help=f"a result folder; {LATEST}: the newest below {RESULTS}",
    )
