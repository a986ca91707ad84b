"""`plan`: the cells, the order and the estimated time of a campaign."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from netbench.base.units import count, format_duration, listed
from netbench.cli.output import fold, say, say_json
from netbench.cli.verb import add_campaign, add_json, load_campaign

if TYPE_CHECKING:
    from netbench.plan.plan import Plan

BOOTS_SHOWN = 16
ROUNDS_SHOWN, PAIRS_SHOWN, WAVES_SHOWN = 8, 8, 40


def run(options: argparse.Namespace) -> int:
    from netbench.plan.plan import Plan

    plan = Plan(load_campaign(options))
    if options.json:
        from netbench.plan.plan_json import plan_json

        say_json(plan_json(plan))
    else:
        say(text(plan))
    return 0


def text(plan: Plan) -> str:
    """The plan in lines of at most 80 columns."""
    return "\n".join(fold(line, "    ") if line else "" for line in _lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    """The plan in words: cells, order, time."""
    campaign = plan.campaign
    pairs = [f"{pair.sender} to {pair.receiver}" for pair in campaign.pairs]
    least, most = plan.seconds()
    yield f"{campaign.name}: {campaign.about}" if campaign.about else campaign.name
    yield f"pairs: {listed(pairs, PAIRS_SHOWN, ', ')}"
    if len(campaign.pairs) > 1:
        yield from _rounds(plan)
    yield ""
    controls = sum(cell.control for cell in campaign.cells)
    beside = f" and {count(controls, 'control')} (a baseline a second time)" if controls else ""
    yield f"{count(len(campaign.cells) - controls, 'cell')}{beside}:"
    yield from (f"  {cell.id}" for cell in campaign.cells)
    yield ""
    yield from _boots(plan) if plan.boots else [_repetition(plan)]
    yield f"between {format_duration(least)} and {format_duration(most)}"
    if campaign.auto:
        yield "with windows of 1 s: `duration: auto` is found when the campaign begins"
    yield from ("", "first block:")
    waves = list(_first_block(plan))
    shown = waves if len(campaign.pairs) == 1 else waves[:WAVES_SHOWN]
    yield from (f"  {place}. {wave}" for place, wave in enumerate(shown, 1))
    if len(waves) > len(shown):
        yield f"  and {len(waves) - len(shown)} more"
    if campaign.warnings:
        yield from ("", *(f"WARNING: {what}" for what in campaign.warnings))


def _rounds(plan: Plan) -> Iterator[str]:
    """Which pairs run side by side, and how long all of them take."""
    rounds, shown = plan.rounds, plan.rounds[:ROUNDS_SHOWN]
    widest = max(map(len, rounds))
    once = format_duration(sum(map(plan.run_seconds, plan.units)))
    yield (
        f"{count(len(rounds), 'round')} of {count(widest, 'pair')} at most side by side; every cell"
        f" once on every pair: {once}"
    )
    for number, pairs in enumerate(shown, 1):
        yield f"  round {number}: {listed([pair.name for pair in pairs], PAIRS_SHOWN, ', ')}"
    if len(rounds) > len(shown):
        yield f"  and {len(rounds) - len(shown)} more"
    if plan.campaign.overlap == "round":
        remote = [host for host in plan.campaign.hosts.values() if not host.local]
        if remote and plan.campaign.lab is None and widest > 1:
            yield "  more rounds, if hosts turn out to share a kernel"


def _first_block(plan: Plan) -> Iterator[str]:
    """The first block, a line for what runs at the same time."""
    from netbench.plan.plan import Run

    for steps in plan.block(0, lambda _: True):
        first = steps[0]
        if isinstance(first, Run):
            beside = f", round {first.round}" if first.round else ""
            yield first.unit.cell.id + beside


def _repetition(plan: Plan) -> str:
    """When cells close."""
    repeat, seed = plan.campaign.repeat, plan.campaign.seed
    if repeat.min == repeat.max:
        return f"{count(repeat.min, 'run')} a cell; order from seed {seed}"
    return (
        f"{repeat.min} to {repeat.max} runs a cell, until {repeat.confidence:.0%} intervals of"
        f" {', '.join(repeat.metrics)} are within ± {repeat.precision:.1%}; order from seed {seed}"
    )


def _boots(plan: Plan) -> Iterator[str]:
    """The boots, and whether there are too few."""
    from netbench.stats.by_boot import what_boots_buy

    repeat, boots = plan.campaign.repeat, plan.all_boots()
    kernels = list(dict.fromkeys(boot.kernel for boot in boots))
    line, warning = what_boots_buy(
        repeat.boots,
        plan.blocks_a_boot,
        kernels=len(kernels),
        builds=min(plan.builds_of(kernel) for kernel in kernels),
    )
    yield line
    if any(kernels):
        shown = listed([boot.kernel or "its own" for boot in boots], BOOTS_SHOWN, ", ")
        yield f"in this order: {shown}; order from seed {plan.campaign.seed}"
    if warning:
        yield f"WARNING: {warning}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    add_campaign(parser)
