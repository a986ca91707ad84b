"""What the controller's bookkeeping costs as a campaign grows: records, closings, time left,
replay, plan. Nothing is transferred: the records are made up.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from netbench import campaign
from netbench.base.json_lines import now
from netbench.engine.own_engine import local
from netbench.plan.plan import Plan, Run, Unit
from netbench.plan.plan_json import plan_json
from netbench.result import codec
from netbench.result.files import HostEntry
from netbench.result.record import Record, SideCounters
from netbench.result.store import Store
from netbench.run.progress import Progress
from netbench.run.recorder import Recorder
from netbench.run.run_history import described, finished
from tools.bench.table import Part, at_most

RUNS = 20_000
LONG = 100_000
LAST = 10  # of them, which are run
CELLS = 10_000
WINDOW = 1000
HOW = (
    "Made-up records of a plausible size go through the recorder as in a campaign: written,"
    " counted, assessed, with cells closed after each block and the time left. CPU time of the"
    f" process, median of {WINDOW} runs; nothing is transferred, but in the last {LAST} of {LONG}"
    " runs, which `resume` makes. Memory is the largest resident set."
)


def plan_of(cells: int, runs: int, least: int = 3) -> Plan:
    """A plan of so many cells, each with `least` to `runs` runs, all of which it needs."""
    levels = ", ".join(f"{i + 1}K" for i in range(cells))
    text = (
        "netbench: 1\nname: ledger\ntransfer: {duration: 50ms, warmup: 10ms, congestion: cubic}\n"
        f"sweep: {{chunk: [{levels}]}}\n"
        f"repeat: {{min: {least}, max: {runs}, precision: 0.01%,"
        " metrics: [throughput, system_cpu]}\n"
    )
    return Plan(campaign.parse(text, "ledger.yaml"))


def made_up(chance: random.Random, run: int, unit: Unit, block: int) -> Record:
    """A record as a local run of one stream gives."""

    def side() -> SideCounters:
        moved = int(1e9 * (1 + 0.05 * chance.random()))
        ticks = {name: [0, chance.randrange(20)] for name in ("user", "system", "irq", "softirq")}
        meters: dict[str, Mapping[str, Any]] = {
            "flow": {"bytes": [[1], [moved]], "steps": [[0], [moved // 65536]]},
            "rusage": {"cpu_ns": [0, int(3e8 * chance.random())], "system_us": [0, 20_000]},
            "procstat": {**ticks, "nice": [0, 0], "idle": [0, 90], "iowait": [0, 0]},
            "tcp": {"retransmits": [[0], [0]]},
        }
        return SideCounters("here", (0, 10**9), meters=meters)

    factors = unit.cell.factors
    return Record(run, *unit.key, block, 0, factors, "ok", "", now(), side(), side())


def costs(plan: Plan, folder: Path, runs: int) -> Iterator[float]:
    """Keep so many runs in a new result below `folder`; seconds of CPU for each."""
    rows = local().rows
    text = plan.campaign.text
    planned = plan_json(plan) | {"rows": codec.to_json(described(rows))}
    store = Store.create(folder, "ledger", text, planned)
    store.lock()
    recorder = Recorder(store, plan, rows, Progress())
    recorder.keep_facts({"here": HostEntry(0, "x", 100, {})})
    chance, ledger = random.Random(1), recorder.ledger
    spent = 0.0
    begun = time.process_time()
    while not ledger.finished:
        for (step,) in plan.block(ledger.block, ledger.is_open, ledger.open_keys):
            if not isinstance(step, Run):
                continue
            spent += time.process_time() - begun
            record = made_up(chance, recorder.next_number(), step.unit, step.block)
            begun = time.process_time()
            recorder.keep(step.unit, record)
            yield spent + time.process_time() - begun
            spent, begun = 0.0, time.process_time()
            if record.run >= runs:
                store.close()
                return
        ledger.next_block()
    store.close()


def measure() -> Part:
    """A long campaign of one cell, one of many cells, a replay, and a plan."""
    with tempfile.TemporaryDirectory() as name:
        plan = plan_of(1, LONG)
        cost = np.array(list(costs(plan, Path(name), LONG - LAST))) * 1e3
        early, late = (float(np.median(cost[a : a + WINDOW])) for a in (10, RUNS - WINDOW))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        begun = time.process_time()
        result = next(Path(name).glob("ledger/*"))
        finished(result, plan.campaign)
        replay = time.process_time() - begun
        resume = _resume(result)
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as name:
        many = np.array(list(costs(plan_of(CELLS, 3), Path(name), 2 * CELLS))) * 1e3
    begun = time.process_time()
    plan_json(plan_of(CELLS, 100_000, 100_000))
    planned = time.process_time() - begun
    last = f"`resume`: the last {LAST} of {LONG} runs, report"
    rows = (
        at_most(f"a run, {WINDOW} from run 10 on", early, "ms", None),
        at_most(f"a run, {WINDOW} up to run {RUNS}", late, "ms", 10),
        at_most("the second over the first", late / early, "", 1.1),
        at_most(f"controller's memory after {LONG - LAST} runs", memory, "MB", 200),
        at_most(f"replay of {LONG - LAST} records", replay, "s", 30),
        at_most(last, resume, "s", None),
        at_most("its memory", most, "MB", 1024),
        at_most(f"a run of {CELLS} cells, mean", float(many.mean()), "ms", 2),
        at_most(f"plan of {CELLS} cells", planned, "s", None),
    )
    return Part("What bookkeeping costs as a campaign grows", HOW, rows)


def _resume(result: Path) -> float:
    """Seconds of CPU that the command takes, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = [sys.executable, "-m", "netbench", "resume", str(result)]
    subprocess.run(argv, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
