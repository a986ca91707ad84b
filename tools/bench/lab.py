"""Orchestration between two hosts over SSH, with and without a change of settings, beside a shell
loop; `check` of 50 hosts.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from netbench import lab as labs
from netbench.base.errors import LabRefused
from netbench.lab import Lab, LabHost
from netbench.lab.lifecycle import own_name
from netbench.stats.intervals import Interval, mean_interval
from tools.bench import command
from tools.bench.orchestration import overheads
from tools.bench.table import Part, Row

ROUNDS = 5  # the unit of replication: gaps within a campaign are no independent draws
BLOCKS = 25  # of two cells, in each campaign
LOOPS = 5  # runs of iperf3 a round
HOSTS = 50
CHECKS = 3
WARMUP_NS = 10_000_000
STILL, TOGGLED = "{send: [write, sendfile]}", "{tso: [on, off]}"
CAMPAIGN = """netbench: 1
name: lab-orchestration
hosts: {{snd: local, rcv: local}}
lab: netns
verify: off
transfer: {{duration: 50ms, warmup: 10ms, congestion: cubic}}
sweep: {sweep}
repeat: {{min: {blocks}, max: {blocks}}}
"""
PORT = "5201"
MASTER = "master"  # the socket of the connection that the loop shares
LOOP = """set -e
for i in $(seq "$1"); do
  echo "$EPOCHREALTIME"
  ssh -F "$2" -S "$3" "$4" iperf3 -c "$5" -p "$6" -t 1 -C cubic -J > "$7/$i.json"
