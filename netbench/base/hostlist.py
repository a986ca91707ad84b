"""Names of many hosts in one word: Slurm's notation, `node[01-64,70]`.

Source: scontrol(1), "show hostnames".
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence

NAMES_MAX = 10_000
NOTATION = re.compile(r"(?<![\w.-])[\w.-]*\[[\w,-]+\](?:[\w.-]|\[[\w,-]+\])*", re.ASCII)
"""A word of a text that stands for several names."""
_ITEM = re.compile(r"[^,\[\]\s]*(?:\[[^\[\]]*\][^,\[\]\s]*)*")
_BRACKETS = re.compile(r"\[([^\]]*)\]")
_SLURM = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)
_DIGITS = re.compile(r"(\d+)", re.ASCII)


def is_notation(word: str) -> bool:
    """Whether a word is no single name."""
    return "[" in word or "," in word


def expand(word: str, most: int = NAMES_MAX) -> list[str]:
    """The names that a word stands for, in its order; a name stands for itself. Errors: ValueError,
    which says what was expected, such as `most` names.
    """
    names: list[str] = []
    for item in map(str.strip, _items(word)):
        if not item or not _ITEM.fullmatch(item):
            raise ValueError(f"expected names such as node[01-64,70], got {word!r}")
        literal_or_list = enumerate(_BRACKETS.split(item))
        parts = [_values(part, word, most) if i % 2 else [part] for i, part in literal_or_list]
        if math.prod(map(len, parts)) > most - len(names):
            raise ValueError(f"expected at most {most} names, got more in {word!r}")
        names += map("".join, itertools.product(*parts))
    return names


def _items(word: str) -> Iterator[str]:
    """What stands between commas that are not within brackets."""
    parts: list[str] = []
    open_ones = 0
    for part in word.split(","):
        parts.append(part)
        open_ones += part.count("[") - part.count("]")
        if open_ones <= 0:
            yield ",".join(parts)
            parts, open_ones = [], 0
    if parts:
        yield ",".join(parts)


def _values(inner: str, word: str, most: int) -> Sequence[str]:
    """What a pair of brackets stands for. Errors: ValueError."""
    values: list[str] = []
    for part in inner.split(","):
        ends = _SLURM.fullmatch(part.strip())
        if not ends:
            raise ValueError(f"expected a range such as [01-64,70], got [{inner}] in {word!r}")
        low, high = ends[1], ends[2] or ends[1]
        if int(low) > int(high):
            raise ValueError(f"expected a range that goes up, got [{part.strip()}] in {word!r}")
        if int(high) - int(low) >= most - len(values):
            raise ValueError(f"expected at most {most} names, got more in [{inner}] in {word!r}")
        values += [f"{n:0{len(low)}d}" for n in range(int(low), int(high) + 1)]  # as wide as `low`
    return values


def order(name: str) -> tuple[tuple[str, int], ...]:
    """By what names are sorted in which numbers count: node9 before node10."""
    parts = _DIGITS.split(name)
    return tuple(zip(parts[::2], [*map(int, parts[1::2]), -1], strict=True))


def fold(names: Sequence[str]) -> str:
    """Names as one word, which stands for them in their order: `node[01-64,70],head`."""
    items: list[str] = []
    at = 0
    while at < len(names):
        split = _varying(names[at], names[at + 1]) if at + 1 < len(names) else None
        if split is None:
            items.append(names[at])
            at += 1
            continue
        head, tail = split
        numbers = list(
            itertools.takewhile(bool, (_number(name, head, tail) for name in names[at:]))
        )
        items.append(f"{head}[{','.join(_ranges(numbers))}]{tail}")
        at += len(numbers)
    return ",".join(items)


def _varying(name: str, other: str) -> tuple[str, str] | None:
    """What stands before and after the only number in which two names differ; else None."""
    parts, its = _DIGITS.split(name), _DIGITS.split(other)
    if len(parts) != len(its):
        return None
    differing = [i for i, (a, b) in enumerate(zip(parts, its, strict=True)) if a != b]
    if len(differing) != 1 or differing[0] % 2 == 0:
        return None
    return "".join(parts[: differing[0]]), "".join(parts[differing[0] + 1 :])


def _number(name: str, head: str, tail: str) -> str:
    """The number of a name between the same head and tail; "" where there is none."""
    inner = name[len(head) : len(name) - len(tail)]
    return inner if f"{head}{inner}{tail}" == name and _DIGITS.fullmatch(inner) else ""


def _ranges(numbers: Sequence[str]) -> Iterator[str]:
    low = high = numbers[0]
    for number in [*numbers[1:], ""]:
        if number and f"{int(high) + 1:0{len(low)}d}" == number:
            high = number
            continue
        yield low if low == high else f"{low}-{high}"
        low = high = number
