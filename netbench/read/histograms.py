"""The histograms of requests that a result keeps beside its records."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from netbench.base.json_lines import JsonLines
from netbench.read.cells import Rows
from netbench.read.result import Result, counting
from netbench.result.codec import flawed
from netbench.stats.histogram import BITS, BUCKETS, bounds
from netbench.stats.histogram import Histogram as Histogram  # others name it through this file

MOST = 1 << 42  # ns, above what buckets tell apart
NO_HISTOGRAM = ValueError, TypeError, KeyError, OverflowError, RecursionError
SECONDS = (3 << 20) // 64  # of a run: the engine keeps 3 MiB of them, each of 64 bytes or more
TICKS = 5  # shares that are told for each halving of what is above them, as HdrHistogram does


def latencies(result: Result, rows: Rows) -> tuple[Histogram | None, int]:
    """Latencies in ns of the requests of some runs, by their rows of those that count; and how many
    runs have a latency and no histogram. Mean and longest of a run are those of its record.
    Errors: StoreError for a file that is damaged.
    """
    if not {"latency", "max"} <= {*result.metrics}:
        return None, 0
    runs = counting(result.runs).iloc[rows][["run", "latency", "max"]].dropna().to_numpy(float)
    samples = result.path / "samples"
    each_run = [_of_run(samples / f"{run:06.0f}.jsonl", mean, most) for run, mean, most in runs]
    parts = [each for each in each_run if each]
    return Histogram.merged(parts) if parts else None, len(each_run) - len(parts)


def by_second(result: Result, rows: Rows) -> list[list[float]]:
    """Of each second of the windows of some runs the p99 in µs of what was answered in it, of each
    run in which it has one; nothing where windows are no longer than that. Errors: StoreError.
    """
    quantiles: list[list[float]] = []
    for run in counting(result.runs)["run"].iloc[rows]:
        file = result.path / "samples" / f"{run:06.0f}.jsonl"
        lines = JsonLines(file, 2) if file.exists() else ()
        seconds = (numbered for numbered in lines if b'"second"' in numbered[1])
        for second, (number, line) in enumerate(islice(seconds, SECONDS)):
            try:
                counts = json.loads(line)["requests"]
                buckets = sorted(zip(counts["bucket"], counts["count"], strict=True))
                whole = sum(counts["count"]), 0, MOST  # the longest of a second is not told
                p99 = Histogram.of([*whole, *chain.from_iterable(buckets)]).quantile(0.99)
            except NO_HISTOGRAM as error:
                raise flawed(f"{file}:{number}", "a histogram", error) from error
            quantiles += [[] for _ in range(second + 1 - len(quantiles))]
            quantiles[second] += [] if p99 is None else [p99 / 1e3]
        if not quantiles:  # nor has any other
            break
    return quantiles


def _of_run(file: Path, mean: float, most: float) -> Histogram | None:
    """The histogram of a run in its file of samples, with its mean and longest in µs."""
    for number, line in JsonLines(file, 2) if file.exists() else ():
        if b'"latency_bucket"' in line:
            try:
                requests = json.loads(line)["requests"]
                counts = [int(count) for count in requests["latency_count"]]
                both = zip(map(int, requests["latency_bucket"]), counts, strict=True)
                whole = sum(counts), round(mean * sum(counts) * 1e3), round(most * 1e3)
                return Histogram.of([*whole, *(each for pair in both for each in pair)])
            except NO_HISTOGRAM as error:
                raise flawed(f"{file}:{number}", "a histogram", error) from error
    return None


def percentile_lines(times: Histogram) -> Iterator[str]:
    """The percentile output of HdrHistogram (AbstractHistogram.outputPercentileDistribution), in
    µs: the engine's buckets are those of one with two significant digits. The time of a share is
    the longest of its bucket, at most the longest there is.
    """
    yield f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}\n"
    share, below = 0.0, 0
    for bucket, number in times.buckets:
        below += number
        value = min(sum(bounds(bucket)) - 0.5, times.most) / 1e3
        while below >= share * times.count and share < 1 - 2**-50:
            yield f"{value:12.3f} {share:14.12f} {below:10d} {1 / (1 - share):14.2f}"
            if below == times.count:
                break
            share += 1 / (TICKS * 2 ** (math.floor(-math.log2(1 - share)) + 1))
    mean, most = times.sum / times.count / 1e3, times.most / 1e3
    yield f"{most:12.3f} {1:14.12f} {below:10d}"
    yield f"#[Mean    = {mean:12.3f}, StdDeviation   = {times.deviation() / 1e3:12.3f}]"
    yield f"#[Max     = {most:12.3f}, Total count    = {below:12d}]"
    yield f"#[Buckets = {(BUCKETS >> BITS) - 1:12d}, SubBuckets     = {2 << BITS:12d}]"
