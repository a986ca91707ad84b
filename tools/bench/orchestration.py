"""What a run costs beside the run: netbench's campaigns, a shell loop of iperf3, and flent where it
runs.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from netbench.stats.intervals import Interval, mean_interval
from tools.bench import command
from tools.bench.table import Part, Row

RUNS = 200
CAMPAIGNS = 5  # the unit of replication: gaps within a campaign are no independent draws
WARMUP_NS = 10_000_000
CAMPAIGN = """netbench: 1
name: orchestration
verify: off
transfer: {duration: 50ms, warmup: 10ms, congestion: cubic}
sweep: {send: [write, sendfile]}
repeat: {min: 100, max: 100}
"""
LOOPS = 20
LOOP = """set -e
for i in $(seq "$1"); do
  echo "$EPOCHREALTIME"
  iperf3 -c 127.0.0.1 -p "$2" -t 1 -C cubic -J > "$3/$i.json"
done
echo "$EPOCHREALTIME"
"""
FLENT_TEST = "tcp_1up_noping"  # flent's smallest test of TCP
READY_SECONDS = 10.0
PATIENCE = 120.0  # seconds; nothing here comes near it
BUDGET_MS = 15.0
HOW = (
    f"A local campaign of {RUNS} runs of 50 ms (two cells, write and sendfile; warm-up 10 ms,"
    f" cubic, no verification), {CAMPAIGNS} times, by `python -m netbench run`. From the records:"
    " the time from the closing of a run's window to the opening of the next one's, by the"
    " sender's clock, less the warm-up; it holds draining, results, records, the order's next"
    " step, connecting and starting. Mean over the gaps of a campaign; the interval is Student's t"
    " over the campaigns' means."
)
NOTES = (
    (
        "The drain and the warm-up's lateness are in netbench's figure: records hold no time of the"
        " drained snapshot, so the figure is an upper bound of what was asked (which leaves the"
        " drain out)."
    ),
    (
        f"iperf3: `iperf3 -c 127.0.0.1 -t 1 -C cubic -J` {LOOPS} times in a loop of bash, one"
        " server; the wall time of each less the seconds that it says it measured (the longer of"
        " its sides). iperf3 takes whole seconds, and its figure has the start of its process,"
        " which is what a loop of it costs. It reads no counters of the host and keeps no order."
    ),
    (
        "flent's tests of TCP need netperf, which Debian has in non-free only; its tests with iperf"
        " (`rrul_be_iperf`, `udp_flood`) do not accept the iperf 2.1.8 of Debian 12 (seen: no"
        " --enhancedreports option), and `rrul_be_iperf` downloads by netperf."
    ),
)


def measure() -> Part:
    """Five campaigns, a loop of iperf3, and flent where there is one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gaps = [_campaign(folder / str(n)) for n in range(CAMPAIGNS)]
        ours = mean_interval([sum(found) / len(found) for found in gaps], 0.95)
        rows = (_beside_iperf3(ours, folder), _beside_flent(ours, folder))
    return Part("Cost of orchestration", HOW, rows, (_spread(gaps), *NOTES))


def _campaign(folder: Path) -> list[float]:
    folder.mkdir()
    ran = command.run(CAMPAIGN, folder)
    found = [
        json.loads(line) for line in (ran.results.path / "records.jsonl").read_text().splitlines()
    ]
    if len(found) != RUNS:
        raise RuntimeError(f"the campaign has {len(found)} records, expected {RUNS}")
    return overheads(found, WARMUP_NS)


def overheads(records: Sequence[Mapping[str, Any]], warmup_ns: int) -> list[float]:
    """Milliseconds that each run but the first came later than its warm-up after the run before it,
    from both records.

    Errors: RuntimeError for a run that is not ok.
    """
    bad = [record for record in records if record["status"] != "ok"]
    if bad:
        raise RuntimeError(f"run {bad[0]['run']} is {bad[0]['status']}: {bad[0]['reason']}")
    edges = [record["sender"]["time_ns"] for record in records]
    return [(later[0] - earlier[1] - warmup_ns) / 1e6 for earlier, later in pairwise(edges)]


