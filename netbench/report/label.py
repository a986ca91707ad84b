"""The label of what was measured under software emulation: it stands at every table and drawing,
whatever the renderer.
"""

from __future__ import annotations

from dataclasses import replace

from netbench.analysis.result import Result
from netbench.report.blocks import Block, Plot, Section, Table

LABEL = "emulated: facts, not speed"


def label_of(*results: Result) -> str:
    """The label of what is made from these results, with its pairs where others are not emulated;
    "" where none is.
    """
    pairs = [pair for result in results for pair in result.plan.pairs]
    emulated = [pair for result in results for pair in result.emulated]
    if not emulated:
        return ""
    return LABEL if len(emulated) == len(pairs) else f"{', '.join(dict.fromkeys(emulated))} {LABEL}"


def labelled(section: Section, label: str) -> Section:
    """The section with the label at each of its tables and drawings."""
    return (
        replace(section, blocks=tuple(_labelled(block, label) for block in section.blocks))
        if label
        else section
    )


def _labelled(block: Block, label: str) -> Block:
    if isinstance(block, Table):
        return replace(block, title=f"{block.title} ({label})" if block.title else label)
    return replace(block, label=label) if isinstance(block, Plot) else block
