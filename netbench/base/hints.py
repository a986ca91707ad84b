"""What words of iperf3, netperf, flent, hyperfine and fio mean here: the tables of hints.txt."""

from __future__ import annotations

from configparser import RawConfigParser
from functools import cache
from pathlib import Path


@cache
def hints(table: str) -> dict[str, str]:
    """What does what each word of a table asks for."""
    found = RawConfigParser(delimiters="=")
    found.optionxform = str  # type: ignore[assignment, method-assign]
    found.read_string(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"))
    return {word: does for words, does in found[table].items() for word in words.split()}


def synonyms(table: str) -> dict[str, list[str]]:
    """The words of a table that mean the same, by the first of them."""
    groups: dict[str, list[str]] = {}
    for word, does in hints(table).items():
        groups.setdefault(does, []).append(word)
    return {group[0]: group for group in groups.values()}
