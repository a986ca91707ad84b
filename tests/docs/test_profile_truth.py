"""Profiles tell the truth: of the kernel, as perf(1) sees it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from netbench.engine.worker import Worker
from netbench.hosts.local import LocalChannel
from tests.support.local import ran

pytestmark = [pytest.mark.slow, pytest.mark.root]

LOAD = ["dd", "if=/dev/zero", "of=/dev/null", "bs=4k", "status=none"]
SECONDS = 4


@pytest.mark.skipif(
    not shutil.which("perf"), reason="linux-perf is not installed (apt-get install linux-perf)"
)
def test_functions_of_the_kernel_are_those_that_perf_reports(tmp_path: Path) -> None:
    """Both sample the same seconds: shares of 3% and more agree within four standard deviations."""
    helper = Worker(LocalChannel("here").start_helper(), "here")
    load = subprocess.Popen(LOAD)
    try:
        helper.operate("profile", "sampling", "ready 997")
        helper.operate("profile", "sampling", "on")
        data = tmp_path / "perf.data"
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "-p", str(load.pid)]
        subprocess.run([*record, "-o", data, "sleep", str(SECONDS)], check=True)
        helper.operate("profile", "sampling", "off")
        text, part = "", 0
        while more := helper.operate("profile", str(part))[0]:
            text, part = text + more, part + 1
    finally:
        load.kill()
        load.wait()
        helper.close()
    mine = by_address(leaves(text, load.pid))
    theirs = by_address(reported(data))
    assert sum(mine.values()) > 500
    for name in {
        name
        for counts in (mine, theirs)
        for name, n in counts.items()
        if n > 0.03 * sum(counts.values())
    }:
        one, other = (counts[name] / sum(counts.values()) for counts in (mine, theirs))
        sd = sum(
            max(p, 0.01) / sum(counts.values()) for p, counts in ((one, mine), (other, theirs))
        )
        assert abs(one - other) < 4 * sd**0.5 + 0.01, (name, one, other)


def by_address(counts: Counter[str]) -> Counter[str]:
    """The same by address: a function that has several names is called differently by each tool."""
    symbols = (line.split() for line in Path("/proc/kallsyms").read_text().splitlines())
    address = {symbol[2]: symbol[0] for symbol in symbols}
    found: Counter[str] = Counter()
    for name, samples in counts.items():
        found[address.get(name, name)] += samples
    return found


def leaves(text: str, pid: int) -> Counter[str]:
    """Samples by the kernel's function of one process."""
    frames, pids = [], []
    counts: Counter[str] = Counter()
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "f":
            frames.append(rest.split(" [")[0])
        elif kind == "p":
            pids.append(int(rest.split()[0]))
        elif kind == "s":
            samples, _, process, *chain = map(int, rest.split())
            if pids[process] == pid and chain:
                counts[frames[chain[-1]]] += samples
    return counts


def reported(data: Path) -> Counter[str]:
    """The same by `perf report`."""
    shape = "--stdio -q --sort symbol -n -F sample,symbol"
    said = ran(
        ["perf", "report", "-i", str(data), *shape.split()],
        check=True,
        env={**os.environ, "PERF_BUILDID_DIR": "/nonexistent"},
    )
    counts: Counter[str] = Counter()
    for line in said.stdout.splitlines():
        words = line.split()
        if len(words) >= 3 and words[0].isdigit() and words[1] == "[k]":
            counts[words[2]] += int(words[0])
    return counts
