"""Several builds of one commit: guests boot them in turn. Seconds to link, minutes to compile and
to measure: slow.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from netbench.kernels.compile import Told, build
from netbench.kernels.source import digest
from netbench.model import Kernel
from tests.support.linux_source import Linux
from tests.support.running import stored_records

pytestmark = [pytest.mark.root, pytest.mark.guest, pytest.mark.slow]

TOLD = Told(lambda line: None, lambda line: None)


def test_guests_boot_the_builds_of_a_kernel_in_turn(
    linux: Linux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same two builds under two names are no better than each other. Of the letter's metrics one
    in twenty would be by an interval of 95%.
    """
    kernel = f"{{git: {linux.place}, rev: base, builds: 2}}"
    file = tmp_path / "aa.yaml"
    file.write_text(
        "netbench: 1\nname: aa\nlab: qemu\nhosts: {snd: {}, rcv: {}}\n"
        f"kernels: {{base: {kernel}, again: {kernel}}}\n"
        "transfer: {receive: trunc, chunk: 64K, congestion: cubic, duration: 300ms,"
        " warmup: 100ms}\n"
        "sweep: {kernel: [base, again]}\ncompare: {factor: kernel, baseline: base}\n"
        "repeat: {min: 8, max: 8, boots: 4, confidence: 99.9%}\n"
    )
    done = linux.netbench(tmp_path, "run", str(file))
    assert done.returncode == 0, done.stderr
    (result,) = (tmp_path / "results").glob("*/*")
    entries = json.loads((result / "facts.json").read_text())["hosts"]["snd"]
    ran = [(each["on"], each["build"]) for each in entries if each.get("on")]
    assert sorted(ran) == [(name, at) for name in ("again", "base") for at in (1, 1, 2, 2)]
    journal = [json.loads(line) for line in (result / "journal.jsonl").open()]
    told = [each["kernel"] for each in journal if each["kind"] == "boot" and each["host"] == "snd"]
    assert told[:8] == [f"{name}#{build}" for name, build in ran]
    named = {"git": str(linux.place), "rev": "base", "config": "tinyconfig", "fragment": "lab"}
    monkeypatch.setenv("XDG_CACHE_HOME", str(linux.cache))
    built = [build(each, TOLD) for each in Kernel("k", layouts=2, **named).each]  # type: ignore[arg-type]
    images = [digest(next(place.glob("tar-install/boot/vmlinuz-*"))) for place in built]
    started = {digest(file) for file in (linux.cache / "netbench").glob("lab/kernels/*/image")}
    assert len({*images} & started) == 2
    letter = linux.netbench(tmp_path, "report", str(result), "--letter")
    assert letter.returncode == 0, letter.stderr
    print(letter.stdout)
    assert "2 builds x 2 boots x 2 blocks" in " ".join(letter.stdout.split())
    assert "inconclusive" in letter.stdout
    assert not re.search(r"  (better|worse)\*?$", letter.stdout, re.MULTILINE)
    records = stored_records(result)
    assert {record["status"] for record in records} == {"ok"}
