"""The control of a comparison: which campaigns have one, and what the plan says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netbench import campaign
from netbench.model import Campaign
from netbench.plan.plan import Plan
from tests.unit.test_plan import runs

FOUR = "sweep: {chunk: [1K, 2K, 4K, 8K]}\ncompare: {factor: chunk, baseline: 2K}\n"
TWO = "sweep: {chunk: [1K, 2K]}\ncompare: {factor: chunk, baseline: 2K}\n"


def parse(text: str, *sets: str, quick: bool = False) -> Campaign:
    return campaign.parse(f"netbench: 1\nname: c\n{text}", "c.yaml", sets, quick=quick)


def controls(text: str, *sets: str, quick: bool = False) -> list[str]:
    return [cell.id for cell in parse(text, *sets, quick=quick).cells if cell.control]


STREAMS = "sweep.streams=[1,2]"


@pytest.mark.parametrize(
    ("text", "sets", "expected"),
    [
        (FOUR, "", "chunk=2K"),  # a fifth of the runs
        (FOUR, "sweep.chunk=[1K,2K,4K]", ""),  # a quarter
        (FOUR, "compare.control=false", ""),
        (TWO, "compare.control=true", "chunk=2K"),
        (TWO, "", ""),  # a third
        ("sweep: {chunk: [1K, 2K, 4K, 8K]}\n", "", ""),  # nothing is compared
        # One in each context of the other factors, where the baseline is, and is compared with.
        (FOUR, STREAMS, "chunk=2K,streams=1 chunk=2K,streams=2"),
        (f"{FOUR}exclude: [{{chunk: 2K, streams: 2}}]\n", STREAMS, "chunk=2K,streams=1"),
        (
            f"{TWO}exclude: [{{chunk: 1K, streams: 2}}]\n",
            f"{STREAMS} compare.control=on",
            "chunk=2K,streams=1",
        ),
        (
            f"{FOUR}include: [{{chunk: 2K, receive_chunk: 8K}}]\n",
            "",
            "chunk=2K,receive_chunk=8K",  # it has what include adds to the baseline
        ),
    ],
)
def test_controls_are_by_default_where_they_are_less_than_a_quarter_of_the_runs(
    text: str, sets: str, expected: str
) -> None:
    named = [f"{cell},control" for cell in expected.split()]
    assert controls(text, *sets.split()) == named
    assert controls(text, *sets.split(), quick=True) == named


def test_a_control_is_the_baseline_in_all_but_its_name() -> None:
    found = parse(FOUR)
    baseline, control = found.cells[1], found.cells[-1]
    assert replace(control, id=baseline.id, control=False) == baseline
    assert found.compare
    assert found.compare.control


def test_the_control_of_a_kernel_is_in_the_boots_of_its_baseline() -> None:
    text = (
        "sweep: {kernel: [a, b, c, d]}\ncompare: {factor: kernel, baseline: b}\n"
        "repeat: {min: 4, boots: 2}\n"
    )
    plan = Plan(parse(text))
    for block in range(plan.blocks or 0):
        boot = plan.boot(block)
        ran = [run.unit.cell.id for run in runs(plan, block)]
        assert boot
        expected = [f"kernel={boot.kernel}"] + ["kernel=b,control"] * (boot.kernel == "b")
        assert sorted(ran) == expected
