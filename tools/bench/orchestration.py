"""What a run costs beside the run: on this machine and between two hosts over SSH, each beside a
shell loop of iperf3 on the sending host; and `check` of many hosts.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from netbench.base.errors import LabRefused
from netbench.lab import Lab
from netbench.stats.intervals import Interval, mean_interval
from tests.support.fleet_lab import lab_of
from tests.support.running import stored_records
from tools.bench import command
from tools.bench.table import Part, Row

ROUNDS, BLOCKS, LOOPS = 5, 100, 10  # a round: a campaign of two cells, and a loop
WARMUP_NS = 10_000_000
CAMPAIGN = """netbench: 1
name: orchestration
{hosts}
verify: off
transfer: {{duration: 50ms, warmup: 10ms, congestion: cubic}}
sweep: {sweep}
repeat: {{min: {blocks}, max: {blocks}}}
"""
HERE = "hosts: {here: local}"
STILL, TOGGLED = "{send: [write, sendfile]}", "{tso: [on, off]}"
LOOP = """set -e
for i in $(seq {loops}); do
  echo "at $EPOCHREALTIME"
  iperf3 -c {address} -p {port} -t 1 -C cubic -J | grep -A 20 '"sum_' | grep '"seconds"'
done
echo "at $EPOCHREALTIME"
"""
PORT = "5201"
READY_SECONDS, PATIENCE = 10.0, 120.0
BUDGETS = {"on this machine": 15.0, "over SSH": 25.0, "TSO toggled on both hosts": 60.0}  # ms
HOW = (
    f"{ROUNDS} rounds, each of campaigns of {2 * BLOCKS} runs of 50 ms by `python -m netbench run`:"
    " on this machine; between two network namespaces of it, over SSH; and there with TSO swept on"
    " both. From the records: the time from the closing of a run's window to the opening of the"
    " next one's, by the sender's clock, less the warm-up of 10 ms. So it holds draining, results,"
    " records, the order's next step, connecting and starting; where TSO is toggled, also undoing,"
    " applying and reading back on both hosts (only gaps between runs with different levels"
    f" count). The peer is `iperf3 -t 1 -C cubic -J`, {LOOPS} times in a loop of bash on the"
    " sending host, in one SSH session where the hosts have one: wall time of each less the"
    " seconds that it says it measured, so with the start of its process. Means of rounds, their"
    " intervals Student's t."
)
NOTES = (
    (
        "iperf3 reads no counters of the hosts and keeps no order. All hosts share two CPUs, one"
        " disk and one kernel with the controller."
    ),
)


def measure() -> Part:
    """A row each; one that says why where there can be no lab."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [_beside_loop("on this machine", HERE, folder / "here", ["bash", "-c"], None)]
        try:
            with lab_of(2) as made:
                hosts = yaml.safe_dump(made.block(), sort_keys=False)
                sender, _ = made.hosts.values()
                ssh = ["ssh", "-F", str(made.ssh_config), sender.ssh]
                rows.append(_beside_loop("over SSH", hosts, folder / "ssh", ssh, made))
                rows.append(_toggled(hosts, folder / "toggled"))
        except LabRefused as error:
            rows.append(Row("hosts over SSH", f"not measured: {error}", "", "", "", None))
    return Part("Cost of orchestration", HOW, tuple(rows), NOTES)


def records_of(hosts: str, sweep: str, blocks: int, folder: Path) -> list[dict[str, Any]]:
    """Of a campaign. Errors: RuntimeError for one that lacks runs."""
    folder.mkdir(parents=True)
    ran = command.run(CAMPAIGN.format(hosts=hosts, sweep=sweep, blocks=blocks), folder)
    found = stored_records(ran.path)
    if len(found) != 2 * blocks:
        raise RuntimeError(f"the campaign has {len(found)} records, expected {2 * blocks}")
    return found


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


