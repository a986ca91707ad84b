"""Soft interrupts that no process pays for: a real flood between two namespaces, on a CPU of its
own. How much each meter charges is measured by tools/bench/softirq_load.py; here is their order.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.bench import command
from tools.bench.softirq_load import campaign, charged


@pytest.mark.root
@pytest.mark.netns
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this machine has one CPU")
def test_soak_and_procstat_charge_what_rusage_does_not(tmp_path: Path) -> None:
    """Whatever else runs on this machine only adds to both. Each meter had a run of its own."""
    results = command.run(campaign(1, 400), tmp_path).results
    assert set(results.runs["status"]) == {"ok"}
    rusage, procstat, soak = (row["mean"] for row in charged(results.cells))
    assert 0 < rusage < procstat
    assert rusage < soak
