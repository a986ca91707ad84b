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
from netbench.analysis.intervals import mean_interval
from tools.bench.table import Part, Row

KILLS = 50
ATTACHED = 0.4, 2.0  # seconds, at random: some are killed while they start
APART = 1.2  # seconds without one
BUDGET = 0.05
SEED = 1
CAMPAIGN = """netbench: 1
name: watched
verify: off
transfer: {duration: 100ms, warmup: 10ms, congestion: cubic}
repeat: {min: 100000, max: 100000}
"""
HOW = (
    "One local campaign of runs of 100 ms (write and read, one stream, warm-up 10 ms), beside which"
    f" `python -m netbench watch` is started on a terminal and killed {KILLS} times, after"
    f" {ATTACHED[0]:g} to {ATTACHED[1]:g} s each, {APART:g} s apart. Runs whose period lay wholly"
    " in such a stretch are compared with those of the stretch without it that follows: one ratio"
    " of means for each of the kills, and Student's t over their logarithms. The period of a run is"
    " the time from the opening of its window to that of the next run's, which holds all that the"
    " campaign does for it."
)
Stretch = tuple[int, int, bool]
"""Begin and end by CLOCK_MONOTONIC, in ns; whether `watch` ran."""


def measure() -> Part:
    """The ratios of period, throughput and CPU cost."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _campaign(folder) as result:
            before = _writers(result)
            stretches = _attach_and_kill(result)
            after = _writers(result)
        runs = netbench.load(result).runs
        records = [json.loads(line) for line in (result / "records.jsonl").open()]
    opened = [record["sender"]["time_ns"][0] for record in records if record["sender"]]
    periods = np.diff(np.array(opened)) / 1e6
    kinds = _kinds(opened, stretches)
    values = {
        "period of a run, ms": periods,
        "throughput, Gb/s": runs["throughput"].to_numpy()[: len(periods)],
        "service demand, µs/KB": runs["system_demand"].to_numpy()[: len(periods)],
    }
    rows = [_row(what, each, kinds) for what, each in values.items()]
    strangers = sorted(after - before)
    rows.append(
        Row(
            "files of the result that only a watcher could have made",
            str(len(strangers)),
            "",
            "",
            "0",
            not strangers,
        )
    )
    return Part("Cost of being watched", HOW, tuple(rows))


@contextmanager
def _campaign(folder: Path) -> Iterator[Path]:
    """The result of a campaign that runs meanwhile. Errors: RuntimeError."""
    (folder / "c.yaml").write_text(CAMPAIGN)
    argv = [sys.executable, "-m", "netbench", "run", "c.yaml", "--results", "r"]
    streams: Mapping[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(argv, cwd=folder, text=True, **streams) as process:
        try:
            while not (found := [*folder.glob("r/watched/[!.]*/records.jsonl")]):
                if process.poll() is not None:
                    raise RuntimeError(f"the campaign ended: {process.communicate()[1]}")
                time.sleep(0.05)
            yield found[0].parent
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()


def _attach_and_kill(result: Path) -> list[Stretch]:
    """Stretches with a watcher and without one, in turns."""
    chance, stretches = random.Random(SEED), list[Stretch]()
    for _ in range(KILLS):
        begun = time.monotonic_ns()
        with _watcher(result):
            time.sleep(chance.uniform(*ATTACHED))
        killed = time.monotonic_ns()
        time.sleep(APART)
        stretches += [(begun, killed, True), (killed, time.monotonic_ns(), False)]
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


def _writers(result: Path) -> set[str]:
    """Files that no run adds."""
    return {
        str(path.relative_to(result))
        for path in result.rglob("*")
        if path.parent.name != "samples" and not path.name.startswith(".")
    }


def _kinds(opened: Sequence[int], stretches: Sequence[Stretch]) -> list[int]:
    """In which stretch the period of each run lies; -1 where in none alone."""
    return [
        next(
            (i for i, (begin, end, _) in enumerate(stretches) if begin <= a and b <= end),
            -1,
        )
        for a, b in pairwise(opened)
    ]


def _row(what: str, values: Any, kinds: Sequence[int]) -> Row:
    which = np.array(kinds)
    pairs = [(values[which == 2 * i], values[which == 2 * i + 1]) for i in range(KILLS)]
    logs = [
        float(np.log(with_one.mean() / without.mean()))
        for with_one, without in pairs
        if len(with_one) and len(without)
    ]
    ratio = mean_interval(logs, 0.95)
    means = [float(values[np.isin(which, range(odd, 2 * KILLS, 2))].mean()) for odd in (0, 1)]
    low, high = np.exp(ratio.low) - 1, np.exp(ratio.high) - 1
    return Row(
        what,
        f"{means[0]:.4g} watched",
        f"{means[1]:.4g} not watched",
        f"{np.exp(ratio.mean) - 1:+.1%} ({low:+.1%} to {high:+.1%}), {ratio.n} pairs",
        f"within ±{BUDGET:.0%}",
        bool(low > -BUDGET and high < BUDGET),
    )
