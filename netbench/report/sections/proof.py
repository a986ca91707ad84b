"""Proof that each method did what its name says: its own counters, over all cells."""

from __future__ import annotations

from dataclasses import dataclass, field

from netbench.report.blocks import Column, Section, Table
from netbench.report.source import Source

DEMANDS = {"must_move": "must move", "must_not_move": "must stay 0"}


@dataclass
class _Row:
    cells: int = 0
    runs: int = 0
    broken: int = 0
    per_run: list[float] = field(default_factory=list)


def proof(source: Source) -> Section | None:
    """One row a side and counter: least and most per run over its cells, and in how many runs its rule was broken."""
    rows: dict[tuple[str, str], _Row] = {}
    for (_, _, side, name), seen in source.loaded.proofs.items():
        row = rows.setdefault((side, name), _Row())
        row.cells += 1
        row.runs += seen.runs
        row.broken += seen.broken
        row.per_run.append(seen.total / seen.runs)
    if not rows:
        return None
    flags = {str(r["name"]): r.get("flags", ()) for r in source.loaded.plan.get("rows", ()) if r.get("kind") == "proof"}
    columns = (
        Column("side", kind="key"), Column("counter", kind="key"), Column("cells"), Column("runs"), Column("least", "per run"),
        Column("most", "per run"), Column("rule"), Column("broken", "runs"),
    )  # fmt: skip
    table = []
    for (side, name), row in sorted(rows.items()):
        rule = next((text for flag, text in DEMANDS.items() if flag in flags.get(name, ())), "")
        table.append((side, name, row.cells, row.runs, min(row.per_run), max(row.per_run), rule, row.broken if rule else None))
    note = "Counted within the measured window, mean of a cell's runs; the rule is judged up to the drained connection."
    return Section("proof", "Proof of mechanism", (Table("", columns, tuple(table), (note,)),))
