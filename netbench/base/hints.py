"""What words of iperf3, netperf, flent, hyperfine and fio mean here: the tables of hints.txt."""

from __future__ import annotations

from configparser import RawConfigParser
from functools import cache
from pathlib import Path


@cache
def hints(table: str) -> dict[str, str]:
    """What each word of a table means; a flag that has a value is there with ` N` too."""
    parser = RawConfigParser(delimiters="=")
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"))
    return {
        word + more: does
        for words, does in parser[table].items()
        for more in ("", " N")[: 1 + words.endswith(" N")]
        for word in words.split()
    }
