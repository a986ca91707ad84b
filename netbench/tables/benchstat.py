"""Runs in the Go project's benchmark format, which benchstat reads: one line a run.

Source: golang.org/design/14313-benchmark-format, and its metadata of units (golang/go#43744).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from netbench.base.control_characters import escape_controls
from netbench.read.cells import metric_order
from netbench.read.result import Result, counting
from netbench.report.label import label_of
from netbench.tables.table_frames import kernels, result_id

_BETTER = {1: "higher", -1: "lower"}


def lines(results: Sequence[Result]) -> Iterator[str]:
    """Of each result what it is, and a line for each run that counts:
    `BenchmarkRun/FACTOR=LEVEL/... 1 VALUE METRIC:UNIT ...`. Controls are left out.

    What a result is are comments: benchstat compares runs of two files under equal keys only. Where
    there are several results, `result` is a key, for `benchstat -col result`.
    """
    seen: dict[str, None] = {}
    for result in results:
        for metric in metric_order(result.metrics):
            unit, better = _unit(result, metric), result.describe(metric).better
            if unit not in seen:
                seen[unit] = None
                yield f"Unit {unit} assume=nothing" + (
                    f" better={_BETTER[better]}" if better else ""
                )
    for result in results:
        campaign, identity = result_id(result)
        yield ""
        about = f"{campaign}/{identity}, Linux {kernels(result)}"
        yield f"# {_line('; '.join(filter(None, (about, label_of(result)))))}"
        if len(results) > 1:
            yield f"result: {_line(identity)}"
        yield from _runs(result)


def _runs(result: Result) -> Iterator[str]:
    several = len(result.plan.pairs) > 1
    names = {
        cell.cell: "".join(f"/{_word(k)}={_word(v)}" for k, v in cell.factors.items())
        for cell in result.cells
    }
    metrics = metric_order(result.metrics)
    frame = counting(result.runs)
    columns = [frame[each].tolist() for each in metrics]
    for cell, pair, *values in zip(frame["cell"], frame["pair"], *columns, strict=True):
        measured = " ".join(
            f"{value!r} {_unit(result, metric)}"
            for metric, value in zip(metrics, values, strict=True)
            if not math.isnan(value)
        )
        if measured:
            place = f"/pair={_word(pair)}" if several else ""
            yield f"BenchmarkRun{names[cell]}{place} 1 {measured}"


def _unit(result: Result, metric: str) -> str:
    """A unit of that format, by which its values are told apart: `throughput:Gb/s`."""
    unit = result.describe(metric).unit
    return _word(f"{metric}:{unit}" if unit else metric)


def _word(text: str) -> str:
    return re.sub(r"\s+", "_", escape_controls(text).strip()) or "_"


def _line(text: str) -> str:
    return " ".join(escape_controls(text).split())
