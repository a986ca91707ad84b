"""Interval samples of a result folder as a frame."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd


def samples_of(folder: Path) -> pd.DataFrame:
    """Samples of all runs that have some: run side seconds (from that side's first sample) stream,
    then GROUP.COUNTER as the kernel gave it.
    """
    files = sorted((folder / "samples").glob("[0-9]*.jsonl"))
    rows = [row for file in files for row in _rows(file)]
    frame = pd.DataFrame(rows, columns=None if rows else ["run", "side", "ns", "stream"])
    first = frame.groupby(["run", "side"])["ns"].transform("min")
    frame.insert(2, "seconds", (frame["ns"] - first) / 1e9)
    return frame.drop(columns="ns")


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    """The rows of one run's file, one a sample, side and stream; lines of the window's edges are
    not samples.
    """
    with file.open(encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            groups = {
                name: counters for name, counters in line.items() if isinstance(counters, dict)
            }
            streams = max(
                (
                    len(v)
                    for counters in groups.values()
                    for v in counters.values()
                    if isinstance(v, list)
                ),
                default=1,
            )
            for stream in range(0 if "edge" in line else streams):
                row = {
                    "run": int(file.stem),
                    "side": line["side"],
                    "ns": line["ns"],
                    "stream": stream,
                }
                for group, counters in groups.items():
                    row |= {
                        f"{group}.{name}": v[stream] if isinstance(v, list) else v
                        for name, v in counters.items()
                    }
                yield row
