"""Texts: the tool that lists every message, long ones of others, and names that are taken."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

import pytest

from netbench.base.hostlist import expand
from netbench.base.names import COLUMNS, REQUEST_METRICS, is_taken
from netbench.base.units import parse_time
from netbench.kernels.boot.grub import _entries
from netbench.read.cells import TIDY
from netbench.read.metrics import METRICS
from netbench.read.profiles import _MODULE
from netbench.settings.files import CHOICE
from netbench.settings.nfs import _OPTION
from tools.messages import FAIL, ROOT, main


def test_every_failure_of_the_engine_says_what_to_do() -> None:
    """No text of a call is empty, and least the remedy: but of what the controller has aborted."""
    calls = [c[1] for f in (ROOT / "native/src").rglob("*.c") for c in FAIL.finditer(f.read_text())]
    silent = [call for call in calls if re.search(r'[(,]\s*(?:""|NULL)\s*[,)]', call)]
    assert len(calls) > 80
    assert [call for call in silent if "aborted by the controller" not in call] == []


def test_messages_are_found_where_they_are_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    table = capsys.readouterr().out
    assert len(table.split("netbench/")) > 300
    assert len(table.split("native/src/")) > 80
    assert "data, sources, sinks and tools run as root" in table, "a finding"


# Texts of others take no longer than they are long, however they are made


MANY = 100_000
TEXTS: list[tuple[Callable[[str], object], str]] = [
    (parse_time, f"1{' ' * MANY}!"),
    (expand, "a," * MANY),
    (expand, f"[{',' * MANY}"),
    (lambda text: list(_entries(text)), "${" * MANY),
    (_MODULE.search, " [" * MANY),
    (CHOICE.search, "[" * MANY),
    (_OPTION.fullmatch, f"a{' ' * MANY}!"),
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("read", "text"), TEXTS)
def test_a_long_text_is_read_or_refused_soon(read: Callable[[str], object], text: str) -> None:
    with suppress(ValueError):
        read(text)


# Names that a campaign may not give to what is its own


def test_what_tables_have_is_taken_in_any_case() -> None:
    taken = {*METRICS, *COLUMNS, *TIDY} - {*REQUEST_METRICS}  # tools may print such, too
    assert [name for name in taken if not is_taken(name.title())] == []
    assert not any(map(is_taken, ("chunk", "latency_p99", "sent_late", "sysctl.vm.swappiness")))
