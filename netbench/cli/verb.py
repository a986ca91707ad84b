"""The arguments that several verbs share."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from netbench import api

if TYPE_CHECKING:
    from netbench.model import Campaign

NAMES = "a result folder, a campaign's NAME, or latest (the newest below DIR; latest~1: before it)"


def add_json(parser: argparse.ArgumentParser) -> None:
    """Whether the answer is for programs."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_plain(parser: argparse.ArgumentParser) -> None:
    """How progress is shown."""
    parser.add_argument(
        "--plain", action="store_true", help="lines instead of a view, on a terminal too"
    )


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


def find_results(options: argparse.Namespace) -> None:
    """Put paths in place of names of results below `--results`. Errors: RequestError."""
    below = getattr(options, "results", None) or api.RESULTS
    if word := getattr(options, "result", None):
        options.result = api.find_result(word, below)
    for name in ("paths", "others"):
        if words := getattr(options, name, None):
            last = len(words) - getattr(options, "writes", 0)
            paths = [api.find_result(word, below) for word in words[:last]]
            setattr(options, name, [*paths, *map(Path, words[last:])])


def add_results(parser: argparse.ArgumentParser, help: str) -> None:
    """Where result folders are."""
    parser.add_argument(
        "--results",
        type=Path,
        default=api.RESULTS,
        metavar="DIR",
        help=f"{help} (default: {api.RESULTS})",
    )


def add_result(parser: argparse.ArgumentParser, metavar: str = "R", optional: bool = False) -> None:
    """A result folder."""
    parser.add_argument(
        "result", type=Path, nargs="?" if optional else None, metavar=metavar, help=NAMES
    )
    add_results(parser, "where result folders are")


def add_paths(parser: argparse.ArgumentParser, metavar: str = "R", more: str = "") -> None:
    """Results, one or more, also behind other options. `more`: what the last is, to be written."""
    about = f"{NAMES}; {more}" if more else NAMES
    parser.add_argument("paths", type=Path, nargs="+", metavar=metavar, help=about)
    parser.set_defaults(writes=1 if more else 0)  # the last path is where to
    add_results(parser, "where result folders are")


def add_redact(parser: argparse.ArgumentParser) -> None:
    """Whether a result is read without what says whose it is."""
    parser.add_argument(
        "--redact",
        action="store_true",
        help="hide names of hosts and users, addresses, and the kernel's command line",
    )


@contextmanager
def read_result(path: Path, redact: bool) -> Iterator[Path]:
    """A result folder to read, in place of it a redacted copy that is removed at the end. Errors:
    ReportError; StoreError; PlaceError.
    """
    if not redact:
        yield path
        return
    import tempfile

    from netbench.result.redaction import redacted

    with tempfile.TemporaryDirectory(prefix="netbench-") as copies:
        yield redacted(path, Path(copies))
