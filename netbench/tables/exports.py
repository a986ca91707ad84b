"""Results in the forms that other programs read.

benchstat: the Go project's benchmark format, a line a run (golang.org/design/14313-benchmark-format
and its metadata of units, golang/go#43744). ministat(1): a file for each cell and metric, a value a
line. Apache Otava: CSV, a row a result and a column a metric and cell (its docs/CSV.md).
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from datetime import UTC

from netbench.base.control_characters import escape_controls, spreadsheet_word
from netbench.base.errors import RequestError
from netbench.base.units import count
from netbench.read.cells import Rows, metric_order, rows_by_cell
from netbench.read.histograms import Histogram, latencies, percentile_lines
from netbench.read.offered import Place
from netbench.read.result import Result, counting
from netbench.report.junit import one_line
from netbench.report.label import label_of
from netbench.report.source import Source
from netbench.tables.table_frames import alike, kernels, result_id

_BETTER = {1: " better=higher", -1: " better=lower", 0: ""}
LONGEST = 200  # characters of a file's name
FAMILY = "netbench_request_latency_seconds"
HEAD = ("time", "commit", "campaign", "result")


def benchstat(results: Sequence[Result]) -> Iterator[str]:
    """Lines: of each result what it is, and a line for each run that counts:
    `BenchmarkRun/FACTOR=LEVEL/... 1 VALUE METRIC:UNIT ...`. Controls are left out.

    What a result is are comments: benchstat compares runs of two files under equal keys only. Where
    there are several results, `result` is a key, for `benchstat -col result`.
    """
    better: dict[str, int] = {}
    for result in results:
        for metric in metric_order(result.metrics):
            better.setdefault(_unit(result, metric), result.describe(metric).better)
    yield from (f"Unit {unit} assume=nothing{_BETTER[which]}" for unit, which in better.items())
    for result in results:
        campaign, identity = result_id(result)
        yield ""
        yield _comment("; ", f"{campaign}/{identity}, Linux {kernels(result)}", label_of(result))
        if len(results) > 1:
            yield f"result: {one_line(identity)}"
        counted, factors = counting(result.runs), {each.cell: each.factors for each in result.cells}
        metrics = metric_order(result.metrics)
        units = [_unit(result, metric) for metric in metrics]
        columns = [counted[metric].tolist() for metric in metrics]
        for cell, pair, *values in zip(counted["cell"], counted["pair"], *columns, strict=True):
            place = {**factors[cell], **({"pair": pair} if len(result.plan.pairs) > 1 else {})}
            words = "".join(f"/{_word(name)}={_word(level)}" for name, level in place.items())
            both = zip(values, units, strict=True)
            if measured := " ".join(f"{v!r} {unit}" for v, unit in both if not math.isnan(v)):
                yield f"BenchmarkRun{words} 1 {measured}"


def _unit(result: Result, metric: str) -> str:
    """A unit of that format, by which its values are told apart: `throughput:Gb/s`."""
    unit = result.describe(metric).unit
    return _word(f"{metric}:{unit}" if unit else metric)


def _word(text: str) -> str:
    """A text without blanks, another one for each."""
    return re.sub(r"[\s%]", lambda found: f"%{ord(found[0]):02x}", escape_controls(text)) or "_"


def _comment(joined: str, *words: str) -> str:
    return f"# {one_line(joined.join(filter(None, words)))}"


def ministat(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Files: `METRIC/FACTOR=LEVEL,....txt`, which begins with the result's name where there are
    several, and what it holds: the values of the runs that count, in order of execution.
    """
    for result, (cell, pair), rows, own in _placed(results):
        counted = counting(result.runs)
        for metric in metric_order(result.metrics):
            if values := counted[metric].iloc[rows].dropna().tolist():
                note = "; ".join(filter(None, (result.describe(metric).unit, label_of(result))))
                whose = "/".join(result_id(result))
                about = _comment(" ", whose, cell, pair, metric, f"({note})")
                yield f"{_file(metric)}/{own}.txt", "\n".join([about, *map(repr, values), ""])


def _placed(results: Sequence[Result]) -> Iterator[tuple[Result, Place, Rows, str]]:
    """Each cell of results with runs that count: where it is, the rows of these, and its own name
    for a file, which begins with the result's where there are several.
    """
    taken: set[str] = set()
    for result in results:
        whose = result_id(result)
        factors = {each.cell: each.factors for each in result.cells}
        for (cell, pair), rows in rows_by_cell(counting(result.runs)).items():
            words = [*whose] if len(results) > 1 else []
            words += [f"{factor}={level}" for factor, level in factors[cell].items()]
            words += [pair] if len(result.plan.pairs) > 1 else []
            name, others = _file(",".join(words) or whose[0]), 1
            while (own := f"{name}-{others}" if others > 1 else name) in taken:
                others += 1
            taken.add(own)
            yield result, (cell, pair), rows, own


