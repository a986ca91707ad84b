"""Reference of the campaign file, from its schema."""

from __future__ import annotations

from itertools import groupby

from tools.docs.campaign_keys import KeyReference, campaign_keys
from tools.docs.markdown import code, join, prose, table

HEAD = ("Key", "Type", "Default", "Example", "What it is")


def keys() -> str:
    """A table of the keys at the top of the file, then one for each of them with keys below it."""
    every = campaign_keys()
    top = [key for key in every if _parent(key.path) == ""]
    below = groupby(
        (key for key in every if _parent(key.path)), key=lambda key: key.path.partition(".")[0]
    )
    parts = (
        join(f"## {group.removesuffix('[]')}", table(HEAD, map(_row, mine)))
        for group, mine in below
    )
    return join("## Keys at the top", table(HEAD, map(_row, top)), *parts)


def _parent(path: str) -> str:
    return path.rpartition(".")[0]


def _row(key: KeyReference) -> tuple[str, ...]:
    default = "required" if key.required else code(key.default)
    return code(key.path), key.type, default, code(key.example), prose(key.about)
