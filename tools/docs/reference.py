"""What is generated of pages, below `<!-- generated: NAME -->`: `python -m tools.docs.reference`
writes it anew. tests/docs/test_site.py compares.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping

from tools.docs import (
    campaign_file,
    catalogues,
    command_line,
    man_page,
    python_api,
    record_types,
    schemas,
)
from tools.docs.__main__ import DOCS

GENERATED: Mapping[str, Callable[[], str]] = {
    "cautions": catalogues.cautions,
    "campaign-keys": campaign_file.keys,
    "command-line": command_line.verbs,
    "facts": catalogues.facts,
    "meters": catalogues.meters,
    "metrics": catalogues.metrics,
    "python-api": python_api.reference,
    "record-types": record_types.records,
    "journal-entries": record_types.journal_entries,
    "other-files": record_types.other_files,
    "receive-methods": catalogues.receive_methods,
    "send-methods": catalogues.send_methods,
    "settings": catalogues.settings,
}
WIDTH = 100
END = "<!-- end of what is generated -->"
PLACE = re.compile(rf"(?ms)^(<!-- generated: ([a-z-]+) -->)\n(?:.*?\n)??{END}$")


def written(page: str) -> str:
    """A page with what is generated of it. Errors: KeyError for an unknown name."""
    return PLACE.sub(lambda place: f"{place[1]}\n\n{_folded(GENERATED[place[2]]())}\n\n{END}", page)


def _folded(text: str) -> str:
    """With lines of at most 100 columns, but for tables and code."""
    lines, in_code = [], False
    for line in text.split("\n"):
        in_code ^= line.startswith("```")
        indent = "  " if line.startswith("- ") else ""
        is_prose = len(line) > WIDTH and not in_code and not line.startswith(("|", "#"))
        folder = textwrap.TextWrapper(
            WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        lines += folder.wrap(line) if is_prose else [line]
    return "\n".join(lines)


if __name__ == "__main__":
    for file in DOCS.rglob("*.md"):
        text = file.read_text(encoding="utf-8")
        if written(text) != text:
            file.write_text(written(text), encoding="utf-8")
    schemas.write()
    man_page.FILE.write_text(man_page.written(), encoding="utf-8")
