"""Reports of kernels in boots: what was booted and differs by boot, the label of emulation."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from matplotlib import pyplot

from netbench.api import load
from netbench.report import html, json, markdown, text
from netbench.report.blocks import Plot, Prose, Table, Value
from netbench.report.build import Report, build
from netbench.report.label import LABEL, VIRTUAL
from tests.support.synthetic import ROWS, Record, Synth

TWO = ("snd>rcv",)
KERNELS = {"kernel": ("6.1", "6.12"), "send": ("readwrite", "sendfile")}
KVM = {host: {"emulated": "no", "lab_guest": "KVM, vhost-net"} for host in ("snd", "rcv")}
TCG = {host: {"emulated": "QEMU TCG"} for host in ("snd", "rcv")}
COMPARE = {"factor": "kernel", "baseline": "6.1", "margin": 0.01}
BOOTED = Synth(KERNELS, runs=12, boots=4, between=0.01, pairs=TWO, compare=COMPARE)


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return build(BOOTED.write(tmp_path_factory.mktemp("r") / "r"))


def made(folder: Path, **fields: object) -> Report:
    return build(Synth(**{"pairs": TWO, **fields}).write(folder))  # type: ignore[arg-type]


def said(report: Report) -> str:
    return " ".join(text.render(report).split())


def tables(report: Report, section: str) -> list[Table]:
    return [block for block in report.section(section).blocks if isinstance(block, Table)]


def rows(table: Table) -> list[dict[str, Value]]:
    return [dict(zip([c.name for c in table.columns], row, strict=True)) for row in table.rows]


# --- boots ---


@pytest.mark.parametrize("place", [0, 1])
def test_each_cells_mean_in_each_boot_is_told(booted: Report, place: int) -> None:
    table, kernel = tables(booted, "boots")[1 + place], KERNELS["kernel"][place]
    assert table.title == f"throughput by boot, kernel {kernel}"
    runs = booted.source.result.ok
    for row in rows(table):
        mine = runs[(runs["kernel"] == kernel) & (runs["send"] == row["send"])]
        means = mine.groupby("boot")["throughput"].mean()
        assert [row[f"boot {boot}"] for boot in means.index] == pytest.approx(means.tolist())
        within = np.mean([group.var() for _, group in mine.groupby("boot")["throughput"]])
        between = max(0.0, means.var() - within / 3)
        assert row["within"] == f"{100 * within**0.5 / means.mean():.2f}"
        assert row["between"] == f"{100 * between**0.5 / means.mean():.2f}"


# --- emulation ---


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Report:
    synth = Synth(
        KERNELS, runs=8, boots=4, pairs=TWO, compare=COMPARE, facts={"snd": TCG["snd"]}
    )  # one end is enough
    return build(synth.write(tmp_path_factory.mktemp("r") / "r"))


@pytest.mark.parametrize("form", [text, html, markdown, json])
def test_every_form_has_as_many_labels_as_tables(
    emulated: Report, booted: Report, form: ModuleType
) -> None:
    count = sum(
        isinstance(block, Table) for section in emulated.sections for block in section.blocks
    )
    drawings = sum(
        isinstance(block, Plot) for section in emulated.sections for block in section.blocks
    )
    made = form.render(emulated).replace("\\", "")
    assert made.count(LABEL) >= count + (drawings if form is html else 0)
    assert LABEL not in form.render(booted)


def test_notebooks_are_told_too(emulated: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    result = load(emulated.source.result.path)
    assert result.label == result.cells.attrs["label"] == result.runs.attrs["label"] == LABEL
    for axes in (result.plot.means(), result.plot.order(), result.plot.samples(1)):
        assert axes.get_title(loc="right") == LABEL
    assert LABEL in result._repr_html_()
    pyplot.close("all")


BOTH = ("snd>rcv", "a>b")


@pytest.mark.parametrize(
    ("pairs", "facts", "label", "begins"),
    [
        (TWO, {host: {"emulated": "no"} for host in ("snd", "rcv")}, "", "4 cells ("),
        (TWO, KVM, VIRTUAL, "Virtual machine: costs are those of a VM. Guests run under"),
        (BOTH, TCG, LABEL, "Emulated: facts, not speed."),
    ],
)
def test_a_report_has_the_label_of_its_hosts(
    tmp_path: Path,
    pairs: tuple[str, ...],
    facts: dict[str, dict[str, str]],
    label: str,
    begins: str,
) -> None:
    report = made(tmp_path / "r", runs=3, pairs=pairs, facts=facts)
    found = json_module.loads(json.render(report))
    assert tables(report, "cells")[0].title == found["label"] == label
    for name, key in ((LABEL, "emulated"), (VIRTUAL, "virtual_machine")):
        named = {cell["pair"] for cell in found["cells"] if cell[key]}
        assert named == ({"snd>rcv"} if label == name else set())
    lines = [
        line
        for block in report.section("summary").blocks
        if isinstance(block, Prose)
        for line in block.lines
    ]
    assert any(line.startswith(begins) for line in lines)


# --- proof ---


def declared(kind: str, name: str, about: str, *flags: str) -> dict[str, object]:
    own = {"owner": "zerocopy", "unit": "count", "per": "stream"} if kind == "proof" else {}
    row = {"kind": kind, "owner": "", "name": name, "unit": "", "per": "run"}
    return {**row, **own, "flags": list(flags), "about": about}


ZEROCOPY = (
    declared("send", "zerocopy", "send(2)", "delivers"),
    declared("proof", "completions", "sends that the kernel completed", "must_move"),
    declared("proof", "copied", "completions that say so", "must_not_move"),
    declared("receive", "zerocopy", "mapped", "delivers"),
    declared("proof", "copied", "bytes that were copied"),
    declared("proof", "mapped", "bytes that were mapped"),
    declared("proof", "calls", "getsockopt(2) calls"),
)


@pytest.mark.parametrize(
    ("copied", "share", "engaged"), [((0, 0), 0, 0), ((12345, 12345), 100, 6), ((0, 12345), 50, 3)]
)
def test_whether_zero_copy_copied_is_told_by_descriptors_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    copied: tuple[int, int],
    share: float,
    engaged: int,
) -> None:
    def sent(record: Record) -> Record:
        n = copied[record["factors"]["pin"] == "apart"]
        record["proof"] = {
            "sender": {"completions": [[1], [12346], [12346]], "copied": [[0], [n], [n]]},
            "receiver": {"copied": [[0], [77], [77]]},  # of the same name, and may move
        }
        return record

    monkeypatch.setattr(
        "tests.support.synthetic.ROWS",
        [*(row for row in ROWS if row["kind"] != "proof"), *ZEROCOPY],
    )
    report = made(
        tmp_path / "r", factors={"send": ("zerocopy",), "pin": ("none", "apart")}, runs=3, edit=sent
    )
    assert (report.source.result.runs["engaged"] != "").sum() == engaged
    found = {
        (row["side"], row["counter"]): (row["rule"], row["kept"], row["of all"])
        for row in rows(tables(report, "proof")[0])
    }
    kept = {0: "all", 3: "3 of 6", 6: "0 of 6"}[engaged]
    assert found["sender", "copied"] == ("must stay 0", kept, share)
    assert found["receiver", "copied"] == ("", None, None)
