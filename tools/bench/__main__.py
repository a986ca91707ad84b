"""`python -m tools.bench [PART]...`: measure the parts, and write the section of each into
docs/performance.md; exit 1 when one of these misses a budget.
"""

from __future__ import annotations

import platform
import re
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from tools.bench.table import Part, markdown, wrapped

ROOT = Path(__file__).resolve().parents[2]
HEAD = (
    "# Performance\n\nWritten by `make bench`. Intervals are 95%;"
    " ratios are netbench over its peer.\n"
)
PARTS = (
    "peers",
    "methods",
    "transactions",
    "requests",
    "pacing",
    "orchestration",
    "commands",
    "ledger",
    "watch",
    "instructions",
    "meters",
    "meter_cost",
    "truth",
    "report",
    "fleet",
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


def _cpu_times() -> list[int]:
    """Ticks of all CPUs by state, proc(5)."""
    return [int(word) for word in Path("/proc/stat").read_text().split()[1:9]]


def stolen(before: list[int], after: list[int]) -> str:
    """What a hypervisor took of the CPUs meanwhile, where it took any."""
    spent = [b - a for a, b in zip(before, after, strict=True)]
    share = spent[7] / max(sum(spent), 1)
    return f"; {share:.1%} of the CPUs' time was stolen meanwhile" if share >= 0.001 else ""


def measure(name: str) -> bool:
    """Run one part and write its section; whether each of its budgets holds."""
    before = _cpu_times()
    part: Part = import_module(f"tools.bench.{name}").measure()
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    told = f"Measured {when} on {machine()}{stolen(before, _cpu_times())}."
    print(markdown(part))
    write(name, f"{markdown(part)}\n{wrapped(told)}\n")
    return all(row.holds is not False for row in part.rows)


def write(name: str, section: str) -> None:
    """Put the section of one part into docs/performance.md; those of the others stay. A comment
    before each tells whose it is.
    """
    page = ROOT / "docs" / "performance.md"
    _, *words = re.split(r"<!-- part: (\w+) -->\n\n", page.read_text() if page.exists() else "")
    sections = {part: f"## {part}\n\nNot measured yet.\n" for part in PARTS}
    sections |= dict(zip(words[::2], words[1::2], strict=True)) | {name: section}
    texts = [f"<!-- part: {part} -->\n\n{sections[part].strip()}\n" for part in PARTS]
    page.write_text("\n".join([HEAD, *texts]))


def main(names: list[str]) -> int:
    """Measure these parts, or all; the exit status is about them alone."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    hold = [measure(part) for part in names or PARTS]
    return 0 if all(hold) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
