"""`list`: what there is to choose from, what a report may name, and results."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from netbench.base.units import count, rounded_size
from netbench.cli.output import fold, say, say_json, table
from netbench.cli.verb import add_json, add_results

KINDS = "methods meters settings tools facts metrics cautions results".split()


def run(options: argparse.Namespace) -> int:
    from netbench import listing

    if options.what == "results":
        rows = listing.results(options.results)
    else:
        rows = getattr(listing, options.what)()
    if options.json:
        say_json(rows)
    else:
        say(_text(options.what, rows))
    return 0


def _text(kind: str, rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "no results here; --results DIR names their folder" if kind == "results" else "none"
    if kind == "results":
        return "\n".join(line for row in rows for line in _result(row))
    if kind == "settings":
        return table([(row["name"], f"{_about(row)} Levels: {row['levels']}.") for row in rows])
    if kind == "methods":
        return table([(row["kind"], row["name"], _about(row)) for row in rows])
    return table([(row["name"], _about(row)) for row in rows])


def _result(row: Mapping[str, Any]) -> list[str]:
    """A result: what it is, where it is, what it found."""
    runs = [] if row["runs"] is None else [count(row["runs"], "run")]
    kernel = [f"kernel {row['kernel']}"] if row["kernel"] else []
    facts = [row["date"], row["status"], *runs, rounded_size(row["size"]), *kernel]
    facts_line = ", ".join(fact for fact in facts if fact)
    return [
        fold(f"{row['name']}: {facts_line}"),
        f"  {' '.join(row['folder'].splitlines())}",
        fold(f"  {row['finding'] or row['why']}"),
    ]


def _about(row: Mapping[str, Any]) -> str:
    return f"{row['about']}; CANNOT RUN HERE: {row['why_not']}" if row["why_not"] else row["about"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument("what", choices=KINDS, metavar="WHAT", help=", ".join(KINDS))
    add_results(parser, "where result folders are")
