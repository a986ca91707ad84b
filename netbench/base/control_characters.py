"""Control characters of text that came from outside, such as banners and records: a terminal would
obey them, and bidirectional overrides show a line as another one.
"""

from __future__ import annotations

import os
import re

_CONTROL = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # not tab, newline
    "\ud800-\udfff\ufffe\uffff]"  # which XML cannot have
)
_FORMULA = re.compile(r"\s*[=+\-@]")


def escape_controls(text: str) -> str:
    r"""The text with control characters as `\u001b`, as in JSON, but for tabs and newlines."""
    if text.isprintable():  # which no control character is
        return text
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def in_utf8(text: str) -> str:
    r"""A text with names of files, with what of these is no UTF-8 as `\xff`."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def spreadsheet_word(value: object) -> object:
    """A word as a spreadsheet shows it: `'` before what is a formula, and no number, there."""
    if not isinstance(value, str):
        return value
    text = escape_controls(value)
    if not _FORMULA.match(text):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
