"""Builds as the unit: comparisons against their definition, and what is said of builds."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from netbench import campaign
from netbench.cli.plan import text as plan_text
from netbench.plan.plan import Plan
from netbench.read.cautions.rule import Caution
from netbench.read.cells import cells_of
from netbench.read.load import load
from netbench.read.result import Result
from netbench.report import letter
from netbench.report.build import build as build_report
from netbench.report.source import Source
from netbench.stats.by_boot import what_boots_buy
from tests.support.synthetic import Synth

TWO = ("snd>rcv",)
KERNELS = {"kernel": ("base", "patched"), "send": ("readwrite", "sendfile")}
ASKED = {"factor": "kernel", "baseline": "base"}


def made(folder: Path, **fields: object) -> Result:
    """4 builds of each of two kernels, 2 boots of each, 3 blocks a boot, unless said otherwise."""
    usual = {"factors": KERNELS, "pairs": TWO, "runs": 24, "boots": 8, "builds": 4}
    return load(Synth(**{**usual, "compare": ASKED, **fields}).write(folder))  # type: ignore[arg-type]


# --- comparisons and cells ---


def test_a_comparison_is_over_paired_builds(tmp_path: Path) -> None:
    result = made(tmp_path / "r", between=0.01, apart=0.03)
    (found, _) = Source(result).compare("kernel", "base", "throughput")
    assert (found.unit, found.n) == ("build", 4)
    runs = result.ok[result.ok["send"] == found.context["send"]]
    logs = np.log(runs["throughput"]).groupby([runs["kernel"], runs["boot"]], observed=True).mean()
    d = logs["patched"].to_numpy() - logs["base"].to_numpy()  # by round
    by_build = d.reshape(2, 4).mean(axis=0)  # the rounds of builds 1 to 4, twice
    assert math.log(found.ratio) == pytest.approx(by_build.mean())
    assert found.p == pytest.approx(scipy.stats.ttest_1samp(by_build, 0).pvalue)


def test_a_factor_within_boots_is_compared_over_builds_too(tmp_path: Path) -> None:
    found = Source(made(tmp_path / "r")).compare("send", "readwrite", "throughput")
    assert {(c.unit, c.n) for c in found} == {("build", 4)}
    assert {c.verdict for c in found} == {"better"}


def test_with_builds_of_one_kernel_alone_the_boot_is_the_unit(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    made(folder)
    for name in ("facts.json", "plan.json"):
        told = json.loads((folder / name).read_text())
        entries = told["boots"] if "boots" in told else told["hosts"]["snd"] + told["hosts"]["rcv"]
        for entry in entries:
            if entry.get("on", entry.get("kernel")) == "patched":
                del entry["build"]
        (folder / name).write_text(json.dumps(told))
    result = load(folder)
    (found, _) = Source(result).compare("kernel", "base", "throughput")
    assert (found.unit, found.n) == ("boot", 8)
    units = {c.factors["kernel"]: c.unit for c in cells_of(result)}
    assert units == {"base": "build", "patched": "boot"}
    (warned,) = (c for c in Source(result).cautions if c.kind == "builds")
    assert warned.what.startswith("One build of patched:")


def test_a_cell_s_interval_is_over_the_means_of_its_builds(tmp_path: Path) -> None:
    result = made(tmp_path / "r", between=0.01, apart=0.03)
    for cell in cells_of(result):
        runs = result.ok[result.ok["cell"] == cell.cell]
        means = runs.groupby(["build", "boot"])["throughput"].mean().groupby("build").mean()
        interval = cell.intervals["throughput"]
        assert (cell.unit, interval.n, len(means)) == ("build", 4, 4)
        assert interval.mean == pytest.approx(means.mean())
        assert interval.sd == pytest.approx(means.std())


def test_a_cell_whose_builds_lie_apart_has_not_converged(tmp_path: Path) -> None:
    """Over boots its interval would be narrow enough."""
    asked = {"compare": None, "spread": 0.001, "repeat": {"precision": 0.05}}
    apart = made(tmp_path / "a", apart=0.05, boots=24, **asked)
    assert {c.status for c in cells_of(apart)} == {"max"}
    assert {c.status for c in cells_of(made(tmp_path / "b", **asked))} == {"converged"}


# --- epochs ---


def test_builds_of_a_kernel_may_differ_in_their_release(tmp_path: Path) -> None:
    folder = Synth(factors=KERNELS, pairs=TWO, runs=8, boots=4, builds=2).write(tmp_path / "r")

    def rewrite(change: object, boots: tuple[int, ...] = ()) -> Result:
        told = json.loads((folder / "facts.json").read_text())
        for entry in told["hosts"]["snd"]:
            if entry.get("build") == 2 and (not boots or entry["boot"] in boots):
                entry["facts"] |= change  # type: ignore[operator]
        (folder / "facts.json").write_text(json.dumps(told))
        return load(folder)

    kernel = {"kernel": "6.9.9", "kernel_build": "#2", "command_line": "quiet", "driver": "x 6.9.9"}
    assert set(rewrite(kernel).runs["excluded"]) == {""}
    (last,) = {max(b for b, k in rewrite({}).kernels.items() if k == "base")}
    other = rewrite({"kernel": "6.9.10"}, (last,))
    why = set(other.runs.loc[other.runs["kernel"] == "base", "excluded"])
    assert any("6.9.10" in each for each in why), "two boots of one build differ"
    machine = rewrite({"kernel": "6.9.9", "cpu_model": "Another"})
    assert any("cpu_model" in each for each in set(machine.runs["excluded"]))


def cautions(result: Result) -> list[Caution]:
    return [c for c in Source(result).cautions if c.kind == "builds"]


def test_single_builds_are_cautioned_with_what_layout_alone_moved(tmp_path: Path) -> None:
    (warned,) = cautions(made(tmp_path / "a", builds=1))
    assert warned.what.startswith("One build of base, patched: code layout alone may")
    assert "TCP_RR by 2 to 18%, TCP_STREAM by -1 to +2%" in warned.evidence
    assert "builds: 4" in warned.remedy
    assert cautions(made(tmp_path / "b")) == []
    assert cautions(made(tmp_path / "c", factors={"send": ("sendfile",)}, compare=None)) == []
    (few,) = cautions(made(tmp_path / "d", builds=2))
    assert few.what == "The kernels have 2 builds, which proves little."


PLANNED = """\
netbench: 1
name: k
lab: qemu
hosts: {snd: {}, rcv: {}}
kernels: {base: KERNEL, patched: KERNEL}
sweep: {kernel: [base, patched]}
compare: {factor: kernel, baseline: base}
repeat: {min: 24, max: 24, boots: 8}
"""
BUILDS = "{git: /x, rev: v1, builds: 4}"


def test_the_plan_says_what_its_builds_buy() -> None:
    lines = plan_text(Plan(campaign.parse(PLANNED.replace("KERNEL", BUILDS), "k.yaml")))
    said = " ".join(lines.split())
    assert max(map(len, lines.splitlines())) <= 80
    assert "4 builds of each of 2 kernels, 2 boots of each build, 3 runs of each cell" in said
    assert "two builds prove next to nothing" in what_boots_buy(4, 3, kernels=2, builds=2)[1]


def test_the_letter_s_head_names_the_levels(tmp_path: Path) -> None:
    made(tmp_path / "r")
    head = " ".join(letter.render(build_report(tmp_path / "r")).split())
    assert "base); 4 builds x 2 boots x 3 blocks; 95% intervals" in head
