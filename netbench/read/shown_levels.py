"""Levels as they are shown: the path of a file stands for the mapping that names it, so that
titles and names of cells stay short, and cells of tools have no methods, which tools do not use.
Records, CSV and JSON have levels as they were written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_FILE = re.compile(r"\{file: ?(/[^,;{}]*)(?:[,;] ?overwrite: ?\w+)?\}")
NO_TOOL = "none"
_TOOL = re.compile(r"(?:^|,)tool=(?!none\b)")
_METHOD = re.compile(r"(?:(?<=,)|^)(?:send|receive)=[^,]*,")


def used(levels: Mapping[str, str]) -> dict[str, str]:
    """The levels of a cell, without methods where a tool moves the bytes."""
    unused = ("send", "receive") if levels.get("tool", NO_TOOL) != NO_TOOL else ()
    return {name: level for name, level in levels.items() if name not in unused}


def shown(text: str) -> str:
    """A level, or the id of a cell: `{file: /srv/out, overwrite: on}` becomes `/srv/out`,
    `send=readwrite,tool=iperf3` becomes `tool=iperf3`.
    """
    return _FILE.sub(r"\1", _METHOD.sub("", text) if _TOOL.search(text) else text)
