"""The label of what was measured under software emulation, or in a lab's guests under KVM: it
stands at every table and drawing, whatever the renderer.
"""

from __future__ import annotations

from netbench.read.result import Result
from netbench.report.blocks import Block, Plot, Section, Table

LABEL = "emulated: facts, not speed"
VIRTUAL = "virtual machine: costs are those of a VM"
_MEANINGS = {
    LABEL: "A program emulates the CPU: what was moved, refused and counted holds; all times, rates"
    " and costs below are the emulator's.",
    VIRTUAL: "Guests run under KVM: packets, interrupts and timers cost what they cost in a virtual"
    " machine; measure them on hardware.",
}


def label_of(*results: Result) -> str:
    """The gravest label of these results' pairs; "" where none has one."""
    if any(result.emulated for result in results):
        return LABEL
    return VIRTUAL if any(result.virtual_machines for result in results) else ""


def explained(label: str) -> list[str]:
    """A paragraph of a label and what it means; none of no label."""
    return [f"{label[0].upper()}{label[1:]}. {_MEANINGS[label]}"] if label else []


def labelled(section: Section, label: str) -> Section:
    """The section with the label at each of its tables and drawings."""
    blocks = (_labelled(block, label) for block in section.blocks)
    return section._replace(blocks=tuple(blocks)) if label else section


def _labelled(block: Block, label: str) -> Block:
    if isinstance(block, Table):
        return block._replace(title=f"{block.title} ({label})" if block.title else label)
    return block._replace(label=label) if isinstance(block, Plot) else block
