"""The account's key, and what it signs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbench.json_lines import to_line
from netbench.signing import FOREIGN, MISPLACED, REPEATED, UNSIGNED, Key, LineSigner, own_key, plain

KEY = Key(b"k" * 32)
objects = st.dictionaries(st.text(max_size=5), st.text(max_size=9), min_size=1, max_size=3)


def signed(lines: list[bytes], key: Key = KEY, result: str = "r") -> list[bytes]:
    signer = LineSigner(key, result)
    return [signer.sign(line, place) for place, line in enumerate(lines, 1)]


def reasons(lines: list[bytes], key: Key | None = KEY, result: str = "r") -> list[str]:
    return list(LineSigner(key, result).examine(lines))


@given(st.lists(objects, max_size=4))
def test_what_is_signed_is_valid_and_can_be_read_without_its_signature(
    values: list[dict[str, str]],
) -> None:
    lines = [to_line(value) for value in values]
    assert reasons(signed(lines)) == [""] * len(lines)
    assert [plain(line) for line in signed(lines)] == lines


@given(objects, st.data())
def test_no_byte_of_a_line_can_be_changed(value: dict[str, str], data: st.DataObject) -> None:
    (line,) = signed([to_line(value)])
    at = data.draw(st.integers(0, len(line) - 2))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte not in (line[at], ord("\n"))))
    changed = line[:at] + bytes([byte]) + line[at + 1 :]
    assert reasons([changed])[0] in (FOREIGN, UNSIGNED)


def test_each_line_is_valid_at_its_place_alone() -> None:
    one, two, three = signed([b'{"a":1}\n', b'{"b":2}\n', b'{"c":3}\n'])
    added = b'{"x":0}\n'
    assert reasons([one, added, two, three]) == ["", UNSIGNED, "", ""]
    assert reasons([one, three]) == ["", MISPLACED]
    assert reasons([one, two, one, three]) == ["", "", REPEATED, ""]
    assert reasons([two, one]) == [MISPLACED, ""]
    assert reasons([one, two], result="other") == [FOREIGN, FOREIGN]
    assert reasons([one, two], Key(b"x" * 32)) == [FOREIGN, FOREIGN]
    assert reasons([one, two], None) == [FOREIGN, FOREIGN]


MAKE = "from netbench.signing import own_key; print(own_key().name)"


def test_processes_that_make_the_key_at_the_same_time_have_the_same(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    argv = [sys.executable, "-c", MAKE]
    makers = [
        subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(6)
    ]
    names = {maker.communicate()[0] for maker in makers}
    assert len(names) == 1
    (key,) = (tmp_path / "state" / "netbench").iterdir()
    assert (key.name, key.stat().st_mode & 0o777) == ("key", 0o600)


@pytest.mark.parametrize("value", ["", "relative/place"])
def test_a_state_folder_that_is_no_absolute_path_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", value)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    own_key()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files == [tmp_path / "home" / ".local" / "state" / "netbench" / "key"]