def hgrm(results: Sequence[Result], notes: list[str]) -> Iterator[tuple[str, str]]:
    """Files: `FACTOR=LEVEL,....hgrm`, and what each holds: the latencies in µs of all requests of a
    cell's runs that count. `notes` gets what is left out. Errors: RequestError without any.
    """
    for result, place, own, times in _of_requests(results, notes):
        whose = "/".join(result_id(result))
        about = _comment(" ", whose, *place, "(latency in µs, all runs together)", label_of(result))
        yield f"{own}.hgrm", "\n".join([*percentile_lines(times), about, ""])


def openmetrics(results: Sequence[Result], notes: list[str]) -> Iterator[str]:
    """Lines: of each cell the latencies in seconds of all requests of its runs that count, as a
    histogram of buckets that are eighths of a power of two, the same in all cells; with the start
    of the result's last run. `notes`, errors: as hgrm.
    """
    rows = _of_requests(results, notes)
    ends = sorted({end for *_, times in rows for end in times.eighths()})
    yield f"# TYPE {FAMILY} histogram\n# UNIT {FAMILY} seconds"
    yield f"# HELP {FAMILY} time from the start of a request to its whole response"
    for result, (cell, pair), _, times in rows:
        factors = next(each.factors for each in result.cells if each.cell == cell)
        words = {re.sub(r"\W", "_", factor, flags=re.ASCII): v for factor, v in factors.items()}
        words |= dict(zip(("campaign", "result"), result_id(result), strict=True))
        words |= {"cell": cell, "pair": pair, "label": label_of(result)}
        texts = {key: escape_controls(word) for key, word in words.items() if word}
        labels = ",".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in texts.items())
        at = f"{result.runs['started'].max().timestamp():.3f}"
        counted, below = times.eighths(), 0
        for end in ends:
            below += counted[end]
            yield f'{FAMILY}_bucket{{{labels},le="{end / 1e9:.9g}"}} {below} {at}'
        yield f'{FAMILY}_bucket{{{labels},le="+Inf"}} {times.count} {at}'
        yield f"{FAMILY}_count{{{labels}}} {times.count} {at}"
        yield f"{FAMILY}_sum{{{labels}}} {times.sum / 1e9!r} {at}"
    yield "# EOF"


def _of_requests(
    results: Sequence[Result], notes: list[str]
) -> list[tuple[Result, Place, str, Histogram]]:
    """Each cell with histograms, and its own name for a file."""
    timed, lacking = [], 0
    for result, place, rows, own in _placed(results):
        times, without = latencies(result, rows)
        lacking += without
        timed += [(result, place, own, times)] if times else []
    if lacking:
        notes.append(f"{count(lacking, 'run')} left out, without a histogram in samples/")
    if not timed:
        raise RequestError("export: the results have no requests with histograms in samples/")
    return timed


def _file(text: str) -> str:
    """A text as part of a file's name."""
    return re.sub(r"[^\w.,=+-]+", "_", text)[:LONGEST].lstrip(".") or "_"


def otava(sources: Sequence[Source]) -> tuple[str, list[str]]:
    """CSV, rows in order of their first run: time (of that run, UTC) commit (kernel releases)
    campaign result, then `METRIC[CELL]`, a mean. Every row needs every metric: also the columns
    that are left out, since not every result has them. Errors: RequestError where nothing is left.
    """
    rows = []
    for source in (each for each in alike(sources)[0] if len(each.result.runs)):
        result = source.result
        several = len(result.plan.pairs) > 1
        means = {
            f"{metric}[{cell.cell}{f' {cell.pair}' if several else ''}]": float(interval.mean)
            for cell in source.cells
            for metric, interval in cell.intervals.items()
        }
        began = result.runs["started"].min().to_pydatetime().astimezone(UTC)
        rows.append((began, (kernels(result), *result_id(result)), means))
    rows.sort(key=lambda row: row[0])
    columns = list(dict.fromkeys(name for _, _, means in rows for name in means))
    whole = [name for name in columns if all(name in means for _, _, means in rows)]
    if not whole:
        raise RequestError(
            "export: the results have no cell and metric in common; Otava needs all of a row's"
            " metrics in every row"
        )
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(spreadsheet_word, (*HEAD, *whole)))
    for began, names, means in rows:
        stamp = f"{began:%Y-%m-%d %H:%M:%S +0000}"
        values = (repr(means[name]) for name in whole)
        writer.writerow([*map(spreadsheet_word, (stamp, *names)), *values])
    return out.getvalue(), [name for name in columns if name not in whole]
