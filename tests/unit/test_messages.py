"""The tool that lists every message."""

from __future__ import annotations

import re

import pytest

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
