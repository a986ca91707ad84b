"""Text for a terminal: folded lines, and lines at its bottom that are drawn again in place, above
which stays what is printed otherwise. Nothing of the terminal is changed that a killed process
would leave behind.
"""

from __future__ import annotations

import os
import re
import textwrap
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from netbench.base.cancel import held_back

WIDTH = 80
SIZE = os.terminal_size((WIDTH, 24))
_ESCAPES = re.compile("\x1b\\[[0-9;]*m")
_CLEAR = "\x1b[J"  # from the cursor to the end of the screen


def fold(text: str, indent: str = "  ", width: int = WIDTH) -> str:
    """A text in lines of at most 80 columns, or `width`; words, such as paths, are not broken."""
    return textwrap.fill(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def is_drawable(out: TextIO) -> bool:
    """Whether a stream is a terminal that lines can be drawn again on."""
    try:
        return out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    except ValueError:  # it is closed
        return False


class Painter:
    """The last lines of a terminal. Any thread may use it; a terminal that is gone is no error.

    Lines must be free of control characters but for colours, and no wider than the terminal.
    """

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self._drawn: list[str] = []
        self._lock = threading.RLock()

    @property
    def size(self) -> os.terminal_size:
        """Columns and lines that there are now; 80 x 24 where the terminal says none."""
        try:
            size = os.get_terminal_size(self.out.fileno())
        except (OSError, ValueError):
            return SIZE
        return os.terminal_size((size.columns or SIZE.columns, size.lines or SIZE.lines))

    def draw(self, lines: Sequence[str]) -> None:
        """Put lines in place of those that are there, in one write. The cursor stays below them."""
        self._replace("", lines)

    def print(self, text: str) -> None:
        """Print lines that stay, above those that are drawn."""
        self._replace(f"{text}\n", self._drawn)

    def clear(self) -> None:
        """Remove the lines."""
        if self._drawn:
            self._replace("", ())

    def leave(self) -> None:
        """Let the lines stand: what is drawn next comes below."""
        self._drawn = []

    def _replace(self, text: str, lines: Sequence[str]) -> None:
        with held_back, self._lock:
            begin = f"{self._up()}{_CLEAR}" if self._drawn else ""
            body = "".join(f"{line}\n" for line in lines)
            self._write(f"{begin}{text}{body}")
            self._drawn = list(lines)

    def _up(self) -> str:
        """To where the lines begin; a terminal that is narrower by now has folded them."""
        columns, rows = self.size
        widths = (len(_ESCAPES.sub("", line)) for line in self._drawn)
        up = min(sum(max(1, -(-width // columns)) for width in widths), rows - 1)
        return f"\r\x1b[{up}A"

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self.out.write(text)
            self.out.flush()
