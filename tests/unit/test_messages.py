"""The tool that lists every message."""

from __future__ import annotations

import pytest

from tools.messages import main


def test_messages_are_found_where_they_are_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    table = capsys.readouterr().out
    assert len(table.split("netbench/")) > 300
    assert len(table.split("native/src/")) > 80
    assert "data, sources, sinks and tools run as root" in table, "a finding"


def test_the_table_is_by_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["native/src/sink.c"]) == 0
    table = capsys.readouterr().out
    assert "choose another path, or write {file: ..., overwrite: true}" in table
    assert "netbench/" not in table
