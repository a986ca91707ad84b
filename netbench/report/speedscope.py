"""The stacks of a report's profiles as one file for https://www.speedscope.app, which draws flame
graphs in the browser.

Source: speedscope's file-format-spec.ts; weights are ticks, or cycles, per GiB.
"""

from __future__ import annotations

import json

from netbench.report.sections.profile import cell_words
from netbench.report.source import Source


def render(source: Source) -> str:
    """A profile a cell and kernel, each with the words of its levels as its name."""
    frames: dict[str, int] = {}
    profiles = []
    for cell in source.profiles.cells:
        stacks = sorted(cell.stacks.items())
        profiles.append(
            {
                "type": "sampled",
                "name": f"{cell_words(source, cell)} [{cell.unit} per GiB]",
                "unit": "none",
                "startValue": 0,
                "endValue": sum(cost for _, cost in stacks),
                "samples": [
                    [frames.setdefault(name, len(frames)) for name in stack] for stack, _ in stacks
                ],
                "weights": [cost for _, cost in stacks],
            }
        )
    return json.dumps(
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "name": source.result.path.name,
            "exporter": "netbench",
            "shared": {"frames": [{"name": name} for name in frames]},
            "profiles": profiles,
        }
    )
