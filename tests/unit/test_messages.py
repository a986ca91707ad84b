"""The tool that lists every message, and what each of the engine's must have."""

from __future__ import annotations

import pytest

from tools.messages import c_messages, main, python_messages


def test_every_failure_of_the_engine_says_what_to_do() -> None:
    """Operation, message and remedy; one aborted by the controller needs no remedy."""
    found = list(c_messages())
    assert len(found) > 80
    assert [
        str(m)
        for m in found
        if len([text for text in m.texts if text]) < 3 and m.texts[1] != "aborted by the controller"
    ] == []


def test_messages_are_found_where_they_are_made() -> None:
    said = {text for message in python_messages() for text in message.texts}
    assert "data, sources, sinks and tools run as root" in said, "a finding"
    made = "cannot create the result folder {final}: {error.strerror}; {remedy_of(error)}, or choose another place with --results"
    assert made in said, "a name that holds the beginning"


def test_the_table_is_by_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["native/src/sink.c"]) == 0
    table = capsys.readouterr().out
    assert "choose another path, or write {file: ..., overwrite: true}" in table
    assert "netbench/" not in table
