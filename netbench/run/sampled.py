"""What a helper sampled, as its text says (native/src/profile/profile.h), and as folded
stacks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from netbench.base.errors import ProtocolError
from netbench.engine.binding import SAME
from netbench.result.profile_files import KERNEL_MARK

NAME_LENGTH = 200  # of a function or a process that a host names
ODD = re.compile("[^ -:<-~]")  # what is no printable ASCII, or ends a frame
SymbolFinder = Callable[[str, int], str]
"""The function at an offset in a mapped file, or ""."""


class Frame(NamedTuple):
    """A function of the kernel by its name, or a place in a file that a process has mapped."""

    name: str
    kernel: bool
    offset: int = 0


class Stack(NamedTuple):
    """`process` and `frames` are places in the lists of Sampled; the outermost frame is first."""

    samples: int
    events: int
    process: int
    frames: tuple[int, ...]


@dataclass
class Sampled:
    """A helper's report. `processes`: pid and name."""

    head: dict[str, str] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    processes: list[tuple[int, str]] = field(default_factory=list)
    stacks: list[Stack] = field(default_factory=list)

    def number(self, name: str) -> int:
        """A number of the head. Errors: ValueError."""
        return int(self.head.get(name, ""))


def parse(text: str, host: str) -> Sampled:
    """Errors: ProtocolError for a text that is no report."""
    sampled = Sampled()
    for line in text.splitlines():
        try:
            _take_line(sampled, line)
        except (ValueError, IndexError) as error:
            what = f"{host}: the helper's profile has a line that means nothing: {line[:80]!r}"
            raise ProtocolError(f"{what}{SAME}") from error
    return sampled


def _take_line(sampled: Sampled, line: str) -> None:
    kind, _, rest = line.partition(" ")
    if kind == "f":
        whose, _, what = rest.partition(" ")
        offset, _, path = what.partition(" ")
        kernel = whose == "k"
        sampled.frames.append(Frame(what, True) if kernel else Frame(path, False, int(offset, 16)))
    elif kind == "p":
        pid, _, name = rest.partition(" ")
        sampled.processes.append((int(pid), name))
    elif kind == "s":
        samples, events, process, *frames = map(int, rest.split())
        if min(samples, events, process, *frames) < 0:
            raise ValueError(line)
        if process >= len(sampled.processes) or max(frames, default=0) >= len(sampled.frames):
            raise IndexError(line)
        sampled.stacks.append(Stack(samples, events, process, tuple(frames)))
    elif kind and rest:
        sampled.head[kind] = rest
    else:
        raise ValueError(line)


def fold(
    sampled: Sampled, labels: Mapping[int, str], find: SymbolFinder
) -> dict[tuple[str, ...], int]:
    """The stacks by the names of their frames, below the name of their process or its `labels` (by
    pid): ticks, or cycles where those were counted.
    """
    names = [_frame_name(frame, find) for frame in sampled.frames]
    processes = [labels.get(pid, _plain(name)) for pid, name in sampled.processes]
    cycles = sampled.head.get("event") == "cycles"
    folded: dict[tuple[str, ...], int] = {}
    for stack in sampled.stacks:
        frames = (names[i] for i in stack.frames)
        key = processes[stack.process], *_merged(frames)
        folded[key] = folded.get(key, 0) + (stack.events if cycles else stack.samples)
    return folded


def _merged(names: Iterable[str]) -> tuple[str, ...]:
    """Names without those of files that repeat: what was called within a library is not known."""
    kept: list[str] = []
    for name in names:
        if not (kept and name[:1] == "[" and kept[-1] == name):
            kept.append(name)
    return tuple(kept)


def _frame_name(frame: Frame, find: SymbolFinder) -> str:
    if frame.kernel:
        return _plain(frame.name) + KERNEL_MARK
    found = find(frame.name, frame.offset)
    return _plain(found or f"[{PurePosixPath(frame.name).name.strip('[]') or frame.name}]")


def _plain(name: str) -> str:
    """A name of a host's that stays one frame of one line."""
    return ODD.sub("?", name[:NAME_LENGTH]).strip() or "?"
