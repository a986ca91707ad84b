"""How long the functions of a profile's samples are looked up."""

from __future__ import annotations

import time

from netbench.run.sampled import fold, parse
from netbench.run.worker_symbols import FOLDER, find_symbol
from tools.bench.table import Part, Row

SAMPLES, FRAMES = 100_000, 20_000
BUDGET = 2.0  # s
FIRST, CODE = 0x3000, 160_000  # an offset where the worker has code, and how much
HOW = (
    "A helper's report of {samples} samples, each a stack of its own of a function of the kernel"
    " and of one of {frames} places in the worker's file, read, resolved and folded; CPU time, the"
    " median and the largest of {repeats}."
)


def report_of(samples: int, frames: int) -> str:
    """A helper's report as text."""
    worker = FOLDER / "_native.abi3.so"
    kernel, step = frames // 4, CODE // frames
    lines = ["event cpu-clock", *(f"f u {FIRST + step * i:x} {worker}" for i in range(frames))]
    lines += [f"f k function_{i}" for i in range(kernel)]
    lines.append("p 1 a")
    lines += [f"s 1 1 0 {i % frames} {frames + i % kernel}" for i in range(samples)]
    return "\n".join(lines)


def _seconds(text: str) -> float:
    begun = time.process_time()
    fold(parse(text, "here"), {}, lambda path, at: find_symbol("x86_64", path, at))
    return time.process_time() - begun


def measure(repeats: int = 10) -> Part:
    """One row."""
    text = report_of(SAMPLES, FRAMES)
    times = sorted(_seconds(text) for _ in range(repeats))
    median = times[repeats // 2]
    row = Row(
        f"{SAMPLES:,} samples",
        f"{median:.2f} s",
        "",
        f"{times[0]:.2f} to {times[-1]:.2f} s, n = {repeats}",
        f"at most {BUDGET:g} s",
        median <= BUDGET,
    )
    how = HOW.format(samples=f"{SAMPLES:,}", frames=f"{FRAMES:,}", repeats=repeats)
    return Part("Symbols of samples", how, (row,))
