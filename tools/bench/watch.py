"""What a campaign's runs cost more while `watch` looks on, attached and killed again and again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import netbench
from netbench.base.units import count
from netbench.stats.intervals import mean_interval
from tools.bench.table import Part, Row

KILLS = 50
EARLY = 0.2, 1.5  # seconds until every other one is killed, at random: while it starts, or draws
LATE = 3.2  # until the others are
STARTED = 1.5  # after so long it only looks on
APART = 0.6
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
    f" killed {KILLS} times: every other one after {EARLY[0]:g} to {EARLY[1]:g} s, the others after"
    f" {LATE:g} s, {APART:g} s apart. Runs whose period lay wholly in such a stretch are compared"
    " with those of the stretch without it that follows: a ratio of means for each, and Student's t"
    " over their logarithms. The period of a run is the time from the opening of its window to that"
    f" of the next run's, so it holds all that the campaign does for it. From {STARTED:g} s on,"
    " `watch` has started, and only looks on."
)
NOTES = (
    (
        "Both sides, the campaign and `watch` share this machine, which is the worst case: here its"
        " start, most of a second of CPU, takes what the streams leave of two CPUs. Where hosts are"
        " other machines than the controller's, it touches none of them."
    ),
)
STARTING, LOOKING, BARE = range(3)
Stretch = tuple[int, int]
"""Begin and end by CLOCK_MONOTONIC, in ns. Of each kill there are three, in the order of STARTING,
LOOKING and BARE.
"""


def measure() -> Part:
    """The ratios of period, throughput and CPU cost."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _campaign(folder) as result:
            before = _files(result)
            stretches = _attach_and_kill(result)
            strangers = sorted(_files(result) - before)
        runs = netbench.load(result).runs.query("status == 'ok'")
        records = [json.loads(line) for line in (result / "records.jsonl").open()]
    opened = [r["sender"]["time_ns"][0] for r in records if r["status"] == "ok"]
    periods = np.diff(np.array(opened)) / 1e6
    kinds = np.array(_kinds(opened, stretches))
    throughput, demand = (
        runs[name].to_numpy()[: len(periods)] for name in ("throughput", "sender_demand")
    )
    at_all, looking = (STARTING, LOOKING), (LOOKING,)
    rows = (
        _row("period of a run, ms", periods, kinds, at_all, BUDGET),
        _row("the same, while it only looks on", periods, kinds, looking, BUDGET),
        _row("throughput, Gb/s", throughput, kinds, at_all, None),
        _row("the same, while it only looks on", throughput, kinds, looking, None),
        _row("service demand of the sender's process, µs/KB", demand, kinds, at_all, None),
        _row("the same, while it only looks on", demand, kinds, looking, None),
        Row("files that a watcher made", f"{len(strangers)}", "", "", "0", not strangers),
    )
    return Part("Cost of being watched", HOW, rows, NOTES)


@contextmanager
def _campaign(folder: Path) -> Iterator[Path]:
    """The result of a campaign that runs meanwhile. Errors: RuntimeError."""
    (folder / "c.yaml").write_text(CAMPAIGN)
    argv = [sys.executable, "-m", "netbench", "run", "c.yaml", "--results", "r"]
    streams: Mapping[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(argv, cwd=folder, text=True, **streams) as process:
        try:
            while not (found := [*folder.glob("r/watched/[!.]*/samples/000001.jsonl")]):
                if process.poll() is not None:
                    raise RuntimeError(f"the campaign ended: {process.communicate()[1]}")
                time.sleep(0.05)
            yield found[0].parent.parent
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()


def _attach_and_kill(result: Path) -> list[Stretch]:
    """Stretches with a watcher and without one, in turns."""
    chance, stretches = random.Random(SEED), list[Stretch]()
    for number in range(KILLS):
        begun = time.monotonic_ns()
        with _watcher(result):
            time.sleep(LATE if number % 2 else chance.uniform(*EARLY))
        killed = time.monotonic_ns()
        time.sleep(APART)
        started = min(begun + int(STARTED * 1e9), killed)
        stretches += [(begun, started), (started, killed), (killed, time.monotonic_ns())]
    return stretches


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


def _kinds(opened: Sequence[int], stretches: Sequence[Stretch]) -> list[int]:
    """In which stretch the period of each run lies; -1 where in none alone."""
    return [
        next((i for i, (begin, end) in enumerate(stretches) if begin <= a and b <= end), -1)
        for a, b in pairwise(opened)
    ]


def _row(what: str, values: Any, kinds: Any, watched: Sequence[int], budget: float | None) -> Row:
    pairs = [
        (values[np.isin(kinds, [3 * kill + kind for kind in watched])], values[kinds == bare])
        for kill, bare in enumerate(range(BARE, 3 * KILLS, 3))
    ]
    used = [(ours.mean(), bare.mean()) for ours, bare in pairs if len(ours) and len(bare)]
    ratio = mean_interval([float(np.log(ours / bare)) for ours, bare in used], 0.95)
    ours, bare = (float(np.mean(each)) for each in zip(*used, strict=True))
    change, low, high = (np.exp(x) - 1 for x in (ratio.mean, ratio.low, ratio.high))
    return Row(
        what,
        f"{ours:.4g} watched",
        f"{bare:.4g} not watched",
        f"{change:+.1%} ({low:+.1%} to {high:+.1%}), {count(ratio.n, 'pair')}",
        "" if budget is None else f"within ±{budget:.0%}",
        None if budget is None else bool(low > -budget and high < budget),
    )
