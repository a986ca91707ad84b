"""`tools:` of a campaign: what it means, and errors that name the place."""

from __future__ import annotations

import pytest

from netbench.base.names import COLUMNS
from netbench.campaign import parse
from netbench.model import Tool
from netbench.plan.plan import Plan
from netbench.plan.plan_json import plan_json
from netbench.tables.table_frames import OUTCOME, RUN

HEAD = "netbench: 1\nname: t\n"
RATE = "captures: {throughput: '(?P<rate>.*)'}"
MINE = f"tools: {{mine: {{client: [a, '{{address}}'], server: 'b {{port}}', {RATE}}}}}\n"
MORE = RATE.replace("}", ", p99: '(?P<value>.)'}")


def test_a_tool_is_a_level_by_its_name_wherever_tool_can_stand() -> None:
    mine = Tool("mine", ("a", "{address}"), ("b", "{port}"), "", (("throughput", "(?P<rate>.*)"),))
    for use in (
        "transfer: {tool: mine}\n",
        "sweep: {tool: [mine, dd]}\n",
        "sweep: {send: [write]}\ninclude: [{send: write, tool: mine}]\n",
    ):
        read = parse(HEAD + MINE + use, "t.yaml")
        assert read.cells[0].transfer.tool == mine
        assert read.cells[0].factors.get("tool", "mine") == "mine"
    assert "tool=mine" in parse(HEAD + MINE + "sweep: {tool: [mine, dd]}\n", "t.yaml").cells[0].id


def line(*argv: str) -> str:
    """A command line in place of a tool's name."""
    return f"{{argv: [{', '.join(argv)}], pattern: '(?P<rate>.*)'}}"


FIRST, SECOND = line("sh", "-c", "echo 1"), line("/bin/sh", "-c", "echo 2")
WRITTEN = [
    (["none", SECOND, FIRST], ["none", "sh", "sh-2"]),
    ([FIRST, SECOND, line("sh")], ["sh", "sh-2", "sh-3"]),
    ([line("/opt/iperf3", "-c"), "iperf3"], ["iperf3-2", "iperf3"]),
    ([line("none")], ["none-2"]),
    ([line("'a b'", "'1, 2'")], ["a b"]),
]  # fmt: skip


@pytest.mark.parametrize(("levels", "names"), WRITTEN)
def test_a_command_line_is_a_level_by_the_name_of_its_program(
    levels: list[str], names: list[str]
) -> None:
    read = parse(f"{HEAD}{MINE}sweep: {{tool: [{', '.join(levels)}]}}\n", "t.yaml")
    assert [cell.factors["tool"] for cell in read.cells] == names
    assert [cell.transfer.tool.name for cell in read.cells] == names
    ids = [cell.id for cell in read.cells]
    assert ids == [f"tool={name.replace(' ', '%20')}" for name in names]
    plan = plan_json(Plan(read))
    assert plan["tools"].keys() == set(names) - {"none", "iperf3"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("excluded", [SECOND, "sh-2"])
def test_a_command_line_is_the_same_level_wherever_it_stands(excluded: str) -> None:
    text = f"""{HEAD}sweep: {{tool: [none, {FIRST}, {SECOND}], streams: [1, 2]}}
exclude: [{{tool: {excluded}, streams: 2}}]
include: [{{tool: {SECOND}, streams: 1, chunk: 4K}}]
compare: {{factor: tool, baseline: sh-2, control: false}}
"""
    ids = [cell.id for cell in parse(text, "t.yaml").cells if "sh" in cell.id]
    assert ids == ["tool=sh,streams=1", "tool=sh,streams=2", "tool=sh-2,streams=1,chunk=4K"]


def test_its_metrics_can_be_those_that_close_cells() -> None:
    text = HEAD + MINE.replace(RATE, MORE) + "repeat: {metrics: [throughput, p99]}\n"
    assert parse(text, "t.yaml").repeat.metrics == ("throughput", "p99")


def test_no_metric_of_a_tool_has_the_name_of_a_column() -> None:
    assert {*RUN, *OUTCOME} <= {*COLUMNS}
