"""Views in SQL over the tables of results, and which of all a statement names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from netbench.facts.registry import FACTS

_VARYING = ", ".join(f"'{fact.name}'" for fact in FACTS if fact.varies)
_TEXT = (Path(__file__).parent / "views.sql").read_text(encoding="utf-8")
VIEWS = {
    statement.split()[4]: statement.replace("(VARYING)", f"({_VARYING})")
    for statement in re.findall(r"^CREATE OR REPLACE VIEW [^;]*", _TEXT, re.MULTILINE)
}
"""The statement that makes each view, by its name."""


def named(sql: str, tables: Iterable[str]) -> Iterator[str]:
    """The tables that a statement names."""
    return (each for each in tables if re.search(rf"\b{each}\b", sql, re.IGNORECASE))
