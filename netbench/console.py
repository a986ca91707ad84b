"""Plain text for a terminal of 80 columns: what the verbs print besides reports."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netbench.units import count, format_duration

if TYPE_CHECKING:
    from netbench.conductor.check import Finding
    from netbench.plan import Plan
    from netbench.report.build import Report
    from netbench.report.compared import Compared

WIDTH = 80
BOOTS_SAID = 16


def fold(text: str, indent: str = "  ") -> str:
    """A text of any length in lines of at most 80 columns; what cannot be broken (a path) stays
    whole.
    """
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def table(rows: Sequence[Sequence[str]], gap: str = "  ") -> str:
    """Columns as wide as they need, the last one folded to what is left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    left = sum(widths) + len(gap) * len(widths)
    lines = []
    for row in rows:
        head = gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        folded = textwrap.wrap(row[-1], max(20, WIDTH - left)) or [""]
        lines += [f"{head}{gap}{folded[0]}".rstrip(), *(" " * left + more for more in folded[1:])]
    return "\n".join(lines)


def findings_text(findings: Iterable[Finding]) -> str:
    """`check` in words, errors first."""
    return "\n".join(fold(str(finding)) for finding in findings)


def findings_json(findings: Iterable[Finding]) -> dict[str, Any]:
    """`check --json`."""
    found = [
        {"level": f.level, "host": f.host, "what": f.what, "remedy": f.remedy} for f in findings
    ]
    return {"possible": all(f["level"] != "error" for f in found), "findings": found}


def plan_text(plan: Plan) -> str:
    """`plan` in words: cells, order, time."""
    campaign = plan.campaign
    least, most = plan.seconds()
    repeat = campaign.repeat
    pairs = ", ".join(f"{pair.sender} to {pair.receiver}" for pair in campaign.pairs)
    lines = [
        f"{campaign.name}: {campaign.about}" if campaign.about else campaign.name,
        f"pairs: {pairs}",
        "",
    ]
    lines += [
        f"{count(len(campaign.cells), 'cell')}:",
        *(f"  {cell.id}" for cell in campaign.cells),
        "",
    ]
    if plan.boots:
        lines += _boots(plan)
    else:
        until = (
            f"{repeat.confidence:.0%} intervals of {', '.join(repeat.metrics)} are within ±"
            f" {repeat.precision:.1%}"
        )
        lines.append(
            f"{repeat.min} to {repeat.max} runs a cell, until {until}; order from seed"
            f" {campaign.seed}"
        )
    lines.append(f"between {format_duration(least)} and {format_duration(most)}")
    order = [unit.cell.id for unit in plan.wanted(0, lambda _: True, ())]
    lines += ["", "first block:", *(f"  {place}. {cell}" for place, cell in enumerate(order, 1))]
    lines += (
        ["", *(f"not built yet: {what}" for what in campaign.unbuilt)] if campaign.unbuilt else []
    )
    return "\n".join(fold(line, "    ") if line else "" for line in lines)


def _boots(plan: Plan) -> Iterator[str]:
    """What is booted, and what that can prove."""
    from netbench.analysis.boots import what_boots_buy

    repeat, boots = plan.campaign.repeat, plan.all_boots()
    kernels = list(dict.fromkeys(boot.kernel for boot in boots))
    bought = what_boots_buy(
        repeat.boots, plan.blocks_a_boot, kernels=len(kernels), confidence=repeat.confidence
    )
    yield from bought.lines
    if any(kernels):
        shown = ", ".join(boot.kernel or "its own" for boot in boots[:BOOTS_SAID])
        more = f" and {len(boots) - BOOTS_SAID} more" if len(boots) > BOOTS_SAID else ""
        yield f"in this order: {shown}{more}; order from seed {plan.campaign.seed}"
    if bought.warning:
        yield f"WARNING: {bought.warning}"


def render(report: Report, kind: str) -> str:
    """A report as `text` or `json`."""
    from importlib import import_module

    return str(import_module(f"netbench.report.{kind}").render(report))


