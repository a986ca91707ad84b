"""`tools:` of a campaign: what it means, and errors that name the place."""

from __future__ import annotations

import pytest

from netbench.base.errors import CampaignError
from netbench.campaign import parse
from netbench.campaign.schema.tools import COLUMNS
from netbench.model import Tool
from netbench.plan.plan import Plan
from netbench.plan.plan_json import plan_json
from netbench.tables.frames import OUTCOME, RUN

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
    ([FIRST], ["sh"]),
    (["none", SECOND, FIRST], ["none", "sh", "sh-2"]),
    ([FIRST, SECOND, line("sh")], ["sh", "sh-2", "sh-3"]),
    ([line("/opt/iperf3", "-c"), "iperf3"], ["iperf3-2", "iperf3"]),
    (["mine", line("mine")], ["mine", "mine-2"]),
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
    assert ids == [
        "tool=sh,streams=1",
        "tool=sh,streams=2",
        "tool=sh-2,streams=1,chunk=4K",
    ]


def test_a_command_line_that_is_no_level_excludes_nothing() -> None:
    other = line("sh", "-x")
    with pytest.raises(CampaignError, match=r"expected a level of tool \(none or sh\), got"):
        parse(f"{HEAD}sweep: {{tool: [none, {FIRST}]}}\nexclude: [{{tool: {other}}}]\n", "t.yaml")


def test_a_tool_that_no_cell_uses_is_legal() -> None:
    read = parse(HEAD + MINE, "t.yaml")
    assert list(read.tools) == ["mine"]
    assert not read.cells[0].transfer.tool.external


def test_its_metrics_can_be_those_that_close_cells() -> None:
    text = HEAD + MINE.replace(RATE, MORE) + "repeat: {metrics: [throughput, p99]}\n"
    assert parse(text, "t.yaml").repeat.metrics == ("throughput", "p99")


WRONG = [
    ("transfer: {tool: mien}", "transfer.tool: expected a tool (none, iperf3, iperf2, dd, cp, cat or mine), or {argv: [...], pattern: '...'}, got 'mien' (did you mean 'mine'?)"),
    ("sweep: {tool: [none, iperf4]}", "sweep.tool[1]: expected a tool (none, iperf3, iperf2, dd, cp, cat or mine), or {argv: [...], pattern: '...'}, got 'iperf4' (did you mean 'iperf3'?)"),
    ("repeat: {metrics: [p98]}", "repeat.metrics[0]: expected a metric that can close cells"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "message"), WRONG)
def test_a_name_that_is_none_is_told_with_the_nearest(more: str, message: str) -> None:
    with pytest.raises(CampaignError) as caught:
        parse(f"{HEAD}{MINE}{more}\n", "t.yaml")
    assert message in str(caught.value)
    assert "t.yaml:4: " in str(caught.value)


KEYS = [
    ("iperf3: {client: [a], RATE}", "tools: iperf3 is a built-in tool, expected another name"),
    ("'a b': {client: [a], RATE}", "tools: expected a tool's name of letters, digits, dots, dashes and underscores, got 'a b'"),
    ("m: {RATE}", "tools.m.client: missing, expected client: the program that is run on the sender"),
    ("m: {client: [a]}", "tools.m.captures: missing, expected captures: metric -> a regular expression"),
    ("m: {client: [], RATE}", "tools.m.client: expected a program and its arguments"),
    (f"m: {{client: [{'a, ' * 256}], RATE}}", "tools.m.client: expected at most 255 words, got 256"),
    ("m: {client: 'a \"b', RATE}", "tools.m.client: expected a program and its arguments, with every quote closed"),
    ("m: {client: [a, '{adress}'], RATE}", "tools.m.client: {adress} stands for nothing, expected {address} or other (did you mean 'address'?)"),
    ("m: {client: [a], server: [b], RATE}", "tools.m.server: expected {port} among its arguments, or `ready`"),
    ("m: {client: [a], ready: up, RATE}", "tools.m: expected server with ready, got ready alone"),
    ("m: {client: [a], server: [b], ready: '(', RATE}", "tools.m.ready: expected a regular expression of what the server prints, got '('"),
    ("m: {client: [a], captures: {throughput: '(.*)'}}", "tools.m.captures: expected a regular expression with the named groups bytes and seconds, or rate, got '(.*)'"),
    ("m: {client: [a], captures: {p99: '(?P<rate>.)'}}", "tools.m.captures: expected a regular expression with the named group value"),
    ("m: {client: [a], captures: {p99: '(?P<value>'}}", "missing ), unterminated subpattern"),
    ("m: {client: [a], captures: {P99: '(?P<value>.)'}}", "tools.m.captures: expected a metric's name such as latency_p99, got 'P99'"),
    ("m: {client: [a], captures: {sender_cpu: '(?P<value>.)'}}", "tools.m.captures: netbench measures sender_cpu itself, expected another name"),
    ("m: {client: [a], captures: {status: '(?P<value>.)'}}", "tools.m.captures: status is a column of every table of runs, expected another name"),
    ("m: {client: [a], captures: {tool: '(?P<value>.)'}}}\nsweep: {tool: [none, m]", "tools.m.captures.tool: tool is a factor of this campaign, expected another name"),
    ("m: {client: [a], captures: {p99: '(?P<value>a{99999999999999})'}}", "the repetition number is too large"),
    ("m: {client: [a], server: [b], ready: 'a{99999999999999}', RATE}", "tools.m.ready: expected a regular expression of what the server prints, got 'a{99999999999999}': the repetition number is too large"),
    (f"m: {{client: [a], captures: {{p99: '{'(' * 3000}(?P<value>.){')' * 3000}'}}}}", "...': its groups are nested too deeply"),
    ("m: {client: [a], captures: {}}", "tools.m.captures: expected a mapping of metrics and patterns"),
    ("m: {client: [a], serve: [b], RATE}", "tools.m.serve: unknown key, expected client, server, ready or captures (did you mean 'server'?)"),
    ("", "tools: expected a mapping of tools"),
]  # fmt: skip


def test_no_metric_of_a_tool_has_the_name_of_a_column() -> None:
    assert {*RUN, *OUTCOME} <= {*COLUMNS}


@pytest.mark.parametrize(("tools", "message"), KEYS)
def test_what_is_wrong_is_told_with_its_place(tools: str, message: str) -> None:
    with pytest.raises(CampaignError) as caught:
        parse(f"{HEAD}tools: {{{tools.replace('RATE', RATE)}}}\n", "t.yaml")
    assert message in str(caught.value)
    assert "t.yaml:3: " in str(caught.value)
