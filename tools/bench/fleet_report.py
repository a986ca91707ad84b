"""Reports of fleets: how long one of 500 hosts takes, and whether those that are slow are named in
a ring of real hosts, and no others.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from netbench.report.source import Source
from tests.support.fleet_lab import campaign_of, chosen, faulty, lab_of
from tests.support.fleets import MadeFleet, bisection, names, ring
from tools.bench import command
from tools.bench.table import Row

HOSTS, ROUNDS = 500, 20
BUDGET = 20.0  # seconds
RING, BLOCKS, SEEDS = 100, 8, 2
PROGRAM = """
import json, resource, sys, time
begun = time.monotonic()
from netbench.report import text
from netbench.report.build import build
report = build(sys.argv[1])
size = len(text.render(report))
(fleet,) = report.source.fleets["throughput"]
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"wall": time.monotonic() - begun, "cpu": used.ru_utime + used.ru_stime,
                  "size": size, "named": [cause.name for cause in fleet.causes],
                  "memory": used.ru_maxrss * 1024}))
"""
HOW = (
    f"Made-up records of {HOSTS} hosts: a bisection of {ROUNDS} rounds, each pair once, and a ring"
    f" in {ROUNDS} blocks, each record with the {HOSTS // 2 - 1} pairs beside it; each report is"
    " built by a process of its own, from its start to the rendered text. The ring of"
    f" {RING} hosts: network namespaces of one machine; one host's link has a rate of 1 Gb/s both"
    " ways (tbf), another has TSO off, both behind the campaign's back; runs of 50 ms,"
    f" {BLOCKS} blocks, other hosts for each seed."
)


def rows() -> list[Row]:
    """The time of both reports, and what was named in the ring."""
    with tempfile.TemporaryDirectory(prefix="netbench-bench-") as folder:
        place = Path(folder)
        return [*_reports(place), _named(place)]


def _reports(place: Path) -> list[Row]:
    hosts = names(HOSTS)
    of_ring = ring(hosts)
    slow = {"n017": -0.3}
    made = {
        f"report of {HOSTS} hosts, {ROUNDS} rounds of random pairs": MadeFleet(
            pairs=bisection(hosts, ROUNDS), runs=1, sends=slow, receives=slow, beside=HOSTS // 2
        ),
        f"report of a ring of {HOSTS} hosts, {ROUNDS} blocks": MadeFleet(
            pairs=[*of_ring[::2], *of_ring[1::2]],
            runs=ROUNDS,
            sends=slow,
            receives=slow,
            beside=HOSTS // 2,
        ),
    }
    found = []
    for number, (what, fleet) in enumerate(made.items()):
        took = _report(fleet.write(place / str(number)))
        took_words = f"{took['wall']:.1f} s ({took['cpu']:.1f} s of CPU)"
        memory = f"{took['memory'] / (1 << 20):.0f} MiB"
        budget = f"at most {BUDGET:.0f} s"
        found.append(Row(what, took_words, "", memory, budget, took["wall"] <= BUDGET))
    return found


def _report(folder: Path) -> dict[str, float]:
    """What it took."""
    argv = [sys.executable, "-c", PROGRAM, str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _named(place: Path) -> Row:
    """Both hosts with their evidence in each seed; anything else as seldom as the confidence."""
    right = others = 0
    with lab_of(RING) as lab:
        for seed in range(SEEDS):
            faults = chosen(lab, seed)
            folder = place / f"ring-{seed}"
            folder.mkdir()
            with faulty(lab, faults):
                ran = command.run(campaign_of(lab, BLOCKS, seed), folder)
            (fleet,) = Source.of(ran.results.path).fleets["throughput"]
            facts = {
                cause.name: {odd.fact for odd in cause.facts[cause.name]} for cause in fleet.causes
            }
            right += "qdisc" in facts.get(faults.capped, ()) and "features" in facts.get(
                faults.without_tso, ()
            )
            others += len(facts) > 2
    return Row(
        f"a ring of {RING} lab hosts: one with 1 Gb/s, one without TSO",
        f"both named with their facts in {right} of {SEEDS}",
        "",
        f"another one in {others} of {SEEDS}",
        "all; none but by chance",
        right == SEEDS and others == 0,
    )
