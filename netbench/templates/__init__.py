"""The campaigns that `init` writes, with comments: a file each in this folder."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.resources import files
from typing import NamedTuple

import yaml

from netbench.base.errors import RequestError


class Template(NamedTuple):
    """A campaign by name, the question that it asks, and its text."""

    name: str
    about: str
    text: str


def templates() -> list[Template]:
    """All of them, in the order of their names."""
    known = []
    for file in sorted(files(__name__).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            text = file.read_text(encoding="utf-8")
            keys = yaml.safe_load(text)
            known.append(Template(keys["name"], keys["about"], text))
    return known


def template(name: str) -> Template:
    """The one of that name. Errors: RequestError."""
    known = {one.name: one for one in templates()}
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise RequestError(
            f"init: expected a template ({', '.join(known)}), got {name!r}{hint}; `init` lists what"
            " each asks"
        )
    return known[name]
