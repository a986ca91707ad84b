"""What meters cost the run that they measure: the time to read them at an edge of the window, and
throughput with all of them beside throughput with none.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from netbench.engine.build_native import CFLAGS, compiler
from netbench.engine.own_engine import local
from tools.bench import command, comparisons
from tools.bench.table import Part, Row

NATIVE = Path(__file__).resolve().parents[2] / "native"
EDGES = Path(__file__).with_name("edges.c")
READINGS, EDGE_BUDGET = 400, 200e3  # ns, on 2 CPUs
RUNS, MARGIN = 60, 0.02
CAMPAIGN = """\
netbench: 1
name: meter-cost
verify: off
transfer: {{send: write, receive: trunc, duration: 1s, warmup: 100ms, chunk: 64K, sample: 0,
  congestion: cubic, pin: same}}
sweep: {{meters: [[rusage], {all}, [rusage, soak]]}}
repeat: {{min: {runs}, max: {runs}, metrics: [throughput]}}
"""
HOW = (
    f"Reading: `tools/bench/edges.c`, compiled with the engine's files, reads meters {READINGS}"
    " times as a run does at an edge; shown are the median and the 95th percentile. Throughput: a"
    " campaign over loopback (write to trunc, cubic, both sides on one CPU: what a meter takes is"
    f" taken from the bytes there), {RUNS} runs of 1 s with rusage alone, with every meter that"
    " runs here but soak, and with soak, in random complete blocks."
)


def metered() -> list[str]:
    """Meters that run here and are asked for, without soak."""
    meters = local().meters.items()
    return [n for n, m in meters if not m.has("always") and not m.row.why and n != "soak"]


def _build(folder: Path) -> Path:
    target = folder / "edges"
    sources = [path for path in NATIVE.glob("src/**/*.c") if path.name != "main.c"]
    places = ["-I", str(NATIVE / "include"), "-I", str(NATIVE / "src")]
    argv = [*compiler(), *CFLAGS, *places, *map(str, sources), str(EDGES), "-o", str(target)]
    subprocess.run(argv, check=True)
    return target


def edge_row(program: Path, meters: Sequence[str], budget: float | None) -> Row:
    """How long it takes to read these meters."""
    argv = [str(program), str(READINGS), *meters]
    shown = subprocess.run(argv, check=True, capture_output=True, text=True)
    times = sorted(int(line) / 1e3 for line in shown.stdout.split())
    median, late = times[len(times) // 2], times[int(len(times) * 0.95)]
    return Row(
        f"read {', '.join(meters)}",
        f"{median:.1f} µs",
        "",
        f"95% within {late:.1f} µs",
        f"at most {budget / 1e3:.0f} µs" if budget else "",
        median * 1e3 <= budget if budget else None,
    )


def measure(runs: int = RUNS) -> Part:
    """The part."""
    names = metered()
    with tempfile.TemporaryDirectory() as name:
        program = _build(Path(name))
        rows = [edge_row(program, [meter], None) for meter in names]
        rows.append(edge_row(program, names, EDGE_BUDGET))
        text = CAMPAIGN.format(runs=runs, all=f"[{', '.join(names)}]")
        results = command.run(text, Path(name))
    equivalent = comparisons.Budget(
        f"within {MARGIN:.0%}",
        lambda _, low, high: low > 1 - MARGIN and high < 1 + MARGIN,
    )
    for row in comparisons.rows(
        results,
        "meters",
        "[rusage]",
        "throughput",
        lambda levels: f"throughput with {levels['meters']}",
        equivalent,
    ):
        rows.append(replace(row, budget="", holds=None) if "soak" in row.what else row)
    return Part("What meters cost", HOW, tuple(rows))
