"""Columns that were kept of records say what the records say, and nothing else is believed."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from netbench.base.errors import StoreError
from netbench.read import load as loading
from netbench.read import record_cache
from netbench.read.load import load
from netbench.read.result import Result
from netbench.report import text
from netbench.report.build import build
from tests.support.synthetic import Record, Synth


def kept(folder: Path) -> Path:
    """The newest of what is kept."""
    found = (folder.parent / "cache" / "netbench" / "records").glob("*.zip")
    return max(found, key=lambda file: file.stat().st_mtime_ns)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Small results are kept, too, in chunks of a few lines, and the user's cache is apart."""
    monkeypatch.setattr(record_cache, "LEAST", 0)
    monkeypatch.setattr(loading, "TOGETHER", 16)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def some_failed(record: Record) -> Record:
    """Two reasons, a moved setting, and a failed run without counters."""
    if record["run"] % 9 == 0:
        record = {k: v for k, v in record.items() if k not in ("sender", "receiver", "proof")}
        return record | {"status": "failed", "reason": f"cut {record['run'] % 2}"}
    return record


def made(folder: Path, edit: Callable[[Record], Record | None] | None = some_failed) -> Path:
    return Synth(pairs=("a>b", "b>a"), edit=edit).write(folder / "result")


def refuse(line: bytes, where: object) -> Any:
    raise AssertionError(f"{where} is parsed")


def same(a: Result, b: Result) -> None:
    pd.testing.assert_frame_equal(a.runs, b.runs)
    assert a.readbacks == b.readbacks
    assert a.proofs == b.proofs
    assert a.used == b.used
    assert a.moved == b.moved


def test_a_second_look_parses_no_record_and_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path)
    first, told = load(folder), text.render(build(folder))
    assert (kept(folder)).is_file()
    assert len(set(first.runs["reason"])) == 3
    monkeypatch.setattr("netbench.read.load._parse", refuse)
    same(load(folder), first)
    assert text.render(build(folder)) == told


@pytest.mark.parametrize("file", ["records.jsonl", "plan.json"])
def test_what_changed_is_read_anew(tmp_path: Path, file: str) -> None:
    folder = made(tmp_path)
    before = load(folder)
    status = (folder / file).stat()
    data = (folder / file).read_text()
    old, new = ('"status":"ok"', '"status":"ok" ') if file[0] == "r" else ('"seed"', ' "seed"')
    assert old in data
    (folder / file).write_text(data.replace(old, new, 1))
    os.utime(folder / file, ns=(status.st_atime_ns, status.st_mtime_ns))
    first = kept(folder)
    same(load(folder), before)
    assert kept(folder) != first


def test_records_that_grew_are_all_read(tmp_path: Path) -> None:
    folder = made(tmp_path)
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "records.jsonl").write_bytes(b"".join(lines[:-5]))
    assert len(load(folder).runs) == len(lines) - 5
    (folder / "records.jsonl").write_bytes(b"".join(lines))
    assert len(load(folder).runs) == len(lines)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def flip(file: Path) -> None:
    """A bit of a number."""
    with zipfile.ZipFile(file) as archive:
        info = archive.getinfo("0/integers.npy")
        at = info.header_offset + 400
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


def pickled(file: Path) -> None:
    """An array of objects, which only pickle reads; the archive is whole."""
    with zipfile.ZipFile(file) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in held.items():
            if name == "0/rows.npy":
                with archive.open(name, "w") as out:
                    np.lib.format.write_array(out, np.array([print], dtype=object))
            else:
                archive.writestr(name, data)


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("harm", [cut, flip, empty])
def test_what_is_harmed_is_not_believed(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    folder = made(tmp_path)
    before = load(folder)
    harm(kept(folder))
    same(load(folder), before)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    folder = made(tmp_path)
    load(folder)
    pickled(kept(folder))
    with pytest.raises(StoreError, match=r"allow_pickle.*remove it"):
        load(folder)


def test_nothing_is_kept_in_a_result(tmp_path: Path) -> None:
    folder = made(tmp_path)
    before = set(folder.rglob("*"))
    load(folder)
    assert set(folder.rglob("*")) == before


def test_records_that_are_cut_or_wrong_are_not_kept(tmp_path: Path) -> None:
    folder = made(tmp_path)
    with (folder / "records.jsonl").open("ab") as out:
        out.write(b'{"schema":2,')
    assert load(folder).truncated
    with (folder / "records.jsonl").open("ab") as out:
        out.write(b"\n")
    with pytest.raises(StoreError, match=r"records\.jsonl:81"):
        load(folder)
    assert not list((tmp_path / "cache").rglob("*.zip"))


def test_records_that_all_differ_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_cache, "FEW_NOTES", 8)

    def reasons(record: Record) -> Record:
        head = {k: v for k, v in record.items() if k not in ("sender", "receiver", "proof")}
        return head | {"status": "failed", "reason": f"port {record['run']}"}

    folder = made(tmp_path, reasons)
    assert len(load(folder).runs) == 80
    assert not list((tmp_path / "cache").rglob("*.zip"))


def test_small_results_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    folder = made(tmp_path)
    load(folder)
    assert not (tmp_path / "cache").exists()
