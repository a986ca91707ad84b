"""Functions of a profile by layer: layers.txt has the patterns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import cache
from pathlib import Path

from netbench.result.profile_files import KERNEL_MARK

IDLE, OTHER, UNMAPPED = "idle", "other", "unmapped"
MASKED = "irqs off"
"""What ran with interrupts off, as a clock samples it: where they are switched on again."""
ORDER = (
    "data copy",
    "TCP/IP",
    "device",
    "skb",
    "memory",
    "locks",
    "scheduling",
    MASKED,
    OTHER,
    UNMAPPED,
)
"""As reports show them; what is idle is no cost."""
FILE = Path(__file__).parent / "layers.txt"


@cache
def layer_of(frame: str, by_clock: bool = False) -> str:
    """The layer of a frame of a folded stack; what is not of the kernel is `other`. by_clock: of a
    sample that a clock's interrupt took.
    """
    if not frame.endswith(KERNEL_MARK):
        return OTHER
    name = frame.removesuffix(KERNEL_MARK)
    if by_clock and name.endswith(("_irqrestore", "_unlock_irq")):
        return MASKED
    return next((layer for layer, pattern in patterns() if pattern.match(name)), UNMAPPED)


@cache
def patterns() -> Sequence[tuple[str, re.Pattern[str]]]:
    """Layers with their patterns, in the file's order: one expression a layer."""
    layers: dict[str, list[str]] = {}
    layer = ""
    for line in FILE.read_text().splitlines():
        if line.startswith("["):
            layer = line.strip("[]")
        elif not line.startswith("#"):
            layers.setdefault(layer, []).extend(line.split())
    return [
        # A function of a module, or a part of it that the compiler has split off, is the function.
        (name, re.compile("|".join(f"(?:{_expression(word)})" for word in words)))
        for name, words in layers.items()
        if words
    ]


def _expression(word: str) -> str:
    plain = translate(word).removesuffix(r"\Z").removesuffix(r"\z")
    return rf"{plain}(?:\.(?:part|constprop|isra|cold)[.\d]*)*(?: \[.*\])?\Z"
