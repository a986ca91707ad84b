"""A comparison as text for a cover letter: each line against the records, at 72 columns."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from netbench import api
from netbench.base.errors import ReportError
from netbench.report import letter
from netbench.report.build import build
from netbench.report.letter import hardware
from tests.support.local import call
from tests.support.paths import SAMPLE
from tests.support.synthetic import Record, Synth, failed

SEND = {"factor": "send", "baseline": "readwrite"}
SENDS = {"send": ("readwrite", "sendfile")}
EXPECTED = Path(__file__).with_name("expected")
ROW = re.compile(r"(.*?)  +(\S+) +(\S+) +(\S+)% +(\S+) \.\. (\S+)  ([\w ]+)\*?")


def throughputs() -> dict[str, dict[int, float]]:
    """Of the sample's raw counters, Gb/s by cell and block."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for line in (SAMPLE / "records.jsonl").read_text().splitlines():
        record: dict[str, Any] = json.loads(line)
        if record["status"] == "ok" and not record.get("control"):
            (begun,), (ended,) = record["receiver"]["flow"]["bytes"]
            t0, t1 = record["receiver"]["time_ns"]
            found[record["cell"]][record["block"]] = (ended - begun) * 8 / (t1 - t0)
    return found


def test_the_samples_letter_is_that_of_its_records() -> None:
    done = call("report", SAMPLE, "--letter")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 72
    facts = json.loads((SAMPLE / "facts.json").read_text())["hosts"]["here"][-1]["facts"]
    assert f"Linux {facts['kernel']}, loopback, MTU {facts['mtu']}" in " ".join(lines)
    measured, seen = throughputs(), 0
    for line in lines:
        row = ROW.fullmatch(line)
        if not row or not row[1].endswith("Gb/s"):
            continue
        label, *numbers, verdict = row.groups()
        pin = f"pin={label.split()[0]}"
        base, level = (
            next(by_block for cell, by_block in measured.items() if f"send={send},{pin}" in cell)
            for send in ("readwrite", "sendfile")
        )
        means = (float(np.mean(list(each.values()))) for each in (base, level))
        d = [math.log(level[block] / base[block]) for block in base.keys() & level.keys()]
        change = 100 * math.expm1(float(np.mean(d)))
        assert [float(x) for x in numbers[:3]] == [
            *(pytest.approx(mean, rel=1e-3) for mean in means),
            pytest.approx(change, abs=0.06),
        ]
        low, high = map(float, numbers[3:])
        plain = scipy.stats.t.interval(0.95, len(d) - 1, np.mean(d), scipy.stats.sem(d))
        assert low <= 100 * math.expm1(plain[0]) + 0.06  # corrected: never narrower
        assert high >= 100 * math.expm1(plain[1]) - 0.06
        assert (verdict == "better") == (low > 0)
        seen += 1
    assert seen == 3


def some_failed(record: Record) -> Record:
    late = record["factors"]["send"] == "splice" and record["block"] == 3
    return failed(record, "failed", "reset") if late and not record.get("control") else record


LONG = ("a-kernel-with-a-long-name", "another-kernel-with-a-name")
LETTERS = {
    "what a reviewer asks for": Synth(
        factors={"send": ("readwrite", "sendfile", "splice")},
        compare={**SEND, "control": True},
        runs=12,
        edit=some_failed,
    ),
    "contexts": Synth(
        factors={**SENDS, "pin": ("none", "apart"), "socket_buffer": ("32K", "64K", "128K")},
        compare=SEND,
    ),
    "kernels": Synth(
        factors={"kernel": ("6.1", "6.12")},
        boots=3,
        runs=6,
        compare={"factor": "kernel", "baseline": "6.1"},
        kernels={"6.1": {"kernel": "6.1.9-0123456789ab"}, "6.12": {"kernel": "6.12.4"}},
    ),
    "one block": Synth(runs=1, compare=SEND),
    "long names": Synth(factors={"send": LONG}, compare={"factor": "send", "baseline": LONG[0]}),
}


@pytest.mark.parametrize("name", LETTERS)
def test_a_letter_says_what_it_did(name: str, tmp_path: Path) -> None:
    lines = letter.render(build(LETTERS[name].write(tmp_path / "r"))).splitlines()
    assert lines == (EXPECTED / f"letter, {name}.txt").read_text().splitlines()
    assert max(map(len, lines)) <= 72


def test_without_a_comparison_there_is_no_letter(tmp_path: Path) -> None:
    folder = Synth().write(tmp_path / "r")
    with pytest.raises(ReportError, match="give it `compare: "):
        letter.render(build(folder))
    done = call("report", folder, "--letter")
    assert (done.returncode, done.stdout) == (2, "")


def test_forms_that_are_none_are_refused() -> None:
    done = call("report", SAMPLE, "--letter", "--json")
    assert done.returncode == 2
    assert "give one of them" in done.stderr


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (
            {
                "cpu_model": "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz",
                "sockets": "2",
                "cores": "28",
            },
            "2x Intel Xeon E5-2680 v4 (28 cores)",
        ),
        (
            {"nic_driver": "mlx5_core", "speed": "100000", "nic_firmware": "22.36", "mtu": "4096"},
            "mlx5_core, 100000 Mb/s, firmware 22.36, MTU 4096",
        ),
        ({"nic_driver": "ice", "pci_width": "16", "pci_speed": "16.0 GT/s"}, "PCIe x16, 16.0 GT/s"),
    ],
)
def test_hardware_is_told_without_names(tmp_path: Path, facts: dict[str, str], told: str) -> None:
    result = build(
        Synth(facts={"snd": facts, "rcv": facts}, pairs=("snd>rcv",)).write(tmp_path / "r")
    ).source.result
    line = hardware(result)
    assert told in line
    assert not re.search(r"\b(snd|rcv)\b", line)


def test_what_goes_along_is_told_with_what_is_compared(tmp_path: Path) -> None:
    gso = {"off": {"snd.tx-generic-segmentation": ["on", "off"]}, "on": {}}
    edit = lambda r: r["settings"].update(moved=gso[r["factors"]["tso"]]) or r  # noqa: E731
    asked = {"factor": "tso", "baseline": "on"}
    folder = Synth({"tso": ("on", "off")}, compare=asked, edit=edit).write(tmp_path / "r")
    for text in letter.render(build(folder)), api.compare(folder).text():
        assert "Not tso=off against tso=on alone: with tso=off came gso off." in text
