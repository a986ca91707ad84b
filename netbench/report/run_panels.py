"""What a page holds of each run: its record as it was stored, its metrics, and its throughput over
time. A page stays small: what does not fit is left out, and said so.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from netbench.base.errors import NetbenchError
from netbench.base.json_lines import JsonLines
from netbench.base.opening import read_inside
from netbench.read.cells import metric_order
from netbench.read.shown_levels import shown
from netbench.report.numbers import count, number
from netbench.report.places import Places
from netbench.report.source import Source

MOST_RUNS = 2000
"""A browser lays out a page of so many in about a second."""
PLAIN_BYTES = 600_000
"""Of records that stand on a page as they are, to be read without a script."""
PACKED_BYTES = 8_000_000
"""Of the records after them, which are packed to less than a sixth. With drawings and tables, 500
runs stay below 2 MB.
"""
SAMPLE_BYTES = 4_000_000
"""Of a run's file of samples: a larger one is not drawn."""
STEPS = 40  # intervals of a drawing of samples
_RUN = re.compile(rb'"run": ?(\d{1,18})[,}]')


@dataclass(frozen=True)
class RunPanel:
    """One run: `cell` is the id of its cell on the page ("": a control), `said` what else is known
    of it, `record` its line ("": it is line `packed` of RunPanels.packed), `values` of
    RunPanels.metrics, `samples` as in samples_in_words.
    """

    number: int
    cell: str
    levels: tuple[str, ...]
    block: int
    boot: int
    status: str
    started: str
    said: tuple[str, ...]
    record: str
    packed: int
    values: tuple[float, ...]
    samples: str


@dataclass(frozen=True)
class RunPanels:
    """The runs that a page holds, in order of execution, and what it leaves out, in words.
    `packed`: lines of records, compressed (RFC 1951), in base64.
    """

    keys: tuple[str, ...]
    metrics: tuple[str, ...]
    panels: Sequence[RunPanel]
    left_out: str = ""
    packed: str = ""

    @property
    def numbers(self) -> frozenset[int]:
        return frozenset(panel.number for panel in self.panels)

    def of_cell(self, name: str) -> list[int]:
        """The runs of a cell, by its id."""
        return [panel.number for panel in self.panels if panel.cell == name]


def run_panels(source: Source, places: Places) -> RunPanels:
    """The runs of a result for its page; none where its files are gone."""
    result = source.result
    keys, metrics = source.keys, tuple(metric_order(result.metrics))
    runs = (
        pd.concat([result.runs, result.control_runs]) if len(result.control_runs) else result.runs
    )
    file = result.path / "records.jsonl"
    try:
        chosen = _chosen(runs, file.stat().st_size)
        lines = _lines(file, set(chosen["run"].tolist()))
    except (OSError, NetbenchError):
        return RunPanels(keys, metrics, (), "Its records are gone, so no run has a panel here.")
    rows = [row for row in chosen.to_dict("records") if row["run"] in lines]
    texts = [lines[row["run"]] for row in rows]
    plain = sum(total <= PLAIN_BYTES for total in accumulate(map(len, texts)))
    panels = [
        _panel(source, places, row, texts[i] if i < plain else "", metrics, i - plain)
        for i, row in enumerate(rows)
    ]
    left_out = _left_out(len(panels), len(runs), file)
    return RunPanels(keys, metrics, panels, left_out, _packed(texts[plain:]))


def _packed(lines: Sequence[str]) -> str:
    if not lines:
        return ""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    packed = packer.compress("\n".join(lines).encode()) + packer.flush()
    return base64.b64encode(packed).decode()


