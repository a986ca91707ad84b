"""A report for programs: the same sections as the text, with numbers in full."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from netbench.base.control_characters import escape_controls
from netbench.base.names import PRINTED
from netbench.read.cells import finite
from netbench.read.control import holds
from netbench.report.blocks import Block, Cautions, Plot, Prose, Section, Table
from netbench.report.build import Report
from netbench.report.label import label_of
from netbench.result import codec
from netbench.stats.comparison import Comparison
from netbench.stats.intervals import Interval

SCHEMA = PRINTED


def to_json(report: Report) -> dict[str, Any]:
    """`{schema, name, about, label, cells, comparisons, controls, fleet, cautions, hosts,
    sections}`; what there is none of is null.

    `label` is what must stand beside every number (emulated: facts, not speed; virtual machine:
    costs are those of a VM), "" for hardware; a cell says it of its pair.
    """
    source = report.source
    return {
        "schema": SCHEMA,
        "name": report.name,
        "about": source.result.about,
        "label": label_of(source.result),
        "factors": list(source.result.factors),
        "cells": [
            {
                "cell": c.cell,
                "pair": c.pair,
                "factors": dict(c.factors),
                "emulated": c.pair in source.result.emulated,
                "virtual_machine": c.pair in source.result.virtual_machines,
                "status": c.status,
                "mean_status": c.mean,
                "n": c.n,
                "unit": c.unit,
                "reasons": dict(c.reasons),
                "metrics": {name: interval(i) for name, i in c.intervals.items()},
            }
            for c in source.cells
        ],
        "comparisons": [comparison(c) for family in source.comparisons.values() for c in family],
        "controls": [
            control(c) for family in source.comparisons.values() for c in source.controls(family)
        ],
        "fleet": source.add_on.to_json(source) if source.fleets else None,
        "cautions": [asdict(caution) for caution in source.cautions],
        "hosts": {
            host: [codec.to_json(entry) for entry in entries]
            for host, entries in source.result.hosts.items()
        },
        "sections": [_section(section) for section in report.sections],
    }


def render(report: Report) -> str:
    """to_json as text, ending with a newline."""
    text = json.dumps(to_json(report), ensure_ascii=False, indent=1, allow_nan=False)
    return escape_controls(text) + "\n"


def comparison(c: Comparison) -> dict[str, Any]:
    """A comparison as an object."""
    told = {key: plain(value) for key, value in asdict(c).items() if key != "stands_at"}
    return told | {"sentence": c.sentence}


def control(c: Comparison) -> dict[str, Any]:
    """A control as an object: its ratio to its baseline, and whether the interval holds 1."""
    keys = ("factor", "baseline", "context", "pair", "metric", "n", "unit", "ratio", "low", "high")
    values = {key: plain(getattr(c, key)) for key in (*keys, "p", "why")}
    return values | {"holds": None if math.isnan(c.low) else holds(c)}


def interval(i: Interval) -> dict[str, Any]:
    """An interval as an object."""
    numbers = {"mean": i.mean, "low": i.low, "high": i.high, "precision": i.precision}
    why = {"why": i.why} if i.why else {}
    return {"n": i.n} | {name: finite(value) for name, value in numbers.items()} | why


def plain(value: Any) -> Any:
    """A value for JSON: None for a number that there is none of."""
    if isinstance(value, Interval):
        return interval(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _section(section: Section) -> dict[str, Any]:
    blocks = [_block(block) for block in section.blocks if not isinstance(block, Plot)]
    return {"key": section.key, "title": section.title, "blocks": blocks}


def _block(block: Block) -> dict[str, Any]:
    if isinstance(block, Prose):
        return {"kind": "prose", "lines": list(block.lines)}
    if isinstance(block, Cautions):
        return {"kind": "cautions", "items": [asdict(item) for item in block.items]}
    assert isinstance(block, Table)
    return {
        "kind": "table",
        "title": block.title,
        "columns": [{"name": c.name, "unit": c.unit} for c in block.columns],
        "rows": [[plain(value) for value in row] for row in block.rows],
        "marked": sorted(block.marked),
        "marked_values": sorted(map(list, block.marked_values)),
        "notes": list(block.notes),
    }
