"""What reports say of made-up results: `python -m tests.unit.report.test_snapshots` writes it."""

from __future__ import annotations

import json as json_module
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from netbench.report import csv, html, json, markdown, text
from netbench.report.blocks import Plot, Table
from netbench.report.build import Report, build
from tests.support.fleets import MadeFleet, bisection, names, ring
from tests.support.synthetic import Record, Synth, copying, failed
from tests.unit.report.test_profile_section import NO_SG, SG, more, stacks_of, store
from tests.unit.report.test_requests import made

EXPECTED = Path(__file__).with_name("expected")
TWO = ("snd>rcv",)
SEND = {"factor": "send", "baseline": "readwrite"}
COMPARE = {**SEND, "margin": 0.01}
SENDS = {"send": ("readwrite", "sendfile")}
KERNELS = {"kernel": ("6.1", "6.12"), **SENDS}
LONG = {
    "send": ("readwrite", "sendfile"),
    "sysctl.net.ipv4.tcp_limit_output_bytes": ("262144", "1048576"),
    "sender.tso": ("on", "off"),
}
TCG = {host: {"emulated": "QEMU TCG"} for host in ("snd", "rcv")}
LEVELS = {"send": ("readwrite", "mmap", "sendfile", "splice")}
RANGE = {"min": 10, "max": 30}


def messy(record: Record) -> Record:
    """A bit of everything that goes wrong."""
    if record["run"] % 17 == 3:
        why = (
            "connect: no route to host 10.0.0.2, and a reason <b>that</b> is so long that it needs"
        )
        return failed(record, "failed", f"{why} | several lines")
    if record["factors"]["send"] == "sendfile":
        record["proof"]["sender"]["sendfile_calls"] = [[0], [0], [0]]
    return record


def toggled(record: Record) -> Record | None:
    """TSO as a factor: a cell refused, a run in which it is changed, features that move along."""
    tso, size = record["factors"]["tso"], record["factors"]["socket_buffer"]
    if tso == "on" and size == "32K":
        why = "snd: tso: on: tx-tcp-segmentation is fixed"
        return failed(record, "refused", why) if record["block"] == 0 else None
    if tso == "off":
        moved = ("snd.tx-tcp-mangleid-segmentation", "snd.tx-gso-partial")
        record["settings"]["moved"] = {key: ["on", "off"] for key in moved}
    elif record["block"] == 3 and size == "64K":
        record["settings"]["sender"]["tso"]["after"] = "off"
        record["sender"]["rusage"]["minor_faults"] = [0, 10**6]
        why = "sender: tso read on before the run and off after it; something else changes it"
        record |= {"status": "failed", "reason": why}
    return record


def idle(record: Record) -> Record:
    """A method that moves no data: steps and nothing else."""
    for side in ("sender", "receiver"):
        del record[side]["flow"]["bytes"], record[side]["tcp"]
    return record | {"settings": {"sender": {}, "receiver": {}, "moved": {}}}


def shifted(record: Record) -> Record:
    """A control that moves a third less than its baseline."""
    if record.get("control"):
        record["receiver"]["flow"]["bytes"][1][0] //= 3
    return record


def profiled(folder: Path, several: bool = True) -> Path:
    compare = {"factor": "sg", "baseline": "off"}
    made = Synth({"sg": ("off", "on")}, compare=compare, pairs=("a>b",)).write(folder)
    if not several:
        return store(made, [("sg=off", stacks_of(NO_SG)), ("sg=on", stacks_of(SG))])
    runs = [
        (f"sg={sg}", more(of, by)) for sg, of in (("off", NO_SG), ("on", SG)) for by in (-5, 0, 5)
    ]
    return store(made, runs)


def written(made: Synth, words: str, folder: Path) -> Path:
    """With more in campaign.yaml."""
    with (made.write(folder) / "campaign.yaml").open("a") as file:
        file.write(words)
    return folder


def without_tso(record: Record) -> Record | None:
    """What goes along with tso=off, on one kernel; iperf3 runs with tso=on alone: nothing does."""
    if (record["factors"]["tso"], record["factors"]["tool"]) == ("off", "iperf3"):
        return None
    for side in ("sender", "receiver"):
        record[side]["softirq"] = {
            "namespace": [1, 1],
            "link_rx_packets": [0, 500],
            "link_tx_packets": [0, 500],
        }
    if record["factors"]["tso"] == "off":
        gso = {f"{host}.tx-generic-segmentation": ["on", "off"] for host in ("snd", "rcv")}
        record["settings"]["moved"] = {"snd.tx-udp-segmentation": ["on", "off"]} | gso
        record["sender"]["tcp"]["retransmits"] = [[0], [4]]
    return record


