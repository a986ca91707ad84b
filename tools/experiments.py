"""Fill the tables of docs/explanation/five-experiments.md from results/sample: what the posts of
2001 and 2006 published, as ratios, beside the same ratios of committed results.

    .venv/bin/python tools/experiments.py [--check]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import netbench

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/explanation/five-experiments.md"
TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
FILE, OUT = "{file: /var/tmp/splice.in}", "{file: /var/tmp/splice.out, overwrite: on}"
SENT = f"receive=read; source={FILE}; sink=discard"
RECEIVED = f"send=readwrite; source=zero; sink={OUT}"
PLAIN = "send=readwrite; align=0; preamble=0"
# Of a campaign: factor, baseline and metric; then a row each: two published numbers, and the level
# and the cells whose ratio stands beside them.
TABLES: dict[str, tuple[tuple[Any, ...], ...]] = {
    "loopback": (
        ("sample", "send", "readwrite", "throughput"),
        ("no pinning", 208000, 69000, "sendfile", "pin=none"),
        ("separate CPUs", 213047, 66000, "sendfile", "pin=apart"),
        ("the same CPU", 176000, 55000, "sendfile", "pin=same"),
    ),
    "zerocopy": (
        ("zerocopy", "send", "readwrite", "system_cpu.soak"),
        ("checksums by the NIC", 18.2, 38.1, "sendfile", "sg=on"),
        ("checksums by the CPU", 22.9, 39.2, "sendfile", "tx_checksum=off"),
    ),
    "gather": (
        ("zerocopy", "sg", "off", "system_cpu.soak"),
        ("read+send, scatter-gather", 20.3, 19.2, "on", PLAIN),
    ),
    "sosend": (
        ("sosend", "tso", "off", "sender_cpu.rusage"),
        ("buffers of 32K", 13.4, 17.4, "on", "socket_buffer=32K"),
        ("64K", 14.5, 18.2, "on", "socket_buffer=64K"),
        ("128K", 17.1, 21.5, "on", "socket_buffer=128K"),
    ),
    "sent": (
        ("splice", "send", "readwrite", "throughput"),
        ("mmap+write", 366, 472, "mmap", SENT),
        ("splice", 854, 472, "splice", SENT),
    ),
    "received": (
        ("splice", "receive", "read", "throughput"),
        ("into a mapping", 150, 375, "mmap", RECEIVED),
        ("vmsplice+splice", 286, 375, "vmsplice", RECEIVED),
    ),
}


def newest(name: str) -> Path:
    """The newest committed result of a campaign."""
    files = sorted((ROOT / "results/sample").glob("*/campaign.yaml"))
    return [file.parent for file in files if f"\nname: {name}\n" in file.read_text()][-1]


def lines(table: str) -> str:
    """A table in Markdown; a ratio that the result does not have is an error."""
    (campaign, factor, baseline, metric), *rows = TABLES[table]
    path = newest(campaign)
    found = netbench.load(path).compare(factor, baseline, metric=metric)
    made = ["| | then | today, 95% interval |", "|---|---|---|"]
    for label, ours, theirs, level, where in rows:
        asked = {"level": level} | dict(each.split("=", 1) for each in where.split("; "))
        one = found[(found[list(asked)] == list(asked.values())).all(axis=1)].iloc[0]
        today = f"{one['ratio']:.2f} ({one['low']:.2f} to {one['high']:.2f}), {one['n']} runs"
        made.append(f"| {label} | {ours / theirs:.2f} | {today} |")
    return "\n".join([*made, "", f"*{path.relative_to(ROOT)}*", ""])


def filled(page: str) -> str:
    """The page with its tables made anew."""
    return TABLE.sub(lambda m: f"{m[1]}\n{lines(m[2])}\n{m[3]}", page)


if __name__ == "__main__":
    text = PAGE.read_text()
    if "--check" in sys.argv:
        sys.exit(text != filled(text))
    PAGE.write_text(filled(text))
