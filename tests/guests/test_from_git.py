"""From a git repository to a letter, in guests: kernels of Debian's linux-source are built, booted
and judged. Minutes to build, minutes to measure: slow.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.linux_source import TCP, Linux

pytestmark = [
    pytest.mark.root,
    pytest.mark.guest,
    pytest.mark.slow,
    pytest.mark.timeout(4000),
]


def verdict(letter: str) -> str:
    """Of throughput."""
    row = re.search(r"^Gb/s .*  (\w+)\*?$", letter, re.MULTILINE)
    assert row, letter
    return row[1]


@pytest.mark.parametrize(
    ("patched", "verdicts"), [("slow", {"worse"}), ("comment", {"inconclusive", "equivalent"})]
)
def test_a_patch_is_judged_by_what_it_does(
    linux: Linux, tmp_path: Path, patched: str, verdicts: set[str]
) -> None:
    suite = tmp_path / "write.yaml"
    suite.write_text(
        "transfer: {send: write, receive: trunc, chunk: 64K, congestion: cubic, duration: 500ms,"
        " warmup: 200ms}\n"
    )
    words = ("--repo", str(linux.place), "--suite", str(suite), "--time", "6m")
    done = linux.netbench(tmp_path, "judge", "--base", "base", "--patched", patched, *words)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    assert verdict(done.stdout) in verdicts
    assert max(map(len, done.stdout.splitlines())) <= 72


def test_the_culprit_of_eight_commits_is_named(linux: Linux, tmp_path: Path) -> None:
    """It costs much: emulated guests differ by tens of percent from boot to boot."""
    linux.git("checkout", "-q", "-B", "series", "base")
    for number in range(1, 9):
        text = linux.copying(20) if number >= 5 else linux.text
        (linux.place / TCP).write_text(f"/* {number} */\n{text}")
        linux.commit(f"c{number}")
    linux.git("checkout", "-q", "master")
    git = f"git: {linux.place}"
    file = tmp_path / "series.yaml"
    file.write_text(
        "netbench: 1\nname: series\nlab: qemu\nhosts: {snd: {}, rcv: {}}\n"
        f"kernels: {{base: {{{git}, rev: base}}, tried: {{{git}, rev: c8}}}}\n"
        "transfer: {receive: trunc, chunk: 64K, congestion: cubic, duration: 500ms,"
        " warmup: 200ms}\n"
        "sweep: {kernel: [base, tried]}\ncompare: {factor: kernel, baseline: base}\n"
        "repeat: {min: 18, max: 18, boots: 6}\n"
    )
    words = ("--good", "base", "--bad", "c8", str(file), "--fail-if", "throughput<-40%")
    done = linux.netbench(tmp_path, "bisect", *words)
    assert done.returncode in (0, 1), done.stderr
    print(done.stdout)
    culprit = linux.git("rev-parse", "c5")
    assert culprit in done.stdout.rpartition("first bad commit")[2]