def paced(factors: Mapping[str, str]) -> tuple[float, float, float]:
    """1 Gb/s, where there is a rate; sendfile takes half the CPU."""
    is_cheap = factors["send"] == "sendfile"
    fastest = 10.8 if is_cheap else 9.0
    cost = 0.5 if is_cheap else 1.0
    return fastest if factors.get("rate") == "none" else 1.0, 0.4 * cost, 0.5 * cost


METHODS = {"send": ("readwrite", "splice", "zerocopy"), "receive": ("read", "mmap", "vmsplice")}
TSO = {"socket_buffer": ("32K", "64K", "128K"), "tso": ("on", "off")}
PACED = Synth(
    {**SENDS, "pin": ("none", "apart")}, spread=0.0004, pairs=TWO, compare=SEND, truth=paced
)
PROMISED = partial(Synth, LEVELS, spread=0.002)
BOOTS = partial(Synth, KERNELS, runs=12, boots=4, pairs=TWO)
# name: what writes the result, and the sections that are told; none for all of them
CASES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "one kernel": (Synth().write, ()),
    "two kernels": (Synth(pairs=TWO, compare=COMPARE).write, ()),
    "long factors": (
        Synth(LONG, pairs=("a-long-sender>a-long-receiver",), compare=COMPARE, runs=6).write,
        ("summary", "cells", "environment"),
    ),
    "two pairs": (Synth(pairs=("a>b", "b>a"), runs=4).write, ("summary", "cells")),
    "messy": (
        Synth(pairs=("a>b",), edit=messy, spread=0.1, repeat={"min": 4, "max": 30}).write,
        ("summary", "cells", "cautions", "proof"),
    ),
    "one run": (Synth({"send": ("sendfile",)}, runs=1).write, ("summary", "cells", "promise")),
    "nothing swept": (Synth({}, runs=5).write, ("summary", "cells", "method")),
    "no run": (Synth(runs=3, edit=lambda record: None).write, ()),
    "all refused": (
        Synth(runs=1, edit=lambda record: failed(record, "refused", "no")).write,
        ("summary", "cautions"),
    ),
    "settings": (
        Synth(TSO, pairs=TWO, edit=toggled, compare={"factor": "tso", "baseline": "off"}).write,
        ("summary", "cells", "cautions", "settings"),
    ),
    "no data": (Synth({"send": ("null",)}, edit=idle).write, ("summary", "cells", "processes")),
    "boots": (BOOTS(between=0.01, compare={"factor": "kernel", "baseline": "6.1"}).write, ()),
    "builds": (BOOTS(between=0.01, builds=2, apart=0.02).write, ("summary", "boots", "method")),
    "boots far apart": (BOOTS(between=0.05, spread=0.001).write, ("boots",)),
    "kernels booted once": (Synth(KERNELS, runs=10, pairs=TWO).write, ("boots", "cautions")),
    "many boots": (
        Synth({"send": ("sendfile",)}, runs=20, boots=10, between=0.02, pairs=TWO).write,
        ("boots",),
    ),
    "emulated": (BOOTS(facts={"snd": TCG["snd"]}).write, ("summary", "boots", "cells")),
    "matrix": (Synth(METHODS, runs=5, pairs=TWO, edit=copying).write, ("summary", "matrix")),
    "other factors": (
        Synth(
            {**SENDS, "pin": ("none", "apart"), "socket_buffer": ("32K", "128K")}, compare=SEND
        ).write,
        ("summary", "comparison", "factors"),
    ),
    "a rate": (
        partial(written, PACED, "transfer: {rate: 1Gb/s}\n"),
        ("summary", "comparison", "factors"),
    ),
    "an open loop": (lambda folder: made(folder)[1], ("summary", "requests")),
    "what goes along": (
        partial(
            written,
            Synth(
                {"tso": ("on", "off"), "send": ("readwrite",), "tool": ("none", "iperf3")},
                compare={"factor": "tso", "baseline": "on"},
                repeat={"metrics": ["throughput", "sender_cpu"]},
                edit=without_tso,
            ),
            "transfer: {chunk: 64K, source: {files: 1, size: 64M}, bytes: 128M}\n"
            "settings: {mtu: 9000}\nkernels: {old: {release: '6.1'}, new: {release: '6.12'}}\n",
        ),
        ("summary", "cells", "cautions", "interrupts"),
    ),
    "some cells with a rate": (
        Synth(
            {**SENDS, "rate": ("1Gb/s", "none")},
            spread=0.0004,
            pairs=TWO,
            compare=SEND,
            truth=paced,
        ).write,
        ("summary",),
    ),
    "CPU of a process": (
        Synth(SENDS, compare=SEND, repeat={"metrics": ["sender_cpu"]}).write,
        ("summary", "cells", "comparison"),
    ),
    "a profile run each": (partial(profiled, several=False), ("summary", "profile")),
    "profiles": (profiled, ("summary", "profile")),
    "a control agrees": (
        PROMISED(compare={**SEND, "control": True}).write,
        ("summary", "comparison", "promise"),
    ),
    "a control does not": (
        PROMISED(compare={**SEND, "control": True}, edit=shifted).write,
        ("comparison", "promise", "cautions"),
    ),
    "precise": (PROMISED(compare=SEND, repeat=RANGE).write, ("promise", "method")),
    "not precise": (Synth(LEVELS, compare=SEND, repeat=RANGE, spread=0.2).write, ("promise",)),
    "drift": (PROMISED(repeat=RANGE, drift=0.1).write, ("promise", "cautions")),
    "a slow host": (
        MadeFleet(
            pairs=bisection(names(60), 8),
            runs=2,
            sends={"n017": -0.3},
            receives={"n017": -0.3},
            facts={n: {"speed": "10000" if n == "n017" else "25000"} for n in names(60)},
            groups={"rack1": names(60)[:30]},
        ).write,
        ("summary", "fleet"),
    ),
    "a quiet fleet": (MadeFleet(pairs=ring(names(30)), runs=4).write, ("fleet",)),
}

