"""Result folders: whole or not at all, append-only, nothing lost but the run in flight."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netbench.base.json_lines import to_line
from netbench.result.journal import MadeSink, Restored
from netbench.result.record import Record
from netbench.result.store import Store


def record(run: int, reason: str = "") -> Record:
    started = "2026-03-01T12:00:00.123456Z"
    return Record(run, "all", "here>here", 0, 0, {}, "failed", reason, started)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.create(tmp_path / "results", "name", "netbench: 1\n", {"cells": []})
    made.lock()
    return made


def test_what_takes_the_place_of_a_result_is_not_written(store: Store, tmp_path: Path) -> None:
    """The folder above may be another account's, who may move it away."""
    other = tmp_path / "other"
    for folder in (other, other / "samples"):
        folder.mkdir()
    made = store.path.rename(tmp_path / "away")
    store.path.symlink_to(other)
    store.append(record(1))
    store.noise({"block": 0, "host": "here", "ns": [0, 0]})
    store.journal.write(Restored((1,), "here"))
    store.facts({})
    store.samples(1, [])
    assert list(other.rglob("*")) == [other / "samples"]
    assert b"restored" in (made / "journal.jsonl").read_bytes()
    assert {"facts.json", "000001.jsonl"} <= {file.name for file in made.rglob("*")}
    store.close()
    assert Store.open(made).path == made


def test_a_new_folder_and_its_facts_are_forced_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file and its folder before the folder appears, then the names above; a kill of the
    machine itself cannot be tried.
    """
    forced: list[str] = []
    honest = os.fsync

    def fsync(fd: int) -> None:
        forced.append(os.readlink(f"/proc/self/fd/{fd}"))
        honest(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    store = Store.create(tmp_path / "results", "name", "netbench: 1\n", {"cells": []})
    draft = str(store.path.parent / f".{store.path.name}.new")
    made = {path.name for path in store.path.iterdir() if path.is_file()}
    assert {"campaign.yaml", "plan.json", "records.jsonl", "journal.jsonl"} <= made
    assert store.state
    state = str(store.state.path)
    own = {path.name for path in store.state.path.iterdir()}
    assert own == {"campaign.yaml", "plan.json", "journal.jsonl", "result"}
    last = len(forced) - 1 - forced[::-1].index(draft)
    before = forced[:last]
    for place, inside in ((draft, made), (state, own)):
        within = {each for each in before if each.startswith(f"{place}/")}
        assert within == {f"{place}/{name}" for name in inside}
    assert str(store.state.path.parent) in before
    assert forced[last + 1 :] == [str(tmp_path / "results" / "name")]
    assert {str(tmp_path / "results"), str(tmp_path)} <= set(before)
    forced.clear()
    store.facts({})
    assert [Path(each).parent for each in forced] == [store.path, store.path.parent]


@pytest.mark.parametrize(("lines", "cut"), [(2, 1), (2, 23), (1, 23)])
def test_a_line_cut_short_by_a_kill_is_dropped_and_the_rest_kept(
    store: Store, lines: int, cut: int
) -> None:
    written = [record(run, reason="a\nb \u2028 ü") for run in range(1, lines + 1)]
    for each in written:
        store.append(each)
    store.journal.write(MadeSink("/one", "h", "b", 1, 2))
    store.close()
    file = store.path / "records.jsonl"
    assert file.read_bytes() == b"".join(to_line(each.to_json()) for each in written)
    file.write_bytes(file.read_bytes()[:-cut])
    with (store.path / "journal.jsonl").open("a") as journal:
        journal.write('{"time":"2026","kind":"en')
    assert list(store.records()) == written[:-1]
    again = Store.open(store.path)
    again.lock()
    again.append(record(3))
    assert [r.run for r in again.records()] == [*[1, 2][: lines - 1], 3]
    again.journal.write(MadeSink("/three", "h", "b", 1, 2))
    assert [sink.path for sink in again.journal.all(MadeSink)] == ["/one", "/three"]
