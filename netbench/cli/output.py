"""What verbs print: answers on standard output, and text folded for a terminal of 80 columns."""

from __future__ import annotations

import errno
import json
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from netbench.base.control_characters import escape_controls
from netbench.base.errors import StoreError
from netbench.base.terminal import WIDTH
from netbench.base.terminal import fold as fold

WIDEST = 200
GONE = (errno.EPIPE, errno.EIO)  # the reader of our output ended: a closed pipe or terminal


def columns() -> int:
    """How wide answers are: as the terminal, within bounds; 80 elsewhere."""
    there = shutil.get_terminal_size((WIDTH, 0)).columns if sys.stdout.isatty() else WIDTH
    return min(max(there, WIDTH), WIDEST)


def say(text: str) -> None:
    """Print an answer. A reader that has ended is no error. Errors: StoreError."""
    try:
        text = escape_controls(text)
        print(text, end="" if not text or text.endswith("\n") else "\n", flush=True)
    except OSError as error:
        if error.errno not in GONE:
            raise StoreError(
                f"cannot write to standard output: {error.strerror}; free some space, or redirect"
                " it elsewhere"
            ) from error


def say_json(value: Mapping[str, Any] | list[Any]) -> None:
    """Print an answer as JSON. Errors: StoreError."""
    say(json.dumps(value, indent=1, ensure_ascii=False))


def tell(*lines: str) -> None:
    """Print what is no answer on standard error."""
    with suppress(OSError):
        for line in lines:
            print(escape_controls(line), file=sys.stderr, flush=True)


def table(rows: Sequence[Sequence[str]], gap: str = "  ") -> str:
    """Columns as wide as their cells; the last one is folded into the remaining width."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    left = sum(widths) + len(gap) * len(widths)
    lines = []
    for row in rows:
        head = gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        folded = textwrap.wrap(row[-1], max(20, WIDTH - left)) or [""]
        lines += [f"{head}{gap}{folded[0]}".rstrip(), *(" " * left + more for more in folded[1:])]
    return "\n".join(lines)
