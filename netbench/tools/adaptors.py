"""Every built-in tool, one row each; and the adaptor of a cell's tool."""

from __future__ import annotations

from collections.abc import Mapping

from netbench.model import Tool
from netbench.tools.copies import CAT, CP, Dd
from netbench.tools.iperf import Iperf2, Iperf3
from netbench.tools.own import OwnTool
from netbench.tools.tool import Adaptor

TOOLS: Mapping[str, Adaptor] = {
    adaptor.name: adaptor for adaptor in (Iperf3(), Iperf2(), Dd(), CP, CAT)
}


def adaptor_of(tool: Tool) -> Adaptor:
    """The adaptor of a tool that a cell has."""
    return OwnTool(tool) if tool.client else TOOLS[tool.name]