def toggles(records: Sequence[Mapping[str, Any]]) -> list[float]:
    """Overheads (ms) of the gaps in which TSO was toggled.

    Errors: RuntimeError for a run whose record does not show that both hosts read the level asked
    for.
    """
    for record in records:
        level = record["factors"]["tso"]
        told = [record["settings"][side].get("tso") for side in ("sender", "receiver")]
        if told != [{"asked": level, "read": level}] * 2:
            raise RuntimeError(
                f"run {record['run']} does not show tso: {level} on both hosts:"
                f" {record['settings']}"
            )
    changes = [one["factors"]["tso"] != other["factors"]["tso"] for one, other in pairwise(records)]
    gaps = overheads(records, WARMUP_NS)
    return [gap for gap, changed in zip(gaps, changes, strict=True) if changed]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _beside_loop(
    what: str, hosts: str, folder: Path, shell: Sequence[str], made: Lab | None
) -> Row:
    ours, theirs = [], []
    for number in range(ROUNDS):
        found = records_of(hosts, STILL, BLOCKS, folder / str(number))
        ours.append(_mean(overheads(found, WARMUP_NS)))
        theirs += [_mean(_loop(shell, made, folder))] if shutil.which("iperf3") else []
    row = _within(f"a run, {what}", mean_interval(ours, 0.95), BUDGETS[what])
    if not theirs:
        return row
    ratio = mean_interval([math.log(a / b) for a, b in zip(ours, theirs, strict=True)], 0.95)
    shown = [f"{math.exp(value):.2f}" for value in (ratio.mean, ratio.low, ratio.high)]
    peer = f"a loop of iperf3: {_ms(mean_interval(theirs, 0.95))}"
    return Row(row.what, row.ours, peer, "{} ({} to {})".format(*shown), row.budget, row.holds)


def _toggled(hosts: str, folder: Path) -> Row:
    what = "TSO toggled on both hosts"
    found = [
        _mean(toggles(records_of(hosts, TOGGLED, BLOCKS // 4, folder / str(number))))
        for number in range(ROUNDS)
    ]
    return _within(f"a run, {what}", mean_interval(found, 0.95), BUDGETS[what])


def _within(what: str, found: Interval, budget: float) -> Row:
    return Row(what, _ms(found), "", "", f"upper bound at most {budget:g} ms", found.high <= budget)


def _ms(found: Interval) -> str:
    return f"{found.mean:.1f} ms ({found.low:.1f} to {found.high:.1f})"


def _loop(shell: Sequence[str], made: Lab | None, folder: Path) -> list[float]:
    """Milliseconds of each run of the loop beside what it measures. Errors: CalledProcessError,
    RuntimeError.
    """
    address, prefix = "127.0.0.1", []
    if made:
        _, receiver = made.hosts.values()
        address, prefix = receiver.address, ["ip", "netns", "exec", receiver.namespace]
    text = LOOP.format(loops=LOOPS, address=address, port=PORT)
    with _server([*prefix, "iperf3", "-s", "-B", address, "-p", PORT, "--forceflush"], folder):
        done = subprocess.run(
            [*shell, text], capture_output=True, text=True, timeout=PATIENCE, check=True
        )
    return beside(done.stdout)


def beside(printed: str) -> list[float]:
    """Milliseconds of each run less what it measured, the longer of its two sides."""
    walls, seconds = [], list[list[float]]()
    for line in printed.splitlines():
        if line.startswith("at "):
            walls.append(float(line[3:]))
            seconds.append([])
        else:
            seconds[-1].append(float(line.split(":")[1].strip(" ,")))
    return [
        (later - earlier - max(measured)) * 1e3
        for (earlier, later), measured in zip(pairwise(walls), seconds, strict=False)
    ]


@contextmanager
def _server(argv: Sequence[str], folder: Path) -> Iterator[None]:
    log = folder / "server.txt"
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
            yield
        finally:
            server.kill()


def pairs_of(block: Mapping[str, Any], pairs: int | None = None) -> dict[str, Any]:
    """A campaign's keys for these hosts, the first two of which are a pair, and so on."""
    names = list(block["hosts"])[: None if pairs is None else 2 * pairs]
    made = [{"sender": a, "receiver": b} for a, b in zip(names[::2], names[1::2], strict=True)]
    return {**block, "hosts": {name: block["hosts"][name] for name in names}, "pairs": made}
