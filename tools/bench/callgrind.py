"""User instructions of one thread of a program, counted by valgrind's callgrind, which runs it as
it is. Another load on the machine changes next to nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

OPTIONS = (
    "--tool=callgrind",
    "--cache-sim=no",
    "--separate-threads=yes",
    "--compress-strings=no",
    "--compress-pos=no",
)


@dataclass(frozen=True)
class Count:
    """Of one job: user instructions by function of the thread that moved the data, chunks, calls
    beyond those that each chunk needs (after short ones, waits).
    """

    functions: Counter[str]
    chunks: int
    again: int


@dataclass(frozen=True)
class Cost:
    """Instructions a chunk by function, from two jobs; the calls made again by which they differ, a
    chunk.
    """

    functions: dict[str, float]
    again: float

    @property
    def total(self) -> float:
        return sum(self.functions.values())

    @staticmethod
    def of(less: Count, more: Count) -> Cost:
        chunks = more.chunks - less.chunks
        if chunks <= 0:
            raise ValueError(
                f"the longer job moved {more.chunks} chunks, the shorter {less.chunks}: nothing to"
                " divide by"
            )
        names = sorted(more.functions | less.functions)
        return Cost(
            {n: (more.functions[n] - less.functions[n]) / chunks for n in names},
            (more.again - less.again) / chunks,
        )


def command(folder: Path, argv: Sequence[str]) -> tuple[str, ...]:
    """The command that counts a program's instructions, by thread, into files of a folder."""
    return (
        "valgrind",
        "-q",
        *OPTIONS,
        f"--callgrind-out-file={folder}/counted",
        f"--log-file={folder}/log",
        *argv,
    )


def by_function(text: str) -> Counter[str]:
    """Own instructions of each function, from callgrind's output without compression. Errors:
    ValueError if they miss its total.

    Format: valgrind's manual, "Callgrind Format Specification": a line of cost after `calls=` is
    what was spent in the callee.
    """
    found: Counter[str] = Counter()
    function, inclusive, total = "", False, -1
    for line in text.splitlines():
        if line.startswith("fn="):
            function = line[3:].partition("'")[0]
        elif line.startswith("calls="):
            inclusive = True
        elif line[:1].isdigit():
            if not inclusive:
                found[function] += int(line.split()[1])
            inclusive = False
        elif line.startswith("totals:"):
            total = int(line.split()[1])
    if found.total() != total:
        raise ValueError(
            f"callgrind counted {total} instructions, its functions have {found.total()}"
        )
    return found


def counted(folder: Path, thread: int, without: Collection[str] = ()) -> Counter[str]:
    """What callgrind counted of one thread, its first being 1, outside of these functions. Errors:
    OSError without such a thread, ValueError.
    """
    found = by_function((folder / f"counted-{thread:02}").read_text())
    return Counter({name: number for name, number in found.items() if name not in without})
