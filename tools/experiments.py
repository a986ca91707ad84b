"""Fill the tables of docs/explanation/five-experiments.md from results/sample: what the posts of
2001 and 2006 published, as ratios, beside the same ratios of committed results.

    .venv/bin/python tools/experiments.py [--check]
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import netbench

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/explanation/five-experiments.md"
TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Row:
    """A ratio: `then` of two published numbers, today of two levels, of cells as `where` says."""

    label: str
    then: tuple[float, float]
    level: str
    where: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Ratios of one metric of a committed campaign, by one factor."""

    campaign: str
    factor: str
    baseline: str
    metric: str
    rows: tuple[Row, ...]


FILE, OUT = "{file: /var/tmp/splice.in}", "{file: /var/tmp/splice.out, overwrite: on}"
TABLES = {
    "loopback": Table(
        "sample",
        "send",
        "readwrite",
        "throughput",
        (
            Row("no pinning", (208000, 69000), "sendfile", {"pin": "none"}),
            Row("separate CPUs", (213047, 66000), "sendfile", {"pin": "apart"}),
            Row("the same CPU", (176000, 55000), "sendfile", {"pin": "same"}),
        ),
    ),
    "zerocopy": Table(
        "zerocopy",
        "send",
        "readwrite",
        "system_cpu.soak",
        (
            Row("checksums by the NIC", (18.2, 38.1), "sendfile", {"sg": "on"}),
            Row("checksums by the CPU", (22.9, 39.2), "sendfile", {"tx_checksum": "off"}),
        ),
    ),
    "gather": Table(
        "zerocopy",
        "sg",
        "off",
        "system_cpu.soak",
        (
            Row(
                "send(8k), scatter-gather",
                (20.3, 19.2),
                "on",
                {"send": "readwrite", "align": "0", "preamble": "0"},
            ),
        ),
    ),
    "sosend": Table(
        "sosend",
        "tso",
        "off",
        "sender_cpu.rusage",
        (
            Row("buffers of 32K", (13.4, 17.4), "on", {"socket_buffer": "32K"}),
            Row("64K", (14.5, 18.2), "on", {"socket_buffer": "64K"}),
            Row("128K", (17.1, 21.5), "on", {"socket_buffer": "128K"}),
        ),
    ),
    "sent": Table(
        "splice",
        "send",
        "readwrite",
        "throughput",
        (
            Row(
                "mmap+write",
                (366, 472),
                "mmap",
                {"receive": "read", "source": FILE, "sink": "discard"},
            ),
            Row(
                "splice",
                (854, 472),
                "splice",
                {"receive": "read", "source": FILE, "sink": "discard"},
            ),
        ),
    ),
    "received": Table(
        "splice",
        "receive",
        "read",
        "throughput",
        (
            Row(
                "into a mapping",
                (150, 375),
                "mmap",
                {"send": "readwrite", "source": "zero", "sink": OUT},
            ),
            Row(
                "vmsplice+splice",
                (286, 375),
                "vmsplice",
                {"send": "readwrite", "source": "zero", "sink": OUT},
            ),
        ),
    ),
}


def newest(name: str) -> Path:
    """The newest committed result of a campaign."""
    files = sorted((ROOT / "results/sample").glob("*/campaign.yaml"))
    return [file.parent for file in files if f"\nname: {name}\n" in file.read_text()][-1]


def lines(table: Table) -> str:
    """A table in Markdown; a ratio that the result does not have is an error."""
    path = newest(table.campaign)
    found = netbench.load(path).compare(table.factor, table.baseline, metric=table.metric)
    made = ["| | then | today, 95% interval |", "|---|---|---|"]
    for row in table.rows:
        asked = {"level": row.level, **row.where}
        mine = found[(found[list(asked)] == list(asked.values())).all(axis=1)]
        one = mine.iloc[0]
        then = row.then[0] / row.then[1]
        today = f"{one['ratio']:.2f} ({one['low']:.2f} to {one['high']:.2f}), {one['n']} runs"
        made.append(f"| {row.label} | {then:.2f} | {today} |")
    return "\n".join([*made, "", f"*{path.relative_to(ROOT)}*", ""])


def filled(page: str) -> str:
    """The page with its tables made anew."""
    return TABLE.sub(lambda m: f"{m[1]}\n{lines(TABLES[m[2]])}\n{m[3]}", page)


if __name__ == "__main__":
    text = PAGE.read_text()
    if "--check" in sys.argv:
        sys.exit(text != filled(text))
    PAGE.write_text(filled(text))