def _sections(report: Report, keys: Sequence[str]) -> str:
    """Some sections of a report as text; those that had nothing to say are left out."""
    from netbench.report import text

    there = [section for key in keys for section in report.sections if section.key == key]
    return "\n\n".join("\n".join(text.section_lines(section, WIDTH)).rstrip() for section in there)


def compared_text(compared: Compared) -> str:
    """`compare` in words: sentences, tables, and what the gates say."""
    from netbench.report import text

    return "\n\n".join(
        "\n".join(text.section_lines(section, WIDTH)).rstrip() for section in compared.sections
    )


def summary(path: Path) -> str:
    """What `run` prints at its end: the answers, the cells, the cautions, and how to see
    the rest.
    """
    from netbench.report.build import build

    answers = _sections(build(path), ("summary", "cells", "cautions"))
    return f"{answers}\n\n{fold(f'all of it: python -m netbench report {path}')}"


def transfer_text(report: Report) -> str:
    """What `transfer` prints: its metrics, what the kernel made of the buffers, and what the
    mechanism did.
    """
    return _sections(report, ("cells", "settings", "proof", "cautions"))


def listing_text(what: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """`list` in words."""
    if not rows:
        return {"results": "no results here; --results names the folder that they are in"}.get(
            what, f"no {what}"
        )
    if what == "results":
        return table(
            [
                ("unreadable" if row["runs"] is None else count(row["runs"], "run"), row["folder"])
                for row in rows
            ]
        )
    if what == "settings":
        return table([(row["name"], f"{_described(row)} Levels: {row['levels']}.") for row in rows])
    return table([(row["kind"], row["name"], _described(row)) for row in rows])


def lab_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """`lab down` and `lab status` in words."""
    if not rows:
        return "no lab is here"
    if "removed" in rows[0]:
        return "\n".join(fold(f"removed {row['removed']}") for row in rows)
    words: list[tuple[str, ...]] = [("lab", "state", "host", "address", "interface")]
    for row in rows:
        state = str(row["state"]) if row.get("sshd", True) else f"{row['state']}, no sshd"
        words.append(
            (
                str(row["lab"]),
                state,
                *(str(row.get(key, "")) for key in ("host", "address", "interface")),
            )
        )
    return table(words)


_WORDS = {
    "delivers": "delivers",
    "no_data": "moves no data",
    "from_memory": "from memory",
    "from_zero": "from zero",
    "from_file": "from files",
    "to_discard": "to discard",
    "to_file": "to a file",
    "always": "always on",
    "host_wide": "whole kernel",
    "fetches": "with its namesake only",
}


def _described(row: Mapping[str, Any]) -> str:
    words = [text for flag, text in _WORDS.items() if flag in row["flags"]]
    text = str(row["about"]) + (f" ({', '.join(words)})" if words else "")
    return text + (f"; CANNOT RUN HERE: {row['why_not']}" if row["why_not"] else "")


def meter_text(reading: Mapping[str, Any]) -> str:
    """`meter` in words: per CPU the share of each state where the meter has that, else each
    counter's difference.
    """
    seconds = (reading["time_ns"][1] - reading["time_ns"][0]) / 1e9
    lines = [f"{reading['meter']} over {seconds:.2f} s"]
    edges = {line["edge"]: line[reading["meter"]] for line in reading["cpus"]}
    if {"open", "close"} <= edges.keys():
        return "\n".join([*lines, _cpu_table(edges["open"], edges["close"])])
    for name, (before, after) in reading["counters"].items():
        lines.append(f"  {name:24} {after - before} {reading['units'].get(name, '')}".rstrip())
    return "\n".join(lines)


def _cpu_table(
    opening: Mapping[str, list[int | None]], closing: Mapping[str, list[int | None]]
) -> str:
    """Percent of each CPU's own time in each state; a CPU that is offline shows dashes."""
    states = [name.removeprefix("cpu_") for name in opening]
    rows: list[list[str]] = [["CPU", *states]]
    for cpu in range(len(next(iter(opening.values())))):
        moved = [_difference(opening[name][cpu], closing[name][cpu]) for name in opening]
        total = sum(m for m in moved if m is not None)
        rows.append(
            [
                str(cpu),
                *("-" if m is None or not total else f"{100 * m / total:.1f}%" for m in moved),
            ]
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
