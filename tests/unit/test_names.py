"""Names that a campaign may not give to what is its own."""

from __future__ import annotations

from netbench.base.names import COLUMNS, is_taken
from netbench.read.cells import TIDY
from netbench.read.metrics import METRICS


def test_what_tables_have_is_taken_in_any_case() -> None:
    assert [name for name in (*METRICS, *COLUMNS, *TIDY) if not is_taken(name.title())] == []
    assert not any(map(is_taken, ("chunk", "latency_p99", "sent_late", "sysctl.vm.swappiness")))