DRAWN = ("two kernels", "messy", "no run", "boots", "an open loop", "profiles", "a quiet fleet")


def said(report: Report, keys: tuple[str, ...]) -> str:
    told = [s for s in report.sections if not keys or s.key in keys]
    return text.render(report._replace(sections=tuple(told)))


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    write, keys = CASES[request.param]
    return request.param, build(write(tmp_path_factory.mktemp("r") / "r")), keys


def test_a_report_says_what_it_did(case: Any) -> None:
    name, report, keys = case
    assert said(report, keys) == (EXPECTED / f"{name}.txt").read_text(encoding="utf-8")


def test_no_line_is_too_long(case: Any) -> None:
    for width in (60, 80, 120):
        lines = text.render(case[1], width).split("\n")
        assert [line for line in lines if len(line) > width or line != line.rstrip()] == []


def test_json_is_strict_and_complete(case: Any) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    report = case[1]
    found = json_module.loads(json.render(report), parse_constant=refuse)
    assert [s["key"] for s in found["sections"]] == [s.key for s in report.sections]
    assert len(found["cells"]) == len(report.source.cells)
    assert [c["kind"] for c in found["cautions"]] == [c.kind for c in report.source.cautions]
    assert csv.render(report)


def test_markdown_tables_are_square(case: Any) -> None:
    tables = re.findall(r"(?:^\|.*\n)+", markdown.render(case[1]), re.MULTILINE)
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    shown = [b for s in case[1].sections for b in s.blocks if isinstance(b, Table)]
    assert len(tables) == len(shown)


class Page(HTMLParser):
    """Gathers tags that stay open, tags, and addresses."""

    VOID = ("meta", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "action", "srcset")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize(
    "case",
    [name if name in DRAWN else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
    indirect=True,
)
def test_html_is_one_file(case: Any) -> None:
    report = case[1]
    page, made = Page(), html.render(report)
    page.feed(made)
    assert page.open == []
    assert [a for a in page.addresses if not a.startswith(("#", "data:"))] == []
    assert not {"link", "iframe", "object", "embed", "form"} & set(page.tags)
    assert "http" not in made.replace("http-equiv", "").replace("https://www.speedscope.app", "")
    assert re.findall(r"<script([^>]*)>", made) == [""]
    assert "@import" not in made
    ids = re.findall(r'\bid="([^"]+)"', made)
    assert len(ids) == len(set(ids))
    drawings = [b for s in report.sections for b in s.blocks if isinstance(b, Plot)]
    assert page.tags.count("figure") == sum(plot.kind != "flame" for plot in drawings)
    assert "<b>that</b>" not in made
    if case[0] == "two kernels":
        assert made == html.render(build(report.source.result.path)), "it is reproducible"


if __name__ == "__main__":
    if not sys.argv[1:]:
        from tests.unit.report.test_letter import LETTERS, build, letter

        shutil.rmtree(EXPECTED, ignore_errors=True)
        EXPECTED.mkdir()
        for name, make in LETTERS.items():
            with tempfile.TemporaryDirectory() as folder:
                told = letter.render(build(make.write(Path(folder) / "r")))
            (EXPECTED / f"letter, {name}.txt").write_text(f"{told}\n", encoding="utf-8")
    for name in sys.argv[1:] or CASES:
        write, keys = CASES[name]
        with tempfile.TemporaryDirectory() as folder:
            report = build(write(Path(folder) / "r"))
            (EXPECTED / f"{name}.txt").write_text(said(report, keys), encoding="utf-8")
