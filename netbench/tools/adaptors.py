"""Every built-in tool, one row each; and the adaptor of a cell's tool."""

from __future__ import annotations

from collections.abc import Mapping

from netbench.model import Tool
from netbench.tools.dd import Dd
from netbench.tools.iperf3 import Iperf3
from netbench.tools.own import OwnTool
from netbench.tools.tool import Adaptor

TOOLS: Mapping[str, Adaptor] = {adaptor.name: adaptor for adaptor in (Iperf3(), Dd())}


def adaptor_of(tool: Tool) -> Adaptor:
    """The adaptor of a tool that a cell has."""
    return OwnTool(tool) if tool.client else TOOLS[tool.name]
