"""What a campaign's runs cost more while `watch` looks on, attached and killed again and again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

import netbench
from netbench.base.units import count
from netbench.stats.intervals import mean_interval
from tests.support.running import Running, stored_records
from tools.bench.table import Part, Row

KILLS = 50
FROM, TO = 0.2, 4.0  # seconds until each is killed, at random: while it starts, or looks on
APART = 1.0
BUDGET = 0.05
SEED = 1
CAMPAIGN = """netbench: 1
name: watched
verify: off
transfer: {duration: 200ms, warmup: 10ms, congestion: cubic, pin: apart}
repeat: {min: 100000, max: 100000}
"""
HOW = (
    "One local campaign of runs of 200 ms (write and read, one stream, each side on a CPU of its"
    " own, warm-up 10 ms), beside which `python -m netbench watch` is started on a terminal and"
    f" killed {KILLS} times, after {FROM:g} to {TO:g} s, {APART:g} s apart. Runs whose period lay"
    " wholly in such a stretch are compared with those of the stretch without it that follows: a"
    " ratio of means for each, and Student's t over their logarithms. The period of a run is the"
    " time from the opening of its window to that of the next run's, so it holds all that the"
    " campaign does for it."
)
NOTES = (
    (
        "Both sides, the campaign and `watch` share this machine, which is the worst case: here its"
        " start, most of a second of CPU, takes what the streams leave of two CPUs. Where hosts are"
        " other machines than the controller's, it touches none of them."
    ),
)


def measure() -> Part:
    """The ratios of period, throughput and CPU cost."""
    with tempfile.TemporaryDirectory() as name:
        with _campaign(Path(name)) as result:
            before = _files(result)
            times = _attach_and_kill(result)
            strangers = sorted(_files(result) - before)
        runs = netbench.load(result).runs.query("status == 'ok'")
        records = stored_records(result)
    opened = np.array([r["sender"]["time_ns"][0] for r in records if r["status"] == "ok"])
    first = np.searchsorted(times, opened, side="right")  # odd: watched; 0: before the first
    stretch = np.where(first[:-1] == first[1:], first[:-1], 0)
    values = {
        "period of a run, ms": np.diff(opened) / 1e6,
        "throughput, Gb/s": runs["throughput"].to_numpy()[:-1],
        "service demand of the sender's process, µs/KB": runs["sender_demand"].to_numpy()[:-1],
    }
    rows = [_row(what, each, stretch) for what, each in values.items()]
    rows.append(Row("files that a watcher made", f"{len(strangers)}", "", "", "0", not strangers))
    return Part("Cost of being watched", HOW, tuple(rows), NOTES)


def _attach_and_kill(result: Path) -> list[int]:
    """When each watcher was started and killed, in turn, by CLOCK_MONOTONIC, in ns."""
    chance, times = random.Random(SEED), [time.monotonic_ns()]
    for _ in range(KILLS):
        with _watcher(result):
            time.sleep(chance.uniform(FROM, TO))
        times.append(time.monotonic_ns())
        time.sleep(APART)
        times.append(time.monotonic_ns())
    return times


@contextmanager
def _campaign(folder: Path) -> Iterator[Path]:
    """The result of a campaign that runs meanwhile."""
    campaign = Running(folder, folder / "r", CAMPAIGN, stdout=subprocess.DEVNULL)
    try:
        campaign.await_records(1)
        yield campaign.folder
    finally:
        campaign.process.send_signal(signal.SIGINT)
        campaign.end()


@contextmanager
def _watcher(result: Path) -> Iterator[None]:
    """`watch` on a terminal, killed at the end."""
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 80))

    def drain() -> None:
        with suppress(OSError):
            while os.read(master, 65536):
                pass

    reader = threading.Thread(target=drain)
    reader.start()
    argv = [sys.executable, "-m", "netbench", "watch", str(result)]
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(
        argv, env=environment, stdin=slave, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        try:
            yield
        finally:
            process.kill()
    reader.join()
    os.close(master)


def _files(result: Path) -> set[str]:
    """Files of a result but those of its runs."""
    paths = (path.relative_to(result) for path in result.rglob("*"))
    return {str(path) for path in paths if path.parts[0] != "samples"}


def _row(what: str, values: Any, stretch: Any) -> Row:
    pairs = [(values[stretch == at], values[stretch == at + 1]) for at in range(1, 2 * KILLS, 2)]
    used = [(ours.mean(), bare.mean()) for ours, bare in pairs if len(ours) and len(bare)]
    ratio = mean_interval([float(np.log(ours / bare)) for ours, bare in used], 0.95)
    ours, bare = (float(np.mean(each)) for each in zip(*used, strict=True))
    change, low, high = (np.exp(x) - 1 for x in (ratio.mean, ratio.low, ratio.high))
    held = what.startswith("period")
    return Row(
        what,
        f"{ours:.4g} watched",
        f"{bare:.4g} not watched",
        f"{change:+.1%} ({low:+.1%} to {high:+.1%}), {count(ratio.n, 'pair')}",
        f"within ±{BUDGET:.0%}" if held else "",
        bool(low > -BUDGET and high < BUDGET) if held else None,
    )
