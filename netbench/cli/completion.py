"""What a shell completes: verbs and options by argcomplete, and names of results, keys of campaigns
and hosts of ssh(1) by what is below.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import argcomplete
from argcomplete.completers import FilesCompleter

from netbench import api
from netbench.cli import parser


def complete() -> None:
    """Answer the shell, which has set `_ARGCOMPLETE` and COMP_LINE; does not return."""
    top = parser.build(*os.environ["COMP_LINE"].split()[1:2])
    (verbs,) = (one for one in top._actions if isinstance(one, argparse._SubParsersAction))
    for action in (one for verb in verbs.choices.values() for one in verb._actions):
        if completer := _COMPLETERS.get(action.dest):
            action.completer = completer
    argcomplete.autocomplete(top, always_complete_options="long")


def _results(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """`latest`, and the names of campaigns that have results."""
    folder = getattr(parsed_args, "results", None) or api.RESULTS
    if not folder.is_dir():
        return []
    names = (one.name for one in folder.iterdir())
    return ["latest", *(name for name in names if name.isprintable())]  # else bytes of no text


def _keys(**_: object) -> list[str]:
    """Paths of --set."""
    return list(_paths())


def _words(**_: object) -> list[str]:
    """What `transfer` takes: keys of `transfer:`, and hosts."""
    return [path.removeprefix("transfer.") for path in _paths()] + _hosts()


def _templates(**_: object) -> list[str]:
    from netbench import templates

    return [one.name for one in templates.templates()]


def _paths() -> Iterator[str]:
    """Each key of a campaign file, those of a mapping by their path, with its `=`."""
    from netbench import campaign

    schema: Mapping[str, Any] = campaign.json_schema()
    for name, key in schema["properties"].items():
        inner = schema["$defs"].get(key.get("$ref", "").rpartition("/")[2], {}).get("properties")
        yield from (f"{name}.{each}=" for each in inner) if inner else [f"{name}="]


def _hosts() -> list[str]:
    """Names in the user's ssh_config(5), but for patterns."""
    try:
        text = Path("~/.ssh/config").expanduser().read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    lines = re.findall(r"(?im)^\s*Host[ \t=]+(.+)$", text)
    return [name for line in lines for name in line.split() if not re.search(r"[*?!]", name)]


_COMPLETERS: Mapping[str, Callable[..., Any]] = {
    "result": _results,
    "paths": _results,
    "others": _results,
    "sets": _keys,
    "words": _words,
    "template": _templates,
    "campaign": FilesCompleter(["yaml", "yml"]),
}
"""Of each argument, by its name in the parsers."""
