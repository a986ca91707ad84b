"""The journal: what is written is read back, what it knows of hosts, and damaged lines."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbench.errors import StoreError
from netbench.interrupts import held_back
from netbench.journal import (
    ENTRIES,
    Back,
    BootBegun,
    Booted,
    Change,
    Ended,
    Entry,
    Journal,
    MadeSink,
    ModulesHidden,
    ModulesShown,
    OriginalKernel,
    Restored,
    Why,
    entry_json,
    outstanding,
    parse_entry,
)
from netbench.json_lines import JsonLines, to_line
from netbench.signing import Key, LineSigner
from tests.support import damage
from tests.support.damage import texts

WHERE = "r/journal.jsonl:3"
TIME = "2026-03-01T12:00:00.123456Z"
numbers = st.integers(0, 2**64 - 1)
words = st.lists(texts, max_size=3).map(tuple)
entries: st.SearchStrategy[Entry] = st.one_of(
    st.builds(
        Change,
        number=numbers,
        host=texts,
        boot_id=texts,
        setting=texts,
        op=texts,
        target=words,
        value=st.none() | texts,
        before=texts,
        undo=words,
        look=words,
    ),
    st.builds(Restored, st.lists(numbers, max_size=3).map(tuple), texts),
    st.builds(MadeSink, texts, texts, texts, numbers, numbers),
    st.builds(Ended, st.sampled_from(["done", "limit", "interrupted", "lost"])),
    st.builds(OriginalKernel, texts, texts, texts, texts),
    st.builds(ModulesShown, texts, texts, st.booleans()),
    st.builds(ModulesHidden, texts, texts),
    st.builds(BootBegun, numbers, texts, texts, texts, texts),
    st.builds(Booted, numbers, texts, texts, texts),
    st.builds(Back, texts, texts),
)
EXAMPLES: dict[str, Entry] = {
    "change": Change(7, "snd", "b1", "tso", "features", ("eth0",), "off", "on", ("u",), ("l", "m")),
    "restored": Restored((7, 8), "snd"),
    "made_sink": MadeSink("/data/out", "rcv", "b", 65024, 131),
    "ended": Ended("limit"),
    "original_kernel": OriginalKernel("snd", "b0", "6.1", "quiet"),
    "modules_shown": ModulesShown("snd", "/lib/modules/6.12", True),
    "modules_hidden": ModulesHidden("snd", "/lib/modules/6.12"),
    "boot": BootBegun(1, "new", "snd", "6.12", "b0"),
    "booted": Booted(1, "snd", "b1", "6.12"),
    "back": Back("snd", "b2"),
}
RAW: dict[str, dict[str, Any]] = {kind: entry_json(entry, TIME) for kind, entry in EXAMPLES.items()}


@given(st.lists(entries, max_size=5))
def test_what_is_written_is_read_back(written: list[Entry]) -> None:
    for entry in written:
        assert parse_entry(to_line(entry_json(entry, TIME)), WHERE) == entry


def test_every_kind_is_on_disk_with_its_keys(tmp_path: Path) -> None:
    assert EXAMPLES.keys() == ENTRIES.keys()
    journal = Journal(tmp_path / "journal.jsonl")
    for entry in EXAMPLES.values():
        journal.write(entry)
    assert journal.entries() == list(EXAMPLES.values())
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == list(ENTRIES)
    for line, entry in zip(lines, EXAMPLES.values(), strict=True):
        assert list(line) == ["time", "kind", *(each.name for each in fields(entry))]


@given(st.sampled_from(sorted(RAW)).flatmap(lambda kind: damage.damaged(RAW[kind])))
def test_a_damaged_line_is_an_error_that_names_it_or_an_entry_still(line: bytes) -> None:
    if refused := damage.refusal(parse_entry, line, WHERE):
        assert refused.startswith(f"{WHERE}: ")
        assert "; " in refused
    else:
        entry = parse_entry(line, WHERE)
        assert parse_entry(to_line(entry_json(entry, TIME)), WHERE) == entry


@pytest.mark.parametrize("kind", ENTRIES)
def test_a_key_that_is_missing_is_named(kind: str) -> None:
    for key in set(RAW[kind]) - {"time", "kind", "undo", "look"}:
        with pytest.raises(StoreError, match=rf"^{WHERE}: not an entry .*\(no {key!r}\)"):
            parse_entry(damage.without(RAW[kind], (key,)), WHERE)


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("kind", "chance", "unknown kind 'chance'; kinds: change, restored, "),
        ("kind", ["change"], r"kind: expected a text, found \['change'\]"),
        ("time", 5, "time: expected a text, found 5"),
        ("number", "7", "number: expected a whole number, found '7'"),
        ("target", "eth0", "target: expected a list, found 'eth0'"),
        ("before", None, "before: expected a text, found None"),
        ("undone", 1, "unknown key 'undone'"),
    ],
)
def test_a_wrong_value_is_named(path: str, value: object, why: str) -> None:
    with pytest.raises(StoreError, match=rf"^{WHERE}: .*docs/records.md says \({why}"):
        parse_entry(damage.replaced(RAW["change"], (path,), value), WHERE)


@pytest.mark.parametrize("raw", damage.RAW)
def test_numbers_and_texts_beyond_all_measure_are_refused(raw: bytes) -> None:
    for key in ("number", "before"):
        with pytest.raises(StoreError, match=rf"^{WHERE}: not "):
            parse_entry(damage.spliced(RAW["change"], (key,), raw), WHERE)


def test_a_journal_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_bytes(to_line(RAW["back"]) + b'{"time":"","kind":"back"}\n' + b"{unfinished")
    with pytest.raises(StoreError, match=rf"^{file}:2: .*\(no 'host'\)"):
        Journal(file).entries()


def test_what_was_signed_is_known_without_reading_it_again(tmp_path: Path) -> None:
    """Each of hundreds of hosts is asked about, while all of them write."""
    path = tmp_path / "journal.jsonl"
    path.touch()
    changes = [
        Change(n, host, "b", "tso", "features", ("eth0",), "on", "off")
        for n, host in enumerate(("a", "b", "a"), 1)
    ]
    first = Journal(path)
    assert first.require(LineSigner(Key(bytes(32)), "r")) == []
    first.write(changes[0])
    later = Journal(path)
    assert later.require(LineSigner(Key(bytes(32)), "r")) == []
    for entry in (*changes[1:], Restored((1,), "a")):
        later.write(entry)
    read = Journal(path).all_entries()
    path.unlink()
    assert later.entries() == read
    assert later.outstanding("a") == [changes[2]]


def test_changes_are_outstanding_until_they_are_restored_on_their_host() -> None:
    changes = [
        Change(number, host, "b", "tso", "features", (), "off", "on")
        for number, host in ((1, "a"), (2, "b"), (3, "a"))
    ]
    journal: list[Entry] = [*changes, Restored((1, 2), "b")]
    assert outstanding(journal, "a") == [changes[2], changes[0]]
    assert outstanding(journal, "b") == []


def test_every_field_says_what_it_is() -> None:
    for entry in EXAMPLES.values():
        assert [each.name for each in fields(entry) if not each.metadata.get("about")] == []


def test_an_interrupt_waits_until_a_signed_line_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = LineSigner(Key(b"k" * 32), "0" * 32)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "journal.jsonl").touch()
    journal = Journal(tmp_path / "journal.jsonl")
    assert journal.require(signer) == []
    append = JsonLines.append_line

    def interrupted(lines: JsonLines, line: bytes, force: bool = False) -> None:
        append(lines, line, force)
        held_back.interrupt()

    monkeypatch.setattr(JsonLines, "append_line", interrupted)
    whys: tuple[Why, ...] = ("limit", "done")
    for why in whys:
        with pytest.raises(KeyboardInterrupt):
            journal.write(Ended(why))
    assert Journal(tmp_path / "journal.jsonl").require(signer) == []
    assert journal.entries() == [Ended("limit"), Ended("done")]