done
echo "$EPOCHREALTIME"
"""
READY_SECONDS = 10.0
PATIENCE = 120.0  # seconds; nothing here comes near it
STILL_MS, TOGGLED_MS, TIMES_LESS, CHECK_SECONDS = 25.0, 60.0, 5.0, 10.0
TITLE = "Hosts over SSH: cost of orchestration, and of a check"
HOW = (
    f"Hosts in network namespaces of one machine, reached over SSH (`lab: netns`). {ROUNDS} rounds,"
    f" each of a campaign of {2 * BLOCKS} runs of 50 ms in which no setting changes (write and"
    f" sendfile), one of as many in which TSO is swept on both hosts, and {LOOPS} runs of iperf3 in"
    " a shell loop. Overhead of a run as in the part before: the time from the closing of a run's"
    " window to the opening of the next one's, less the warm-up of 10 ms. Where TSO is toggled"
    " that holds undoing it, applying the other level, reading it back, and reading it again after"
    " the run, on both hosts, and the journal's way to the disk; only gaps between runs with"
    " different levels are counted. The loop: `ssh -F CONFIG -S MASTER snd iperf3 -c ADDRESS -t 1"
    " -C cubic -J`, its server running on the other host, its ControlMaster up before; wall time"
    " of each less the seconds that it says it measured. Means of rounds, their intervals"
    " Student's t over the rounds; the ratio is the geometric mean of the rounds' own ratios."
    f" `check`: wall time of `python -m netbench check` on {HOSTS} such hosts in pairs, one cell."
)
NOTES = (
    (
        "The draining and the warm-up's lateness are in netbench's figures; the start of iperf3 and"
        " of a multiplexed ssh in the loop's, which is what such a loop costs a run. The loop reads"
        " no counters of the hosts and keeps no order."
    ),
    (
        "All hosts share two CPUs, one disk and one kernel with the controller: fifty real hosts"
        " would answer in parallel."
    ),
)


@dataclass(frozen=True)
class Round:
    """Milliseconds beside a run, each the mean over a round. `kept`: TSO is swept, and stays as it
    was.
    """

    still: float
    toggled: float
    kept: float
    loop: float


def measure() -> Part:
    """ROUNDS rounds between two hosts, then checks of HOSTS hosts; a row that says why where there
    can be no lab.
    """
    try:
        with tempfile.TemporaryDirectory() as name:
            rows, notes = _two_hosts(Path(name))
            rows += _many_hosts(Path(name))
    except LabRefused as error:
        rows, notes = [Row("a lab on this machine", f"not measured: {error}", "", "", "", None)], ()
    return Part(TITLE, HOW, tuple(rows), (*notes, *NOTES))


@contextmanager
def _lab(hosts: int) -> Iterator[Lab]:
    """A lab in the name of this process: were it killed, the next campaign's lab would remove what
    it left.
    """
    made = labs.up("netns", hosts, name=own_name())
    try:
        yield made
    finally:
        labs.down(made.name)


def _two_hosts(folder: Path) -> tuple[list[Row], tuple[str, ...]]:
    with _lab(2) as made, _loop_hosts(made, folder):
        rounds = [_round(folder / str(n), made) for n in range(ROUNDS)]
    return _rows(rounds), (_kept(rounds),)


def _round(folder: Path, made: Lab) -> Round:
    folder.mkdir()
    still = _mean(overheads(_records(folder / "still", STILL), WARMUP_NS))
    toggled, kept = apart(_records(folder / "toggled", TOGGLED))
    return Round(still, _mean(toggled), _mean(kept), _mean(_loop(folder, made)))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _records(folder: Path, sweep: str) -> list[Mapping[str, Any]]:
    folder.mkdir()
    ran = command.run(CAMPAIGN.format(sweep=sweep, blocks=BLOCKS), folder)
    found = [
        json.loads(line) for line in (ran.results.path / "records.jsonl").read_text().splitlines()
    ]
    if len(found) != 2 * BLOCKS:
        raise RuntimeError(f"the campaign has {len(found)} records, expected {2 * BLOCKS}")
    return found


def apart(records: Sequence[Mapping[str, Any]]) -> tuple[list[float], list[float]]:
    """Overheads (ms) of the gaps in which TSO was toggled, and of those in which it stayed.

    Errors: RuntimeError for a run that is not ok, or whose record does not show that both hosts
    read the level asked for.
    """
    gaps = overheads(records, WARMUP_NS)
    for record in records:
        level = record["factors"]["tso"]
        if any(
            record["settings"][side].get("tso") != {"asked": level, "read": level}
            for side in ("sender", "receiver")
        ):
            raise RuntimeError(
                f"run {record['run']} does not show tso: {level} on both hosts:"
                f" {record['settings']}"
            )
    changes = [one["factors"]["tso"] != other["factors"]["tso"] for one, other in pairwise(records)]
    found = list(zip(gaps, changes, strict=True))
    return [gap for gap, changed in found if changed], [
        gap for gap, changed in found if not changed
    ]


def _ends(made: Lab) -> tuple[LabHost, LabHost]:
    sender, receiver = made.hosts.values()
    return sender, receiver


@contextmanager
def _loop_hosts(made: Lab, folder: Path) -> Iterator[None]:
    """A server of iperf3 on the receiver, and a connection to the sender that the loop shares.
    Errors: RuntimeError.
    """
    if not shutil.which("iperf3"):
        yield
        return
    sender, receiver = _ends(made)
    ssh = ("ssh", "-F", str(made.ssh_config), "-S", str(folder / MASTER))
    argv = (
        "ip",
        "netns",
        "exec",
        receiver.namespace,
        "iperf3",
        "-s",
        "-B",
        receiver.address,
        "-p",
        PORT,
        "--forceflush",
    )
    log = folder / "server.txt"
    with (
        log.open("w") as output,
        subprocess.Popen(argv, stdout=output, stderr=subprocess.STDOUT) as server,
    ):
        try:
            _await_words(log, "Server listening", server)
            subprocess.run(
                (*ssh, "-M", "-N", "-f", sender.ssh),
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            yield
            subprocess.run((*ssh, "-O", "exit", sender.ssh), check=True, capture_output=True)
        finally:
            server.kill()


def _await_words(log: Path, words: str, program: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while words not in log.read_text():
        if program.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"iperf3 -s does not listen: {log.read_text().strip()}")
        time.sleep(0.01)


def _loop(folder: Path, made: Lab) -> list[float]:
    """Milliseconds of each run of the loop beside what it measures; none without iperf3. Errors:
    RuntimeError.
    """
    if not shutil.which("iperf3"):
        return []
    sender, receiver = _ends(made)
    master = folder.parent / MASTER
    words = [
        str(LOOPS),
        str(made.ssh_config),
        str(master),
        sender.ssh,
        receiver.address,
        PORT,
        str(folder),
    ]
    argv = ["bash", "-c", LOOP, "loop", *words]
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )
    if done.returncode:
        raise RuntimeError(
            f"the loop of iperf3 ended with status {done.returncode}: {done.stderr.strip()[-500:]}"
        )
    walls = [
        later - earlier for earlier, later in pairwise(float(word) for word in done.stdout.split())
    ]
    return [(wall - _measured(folder / f"{n}.json")) * 1e3 for n, wall in enumerate(walls, 1)]


def _measured(file: Path) -> float:
    """The seconds that iperf3 counts as measured: the longer of its two sides."""
    end = json.loads(file.read_text())["end"]
    return max(float(end["sum_sent"]["seconds"]), float(end["sum_received"]["seconds"]))


def _rows(rounds: Sequence[Round]) -> list[Row]:
    still, toggled = (
        mean_interval(values, 0.95)
        for values in ([r.still for r in rounds], [r.toggled for r in rounds])
    )
    rows = [
        _within("overhead of a run, no setting changes", still, STILL_MS),
        _within("overhead of a run, TSO toggled on both hosts", toggled, TOGGLED_MS),
    ]
    what = "overhead of a run beside a shell loop's"
    if any(math.isnan(r.loop) for r in rounds):
        return [
            *rows,
            Row(what, _ms(still), "not installed (`apt-get install iperf3`)", "no peer", "", None),
        ]
    times, low, high = ratio([r.loop for r in rounds], [r.still for r in rounds])
    loop = mean_interval([r.loop for r in rounds], 0.95)
    told = f"the loop's is {times:.1f} times netbench's ({low:.1f} to {high:.1f})"
    budget = f"lower bound at least {TIMES_LESS:g} times"
    return [
        *rows,
        Row(
            what,
            _ms(still),
            f"iperf3 over ControlMaster: {_ms(loop)}",
            told,
            budget,
            low >= TIMES_LESS,
        ),
    ]


def ratio(over: Sequence[float], under: Sequence[float]) -> tuple[float, float, float]:
    """Geometric mean of paired ratios (two or more, of positive numbers) with the ends of its 95%
    interval.
    """
    found = mean_interval([math.log(a / b) for a, b in zip(over, under, strict=True)], 0.95)
    return math.exp(found.mean), math.exp(found.low), math.exp(found.high)


def _within(what: str, found: Interval, budget: float) -> Row:
    return Row(what, _ms(found), "", "", f"upper bound at most {budget:g} ms", found.high <= budget)


def _ms(found: Interval) -> str:
    return f"{found.mean:.1f} ms ({found.low:.1f} to {found.high:.1f})"


def _kept(rounds: Sequence[Round]) -> str:
    kept = [r.kept for r in rounds if not math.isnan(r.kept)]
    return (
        "Where TSO is swept and two runs in a row have the same level, the overhead of a run is"
        f" {_mean(kept):.1f} ms; such gaps all lie between two blocks and hold the noise monitor's"
        " readings too."
    )


def _many_hosts(folder: Path) -> list[Row]:
    with _lab(HOSTS) as made:
        file = _pairs(folder / "up.yaml", made.block())
        found = mean_interval([_check(file) for _ in range(CHECKS)], 0.95)
    whole = _check(
        _pairs(folder / "made.yaml", {"hosts": dict.fromkeys(made.hosts, "local"), "lab": "netns"})
    )
    told = f"{found.mean:.1f} s ({found.low:.1f} to {found.high:.1f}), {CHECKS} times"
    budget = f"upper bound at most {CHECK_SECONDS:g} s"
    return [
        Row(
            f"`check` of {HOSTS} hosts that are up",
            told,
            "",
            "",
            budget,
            found.high <= CHECK_SECONDS,
        ),
        Row("the same with making and removing the lab", f"{whole:.1f} s, once", "", "", "", None),
    ]


def _pairs(file: Path, keys: Mapping[str, Any]) -> Path:
    """A campaign file over these hosts, the first two of which are a pair, the next two,
    and so on.
    """
    names = list(keys["hosts"])
    pairs = [{"sender": a, "receiver": b} for a, b in zip(names[::2], names[1::2], strict=True)]
    transfer = {"duration": "50ms", "congestion": "cubic"}
    file.write_text(
        yaml.safe_dump(
            {"netbench": 1, "name": file.stem, **keys, "pairs": pairs, "transfer": transfer}
        )
    )
    return file


def _check(file: Path) -> float:
    """Seconds of `check` as its user waits for it. Errors: RuntimeError with what it printed when
    it found an error.
    """
    argv = [sys.executable, "-m", "netbench", "check", str(file)]
    begun = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    if done.returncode:
        raise RuntimeError(
            f"`netbench check` ended with status {done.returncode}:"
            f" {(done.stdout + done.stderr).strip()[-2000:]}"
        )
    return seconds
