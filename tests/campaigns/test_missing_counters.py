"""What a machine does not count: its column is empty, its reason is told, nothing divides by it."""

from __future__ import annotations

import math
from html import unescape
from pathlib import Path

from netbench import campaign, load
from netbench.engine.own_engine import local
from netbench.read.metrics import METRICS, RATIOS
from netbench.run import conductor

TEXT = """\
netbench: 1
name: all
verify: off
transfer: {duration: 60ms, warmup: 10ms, congestion: cubic}
repeat: {min: 2, max: 2}
meters: [METERS]
"""
SHOWN = {"cycles_per_byte", "instructions_per_byte", "energy", "energy_less_idle", "irq_pressure"}


def test_every_meter_in_a_real_campaign(tmp_path: Path) -> None:
    """Which counters are missing is this machine's affair."""
    asked = [n for n, m in local().meters.items() if not m.has("always") and n != "soak"]
    text = TEXT.replace("METERS", ", ".join(asked))
    path = conductor.start(campaign.parse(text, "all.yaml"), tmp_path).path
    result = load(path)
    (entry,) = result.source.result.hosts["here"]
    runs = result.runs[[name for name in METRICS if name in result.runs]]
    assert not runs.apply(lambda column: column.map(math.isinf)).any(axis=None)
    texts = [unescape(text) for text in (result.text(), result.html())]
    for row in RATIOS:
        unread = [
            why
            for counter in row.counters
            if (why := entry.unread.get(counter) or entry.unread.get(counter.partition(".")[0]))
        ]
        if unread:
            assert not {row.name, f"sender_{row.name}"} & set(runs.columns), row.name
        if unread and row.name in SHOWN:
            for text in texts:
                assert unread[0] in " ".join(text.split())
