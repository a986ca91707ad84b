"""Levels as they are shown: the path of a file stands for the mapping that names it, so that
titles and names of cells stay short. Records, CSV and JSON have levels as they were written.
"""

from __future__ import annotations

import re

_FILE = re.compile(r"\{file: ?(/[^,;{}]*)(?:[,;] ?overwrite: ?\w+)?\}")


def shown(text: str) -> str:
    """A level, or the id of a cell: `{file: /srv/out, overwrite: on}` becomes `/srv/out`."""
    return _FILE.sub(r"\1", text)
