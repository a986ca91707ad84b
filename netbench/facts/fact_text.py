"""Parsers for texts of common shape: words, and lines of `key: value`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

PRIVATE = re.compile(
    r"(?i)machine.?id|pass|secret|token|\bkeys?\b|user|cred|auth|initiator|hostname|domain"
    "|^([ug]id|name)$"
)
"""Names of options whose values may identify a person or grant access."""


def words(text: str) -> str:
    """The text with single spaces."""
    return " ".join(text.split())


def first_line(text: str) -> str:
    """The first line that says something."""
    return words(next(filter(str.strip, text.splitlines()), ""))


def fields(text: str) -> dict[str, str]:
    """`key: value` lines; of equal keys the first."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            values.setdefault(key.strip(), words(value))
    return values


def field(*keys: str) -> Callable[[str], str]:
    """The value of the first of these keys that the text has. Errors: ValueError."""

    def parse(text: str) -> str:
        values = fields(text)
        for key in keys:
            if values.get(key):
                return values[key]
        raise ValueError(f"no {' or '.join(keys)} in it")

    return parse


def first_words(count: int) -> Callable[[str], str]:
    return lambda text: " ".join(text.split()[:count])


def choice(meanings: Mapping[str, str]) -> Callable[[str], str]:
    """Translates one of the kernel's words. Errors: ValueError for any other word."""

    def parse(text: str) -> str:
        word = words(text)
        if word not in meanings:
            raise ValueError(f"unexpected value {word[:20]!r}")
        return meanings[word]

    return parse


def not_zero(text: str) -> str:
    """`key value` of each line whose value is not 0."""
    changed = [f"{key} {value}" for key, value in fields(text).items() if value not in ("0", "off")]
    return ", ".join(changed) or "all 0"
