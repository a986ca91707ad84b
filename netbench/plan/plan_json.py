"""A plan as `plan.json` has it, and `plan --json` says it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from netbench.model import Campaign, Cell
from netbench.plan.plan import Plan

_REPEAT = ("min", "max", "confidence", "precision", "metrics", "boots", "until")


def plan_json(plan: Plan) -> dict[str, object]:
    """`{cells: [{cell, factors}], order: [...], runs_total, seconds}`, and what readers need."""
    campaign = plan.campaign
    return {
        "name": campaign.name,
        "seed": campaign.seed,
        "pairs": [pair.name for pair in campaign.pairs],
        "rounds": [[pair.name for pair in pairs] for pairs in plan.rounds],
        "groups": {name: list(hosts) for name, hosts in campaign.groups.items()},
        "links": {
            name: {"hosts": list(link.hosts), "capacity": link.capacity}
            for name, link in campaign.links.items()
        },
        "swept": [factor.name for factor in campaign.factors],
        "held": {key: level.written for key, level in campaign.settings.items()},
        "cells": [_planned(cell) for cell in campaign.cells],
        "order": plan.order(),
        "runs_total": plan.runs_total,
        "seconds": round(plan.seconds()[0], 1),
        "seconds_at_most": round(plan.seconds()[1], 1),
        "boots": [
            {"boot": boot.number, "kernel": boot.kernel, "blocks": plan.blocks_a_boot}
            | ({"build": boot.build} if boot.build else {})
            for boot in plan.all_boots()
        ],
        "repeat": _fields(plan.repeat, _REPEAT),
        "part": _fields(campaign.part, ("number", "of", "pairs")),
        "tools": _tools(campaign),
        "warnings": list(campaign.warnings),
        "compare": _fields(campaign.compare, ("factor", "baseline", "margin", "control")),
    }


def _planned(cell: Cell) -> Mapping[str, object]:
    planned = {"cell": cell.id, "factors": dict(cell.factors)}
    return planned | ({"control": True} if cell.control else {})


def _tools(campaign: Campaign) -> Mapping[str, Mapping[str, str]]:
    """The command lines of the campaign's own tools that cells use."""
    used = (cell.transfer.tool for cell in campaign.cells)
    return {
        tool.name: {"client": shlex.join(tool.client)}
        | ({"server": shlex.join(tool.server)} if tool.server else {})
        for tool in used
        if tool.client
    }


def _fields(of: object, names: Sequence[str]) -> Mapping[str, object] | None:
    """Some fields of a part of the campaign, where it has that; sequences as lists."""
    if of is None:
        return None
    values = {name: getattr(of, name) for name in names}
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
