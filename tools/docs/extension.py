"""Sphinx extension: `<!-- generated: NAME -->` in a page is replaced by what NAME generates."""

from __future__ import annotations

import re

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.typing import ExtensionMetadata

PLACE = re.compile(r"^<!-- generated: ([a-z-]+) -->$", re.MULTILINE)


def fill(app: Sphinx, page: str, text: list[str]) -> None:
    """Fill in the generated parts of one page. Errors: ExtensionError for an unknown name."""
    from tools.docs.reference import GENERATED

    def generate(place: re.Match[str]) -> str:
        if place[1] not in GENERATED:
            raise ExtensionError(f"{page}: nothing generates {place[1]!r}; see tools/docs")
        return GENERATED[place[1]]()

    text[0] = PLACE.sub(generate, text[0])


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension."""
    app.connect("source-read", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
