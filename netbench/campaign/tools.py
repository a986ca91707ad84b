"""The campaign's own tools, and what the name of a tool means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticCustomError

from netbench.campaign.factors import Reader
from netbench.campaign.problems import Problems
from netbench.campaign.schema.file import FileKeys
from netbench.campaign.schema.tools import is_ready_unseen
from netbench.model import Tool
from netbench.tools.tool import THROUGHPUT


def own_tools(file: FileKeys, problems: Problems) -> dict[str, Tool]:
    """The campaign's own tools, whether a cell uses them or not."""
    tools = {name: keys.tool(name) for name, keys in file.tools.items()}
    factors = {*file.sweep, *(key for row in file.include for key in row)}
    for name, tool in tools.items():
        if is_ready_unseen(tool):
            message = (
                "expected {port} among its arguments, or `ready`: nothing else tells when it can"
                " be connected to"
            )
            problems.add(("tools", name, "server"), message)
        for metric in {each for each, _ in tool.captures} & factors:
            message = f"{metric} is a factor of this campaign, expected another name"
            problems.add(("tools", name, "captures", metric), message)
    return tools


def captured_by(tools: Mapping[str, Tool]) -> list[str]:
    """The metrics that tools print, but for throughput."""
    names = dict.fromkeys(name for tool in tools.values() for name, _ in tool.captures)
    return [name for name in names if name != THROUGHPUT]


def resolve_tool(base: dict[str, Any], reader: Reader) -> None:
    """What the name of a tool below `transfer` means; one that is not known is noted."""
    if "tool" in base:
        try:
            base["tool"] = reader.tool(base["tool"])
        except PydanticCustomError as error:
            context = error.context or {}
            reader.problems.add(("transfer", "tool"), context["text"], context["nearest"])
            del base["tool"]
