"""What words of iperf3, netperf, flent, hyperfine and fio mean here: the tables of hints.txt."""

from __future__ import annotations

import re
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


def key_for(flag: str, value: str) -> str:
    """The key of `transfer:` that a flag `--name` of fio's is, with its value in netbench's units;
    "" where there is none.
    """
    keys, word = hints("keys of transfer"), flag.removeprefix("--").replace("-", "_")
    if does := keys.get(f"{word}:{value}"):
        return does
    key = keys.get(word, "").replace("KEY", word)
    if key in ("duration", "warmup", "sample") and value.isdigit():
        value = f"{value}s"
    if key == "rate":
        value = "80Mb/s"  # others count bytes a second
    return key and f"{key}={re.sub('[kmg]$', lambda unit: unit[0].upper(), value)}"


def synonyms(table: str) -> dict[str, list[str]]:
    """The words of a table that mean the same, by the first of them."""
    groups: dict[str, list[str]] = {}
    for word, does in hints(table).items():
        groups.setdefault(does, []).append(word)
    return {group[0]: group for group in groups.values()}