def _chosen(runs: pd.DataFrame, size: int) -> pd.DataFrame:
    """The runs that a page has room for: first those that something is to be said of, at most a
    fifth, then the first ones of each cell.
    """
    room = max(1, min(MOST_RUNS, int((PLAIN_BYTES + PACKED_BYTES) * len(runs) / max(size, 1))))
    if len(runs) <= room:
        return runs.sort_values("run")
    doubtful = (runs["status"] != "ok") | (runs["engaged"] != "") | (runs["excluded"] != "")
    first = runs[doubtful].head(room // 5)
    rest = runs.drop(first.index)
    rank = rest.groupby(["cell", "pair"], observed=True).cumcount()
    rest = rest.loc[rank.sort_values(kind="stable").index].head(room - len(first))
    return pd.concat([first, rest]).sort_values("run")


def _lines(file: Path, wanted: set[int]) -> dict[int, str]:
    """The lines of some runs, as far as there is room for them. Errors: StoreError."""
    lines: dict[int, str] = {}
    room = PLAIN_BYTES + PACKED_BYTES
    for _, line in JsonLines(file):
        found = _RUN.search(line)
        if found is None or int(found[1]) not in wanted:
            continue
        room -= len(line)
        if room < 0 and lines:
            break
        record = json.loads(line)
        if record.get("run") == int(found[1]):
            lines[int(found[1])] = line.decode("utf-8", "replace").rstrip("\n")
        if len(lines) == len(wanted):
            break
    return lines


def _left_out(here: int, runs: int, file: Path) -> str:
    if here == runs:
        return ""
    return (
        f"{count(here, 'run')} of {runs} are on this page, the first ones of each cell and some"
        f" that are not ok; all are in {file.name}, one a line, and what is counted above is of"
        " all."
    )


def _panel(
    source: Source,
    places: Places,
    row: Mapping[Hashable, Any],
    line: str,
    metrics: Sequence[str],
    packed: int,
) -> RunPanel:
    cell, pair = str(row["cell"]), str(row["pair"])
    words = {"pair": pair, "cell": cell} | {
        name: row[name] for name in source.result.factors if isinstance(row[name], str)
    }
    said = [row["reason"], row["engaged"], row["excluded"], row["noise"]]
    return RunPanel(
        int(row["run"]),
        places.name(cell, pair),
        tuple(shown(str(words.get(name, ""))) for name in source.keys),
        int(row["block"]),
        int(row["boot"]),
        "control" if not places.name(cell, pair) and row["status"] == "ok" else row["status"],
        "" if pd.isna(row["started"]) else f"{row['started']:%Y-%m-%d %H:%M:%S} UTC",
        tuple(text for text in said if text),
        line,
        packed,
        tuple(float(row.get(name, "nan")) for name in metrics),
        samples_in_words(source.result.path / "samples" / f"{int(row['run']):06d}.jsonl"),
    )


def samples_in_words(file: Path) -> str:
    """Throughput of each side over time, as `sender 50,35.9 100,36.2;receiver ...`: milliseconds
    since the side's first sample, Gb/s since the sample before. "" where there is none, or none
    that can be read.
    """
    try:
        by_side: dict[str, list[tuple[int, int]]] = {"sender": [], "receiver": []}
        for line in read_inside(file, 2, SAMPLE_BYTES).splitlines():
            sample = json.loads(line)
            moved = sample.get("flow", {}).get("bytes")
            if "edge" not in sample and moved is not None:
                total = sum(moved) if isinstance(moved, list) else moved
                by_side[sample["side"]].append((int(sample["ns"]), int(total)))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return ""
    parts = {side: " ".join(_rates(samples)) for side, samples in by_side.items()}
    return ";".join(f"{side} {rates}" for side, rates in parts.items() if rates)


def _rates(samples: Sequence[tuple[int, int]]) -> Iterable[str]:
    """Mean throughput of at most STEPS intervals."""
    every = -(-(len(samples) - 1) // STEPS) or 1
    kept = samples[::every]
    for (before, was), (at, now) in pairwise(kept):
        if at > before and now >= was:
            milliseconds = (at - samples[0][0]) / 1e6
            yield f"{milliseconds:.0f},{number((now - was) * 8 / (at - before))}"
