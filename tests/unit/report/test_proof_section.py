"""The proof of mechanism: whose the lengths of calls are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from netbench.read.totals import Total
from netbench.report.sections.proof_and_settings import _lengths
from netbench.report.source import Source
from netbench.result.files import EngineRow


def rows_of(method: str, *counters: str) -> list[EngineRow]:
    own = [EngineRow("proof", name, method, flags=(), about="calls") for name in counters]
    return [EngineRow("receive", method, "", flags=(), about=""), *own]


def test_lengths_are_of_the_method_that_counted_them() -> None:
    """Two methods have a histogram of one name; the other counters of the cell tell which it is."""
    counted: dict[str, dict[str, float]] = {
        "receive=splice": {"splice_in_calls": 9, "splice_out.64K": 7},
        "receive=vmsplice": {"vmsplice_calls": 9, "splice_out.64K": 5, "splice_out.4K": 5},
    }
    rows = [
        *rows_of("splice", "splice_in_calls", "splice_out"),
        *rows_of("vmsplice", "vmsplice_calls", "splice_out", "short_splices"),
    ]
    proofs = {
        (cell, "a>b", "receiver", name): Total(1, total)
        for cell, each in counted.items()
        for name, total in each.items()
    }
    result: Any = SimpleNamespace(factors=(), proofs=proofs, plan=SimpleNamespace(rows=rows))
    (table,) = _lengths(cast("Source", SimpleNamespace(result=result)))
    assert [row[1:5] for row in table.rows] == [
        ("splice", "splice_out", "64K", 7),
        ("vmsplice", "splice_out", "4K", 5),
        ("vmsplice", "splice_out", "64K", 5),
    ]
