"""The control of a comparison: which campaigns have one, and what the plan says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netbench import campaign
from netbench.model import Campaign
from netbench.plan.plan import Plan
from netbench.plan.plan_json import plan_json
from tests.unit.test_plan import runs

FOUR = "sweep: {chunk: [1K, 2K, 4K, 8K]}\ncompare: {factor: chunk, baseline: 2K}\n"
TWO = "sweep: {chunk: [1K, 2K]}\ncompare: {factor: chunk, baseline: 2K}\n"
REPEAT = "repeat: {min: 3, max: 6, precision: 5%}\n"


def parse(text: str, *sets: str, quick: bool = False) -> Campaign:
    return campaign.parse(f"netbench: 1\nname: c\n{text}", "c.yaml", sets, quick=quick)


def controls(text: str, *sets: str, quick: bool = False) -> list[str]:
    return [cell.id for cell in parse(text, *sets, quick=quick).cells if cell.control]


@pytest.mark.parametrize(
    ("text", "sets", "expected"),
    [
        pytest.param(FOUR, (), ["chunk=2K,control"], id="four levels: a fifth of the runs"),
        pytest.param(FOUR, ("sweep.chunk=[1K,2K,4K]",), [], id="three levels: a quarter"),
        pytest.param(FOUR, ("compare.control=false",), [], id="not wanted"),
        pytest.param(TWO, ("compare.control=true",), ["chunk=2K,control"], id="wanted"),
        pytest.param(TWO, (), [], id="two levels: a third"),
        pytest.param(
            "sweep: {chunk: [1K, 2K, 4K, 8K]}\n", (), [], id="nothing is compared, so no control"
        ),
        pytest.param(
            FOUR,
            ("sweep.streams=[1,2]",),
            ["chunk=2K,streams=1,control", "chunk=2K,streams=2,control"],
            id="one in each context of the other factors",
        ),
        pytest.param(
            FOUR + "exclude: [{chunk: 2K, streams: 2}]\n",
            ("sweep.streams=[1,2]",),
            ["chunk=2K,streams=1,control"],
            id="none where the baseline is excluded",
        ),
        pytest.param(
            TWO + "exclude: [{chunk: 1K, streams: 2}]\n",
            ("sweep.streams=[1,2]", "compare.control=on"),
            ["chunk=2K,streams=1,control"],
            id="none where nothing is compared with the baseline",
        ),
        pytest.param(
            FOUR + "include: [{chunk: 2K, receive_chunk: 8K}]\n",
            (),
            ["chunk=2K,receive_chunk=8K,control"],
            id="it has what include adds to the baseline",
        ),
    ],
)
def test_controls_are_by_default_where_they_are_less_than_a_quarter_of_the_runs(
    text: str, sets: tuple[str, ...], expected: list[str]
) -> None:
    assert controls(text, *sets) == expected
    assert controls(text, *sets, quick=True) == expected


def test_a_control_is_the_baseline_in_all_but_its_name() -> None:
    found = parse(FOUR)
    baseline, control = found.cells[1], found.cells[-1]
    assert replace(control, id=baseline.id, control=False) == baseline
    assert found.compare
    assert found.compare.control


def test_the_plan_has_controls_among_cells_order_and_runs() -> None:
    plan = plan_json(Plan(parse(FOUR + REPEAT)))
    assert plan["cells"][-1] == {  # type: ignore[index]
        "cell": "chunk=2K,control",
        "factors": {"chunk": "2K"},
        "control": True,
    }
    assert not any("control" in cell for cell in plan["cells"][:-1])  # type: ignore[index]
    assert sorted(plan["order"]) == sorted(cell["cell"] for cell in plan["cells"])  # type: ignore[call-overload, attr-defined]
    assert plan["runs_total"] == 5 * 3
    assert plan["compare"] == {
        "factor": "chunk",
        "baseline": "2K",
        "margin": None,
        "control": True,
    }


def test_a_control_is_shuffled_into_each_block() -> None:
    plan = Plan(parse(FOUR))
    blocks = [[run.unit.cell.id for run in runs(plan, n)] for n in range(60)]
    assert {block.index("chunk=2K,control") for block in blocks} == set(range(5))
    first = sum(block.index("chunk=2K") < block.index("chunk=2K,control") for block in blocks)
    assert 0 < first < 60


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