def _spread(gaps: Sequence[Sequence[float]]) -> str:
    together = sorted(gap for found in gaps for gap in found)
    half = len(gaps[0]) // 2
    first = sum(sum(found[:half]) for found in gaps) / (half * len(gaps))
    last = sum(sum(found[-half:]) for found in gaps) / (half * len(gaps))
    return (
        f"Of {len(together)} gaps half lie below {together[len(together) // 2]:.1f} ms and 5% above"
        f" {together[len(together) * 95 // 100]:.1f} ms; their mean is {first:.1f} ms in the first"
        f" half of a campaign and {last:.1f} ms in the last."
    )


def _ms(found: Interval) -> str:
    return f"{found.mean:.1f} ms ({found.low:.1f} to {found.high:.1f})"


def _beside_iperf3(ours: Interval, folder: Path) -> Row:
    theirs, why = _iperf3(folder)
    return Row(
        f"overhead of a run, {RUNS} runs of 50 ms",
        _ms(ours),
        f"iperf3 in a shell loop: {_ms(theirs) if theirs else why}",
        ratio(ours, theirs) if theirs else "no peer",
        f"netbench's upper bound at most {BUDGET_MS:g} ms",
        ours.high <= BUDGET_MS,
    )


def ratio(ours: Interval, theirs: Interval) -> str:
    """Ratio of two independent positive means with the interval that theirs give it, on a log
    scale.
    """
    middle = ours.mean / theirs.mean
    width = math.hypot(ours.half_width / ours.mean, theirs.half_width / theirs.mean)
    return f"{middle:.2f} ({middle * math.exp(-width):.2f} to {middle * math.exp(width):.2f})"


def _iperf3(folder: Path) -> tuple[Interval | None, str]:
    """Milliseconds of a run of iperf3 beside the second it measures; or why there are none."""
    if not shutil.which("iperf3"):
        return None, "not installed (`apt-get install iperf3`)"
    with _server(folder) as port:
        argv = ["bash", "-c", LOOP, "loop", str(LOOPS), str(port), str(folder)]
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    if done.returncode:
        printed = " ".join(
            file.read_text() for file in sorted(folder.glob("*.json"), key=os.path.getmtime)[-1:]
        )
        return None, f"it failed: {(printed + done.stderr).strip()[:300]}"
    times = [float(word) for word in done.stdout.split()]
    measured = [
        _measured(json.loads((folder / f"{n}.json").read_text())) for n in range(1, LOOPS + 1)
    ]
    walls = [later - earlier for earlier, later in pairwise(times)]
    return (
        mean_interval(
            [(wall - seconds) * 1e3 for wall, seconds in zip(walls, measured, strict=True)], 0.95
        ),
        "",
    )


def _measured(output: Mapping[str, Any]) -> float:
    """The seconds that iperf3 counts as measured: the longer of its two sides."""
    return max(
        float(output["end"]["sum_sent"]["seconds"]), float(output["end"]["sum_received"]["seconds"])
    )


@contextmanager
def _server(folder: Path) -> Iterator[int]:
    """A server of iperf3 on a free port of loopback. Errors: RuntimeError when it does not listen
    in time.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    log = folder / "server.txt"
    argv = ["iperf3", "-s", "-B", "127.0.0.1", "-p", str(port), "--forceflush"]
    with (
        log.open("w") as output,
        subprocess.Popen(argv, stdout=output, stderr=subprocess.STDOUT) as server,
    ):
        try:
            deadline = time.monotonic() + READY_SECONDS
            while "Server listening" not in log.read_text():
                if server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"iperf3 -s does not listen: {log.read_text().strip()}")
                time.sleep(0.01)
            yield port
        finally:
            server.kill()


def _beside_flent(ours: Interval, folder: Path) -> Row:
    return Row(f"the same beside `flent {FLENT_TEST} -l 1`", _ms(ours), flent(folder), "", "", None)


def flent(folder: Path) -> str:
    """The wall time of flent's smallest test less the second it was asked for; or why it can't run
    here, as it says itself.
    """
    if not shutil.which("flent"):
        return (
            "not installed (`apt-get install flent`; it needs netperf too, which Debian has in"
            " non-free only)"
        )
    argv = ["flent", FLENT_TEST, "-H", "127.0.0.1", "-l", "1", "-D", str(folder)]
    begun = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False)
    beside = (time.monotonic() - begun - 1) * 1e3
    if done.returncode or not list(
        folder.glob("*.flent*")
    ):  # it ends with status 0 when a tool that it needs is missing
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
        return (
            "cannot run here: "
            + (
                errors[-1] if errors else f"it ended with status {done.returncode} and no data"
            ).strip()
        )
    return f"{beside:.0f} ms (one run)"
