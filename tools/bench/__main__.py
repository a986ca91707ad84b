"""`python -m tools.bench [PART]...`: measure the parts, write docs/performance.md; exit 1 when one
of these misses a budget.
"""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from tools.bench.table import Part, Row, markdown, wrapped

ROOT = Path(__file__).resolve().parents[2]
KEPT = (
    ROOT / "build" / "bench"
)  # the latest answer of each part, so that one part can be measured again alone
PARTS = (
    "peers",
    "orchestration",
    "ledger",
    "lab",
    "kernels",
    "instructions",
    "conclusion",
    "meters",
    "meter_cost",
)


def machine() -> str:
    """This machine in a sentence, without its name."""
    cpus = [
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    release = platform.freedesktop_os_release().get("PRETTY_NAME", "unknown system")
    congestion = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    return (
        f"{len(cpus)} CPUs ({cpus[0] if cpus else platform.machine()}), Linux {platform.release()},"
        f" {release}, Python {platform.python_version()}, default congestion control {congestion}"
    )


def measure(name: str) -> bool:
    """Run one part and keep its answer; whether each of its budgets holds."""
    part: Part = import_module(f"tools.bench.{name}").measure()
    KEPT.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    (KEPT / f"{name}.json").write_text(
        json.dumps(asdict(part) | {"when": stamp, "machine": machine()}, indent=1)
    )
    print(markdown(part))
    return all(row.holds is not False for row in part.rows)


def write() -> None:
    """docs/performance.md from the latest answer of each part."""
    texts = []
    for name in PARTS:
        file = KEPT / f"{name}.json"
        if not file.exists():
            texts.append(f"## {name}\n\nNot measured yet.\n")
            continue
        kept = json.loads(file.read_text())
        part = Part(
            kept["title"],
            kept["how"],
            tuple(Row(**row) for row in kept["rows"]),
            tuple(kept["notes"]),
        )
        measured = wrapped(f"Measured {kept['when']} on {kept['machine']}.")
        texts.append(f"{markdown(part)}\n{measured}\n")
    head = (
        "# Performance\n\nWritten by `make bench`. Intervals are 95%; ratios are netbench over its"
        " peer.\n\n"
    )
    (ROOT / "docs" / "performance.md").write_text(head + "\n".join(texts))


def main(names: list[str]) -> int:
    """Measure these parts, or all; the exit status is about them alone."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    hold = [measure(name) for name in names or PARTS]
    write()
    return 0 if all(hold) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
