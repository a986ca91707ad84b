"""Keys of a tool of the campaign's own."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

from netbench.base.names import CAPTURES_MAX, is_measured, is_taken, name_pattern
from netbench.base.names import METRIC as METRIC_NAME
from netbench.campaign.messages import expected, listed, nearest, wrong
from netbench.campaign.schema import kinds
from netbench.campaign.schema.keys import Keys, optional, required
from netbench.campaign.schema.kinds import Kind
from netbench.campaign.tree import Plain
from netbench.model import Tool
from netbench.tools.adaptors import TOOLS
from netbench.tools.own import (
    PLACEHOLDERS,
    compiled,
    groups_wanted,
    lacks_groups,
    placeholders,
    unknown_placeholders,
)
from netbench.tools.tool import THROUGHPUT

TOOL_NAME = name_pattern(40)


def _short(pattern: str) -> str:
    return repr(pattern if len(pattern) < 200 else f"{pattern[:200]}...")


def pattern_of(metric: str) -> Kind:
    """A regular expression whose groups hold a metric."""

    def parse(value: Plain) -> str:
        what = f"a regular expression with {groups_wanted(metric)}"
        if not isinstance(value, str):
            raise expected(what, value)
        try:
            lacking = lacks_groups(metric, value)
        except ValueError as error:
            raise wrong(f"expected {what}, got {_short(value)}: {error}") from error
        if lacking:
            raise expected(what, value)
        return value

    return Kind(parse, {"type": "string"})


def _ready(value: Plain) -> str:
    what = "a regular expression of what the server prints"
    if not isinstance(value, str) or not value:
        raise expected(what, value)
    try:
        compiled(value)
    except ValueError as error:
        raise wrong(f"expected {what}, got {_short(value)}: {error}") from error
    return value


def _argv(value: Plain) -> tuple[str, ...]:
    argv: tuple[str, ...] = kinds.argv().parse(value)
    for name in unknown_placeholders(argv):
        if known := nearest(name, PLACEHOLDERS):
            raise wrong(f"{{{name}}} stands for nothing, expected {{{known}}} or other", known)
    return argv


def _captures(value: Plain) -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        raise expected("a mapping of metrics and patterns", value)
    if len(value) > CAPTURES_MAX:
        raise wrong(f"expected at most {CAPTURES_MAX} metrics, got {len(value)}")
    for name in value:
        if not re.fullmatch(METRIC_NAME, name):
            raise expected("a metric's name such as latency_p99", name)
        if is_taken(name) and not is_measured(name):
            raise wrong(f"{name} is a column of every table of runs, expected another name")
        if is_measured(name) and name != THROUGHPUT:
            raise wrong(f"netbench measures {name} itself, expected another name")
    return {name: pattern_of(name).parse(pattern) for name, pattern in value.items()}


_ARGV = Kind(_argv, kinds.argv().schema)
_STANDS = listed(f"{{{name}}}" for name in PLACEHOLDERS)


class ToolKeys(Keys):
    """A program as a cell."""

    client: Annotated[tuple[str, ...], _ARGV] = required(
        f"the program that is run on the sender, and its arguments; {_STANDS} stand for the"
        " cell's own",
        ["mytool", "--to", "{address}:{port}", "--seconds", "{seconds}"],
    )
    server: Annotated[tuple[str, ...] | None, _ARGV] = optional(
        "the program that is run on the receiver, and its arguments: started before each run, and"
        " ended after it",
        ["mytool", "--listen", "{port}"],
    )
    ready: Annotated[str | None, Kind(_ready, {"type": "string"})] = optional(
        "a regular expression of what the server prints once it is ready; left out: it is ready"
        " once it listens on {port}",
        "listening",
    )
    captures: Annotated[
        dict[str, str],
        Kind(
            _captures,
            {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": f"^{METRIC_NAME}$"},
                "additionalProperties": {"type": "string"},
            },
        ),
    ] = required(
        f"metric -> a regular expression of the output: `{THROUGHPUT}` with"
        f" {groups_wanted(THROUGHPUT)}; any other name is a metric of its own, with the group"
        " value, and perhaps unit",
        {THROUGHPUT: "(?P<rate>[0-9.]+ [KMG]bits/sec)", "latency_p99": "p99=(?P<value>[0-9.]+)"},
    )

    def tool(self, name: str) -> Tool:
        """The tool that the keys describe."""
        captures = tuple(self.captures.items())
        return Tool(name, self.client, self.server or (), self.ready or "", captures)


def _one_tool(value: Plain) -> Any:
    if isinstance(value, dict) and "ready" in value and "server" not in value:
        raise wrong("expected server with ready, got ready alone")
    return value


def check_tools(tools: dict[str, Plain]) -> Any:
    """Refuses names that are taken."""
    if not isinstance(tools, dict) or not tools:
        raise expected("a mapping of tools", tools)
    for name in tools:
        if not re.fullmatch(TOOL_NAME, name):
            raise expected("a tool's name of letters, digits, dots, dashes and underscores", name)
        if name in ("none", *TOOLS):
            raise wrong(f"{name} is a built-in tool, expected another name")
    return tools


def is_ready_unseen(tool: Tool) -> bool:
    """Whether nothing tells when its server is ready."""
    return bool(tool.server) and not tool.ready and "port" not in placeholders(tool.server)


OWN_TOOLS = Annotated[
    dict[str, Annotated[ToolKeys, BeforeValidator(_one_tool)]], BeforeValidator(check_tools)
]
