"""A result's records as columns, kept so that a second look does not parse them again.

What is kept is what record_shapes takes from lines: their numbers, and one line of each kind for
the rest. So everything that is derived is derived anew. The file's name does not matter: within it
is a hash of the records and the plan, and of the program that read them. It lies in the user's
cache, not in the result, which may be anybody's. Nothing in it is executed (numpy's arrays and JSON
in a zip archive), and a file that is not whole is not read.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from netbench.base import cache as of_machine
from netbench.base.errors import StoreError
from netbench.base.opening import open_file
from netbench.read import record_shapes, record_tables
from netbench.read.record_tables import Head, Kind, Runs, Table, note_of
from netbench.result import codec, record

LEAST = 8 << 20
"""Bytes of records.jsonl below which it is parsed as fast."""
FEW_NOTES, MOST_NOTES = 100, 0.1
"""Where more runs than this have a reason or settings of their own, lines are as small."""
_ABOUT = "about.json"
_ARRAYS = ("rows", "started", "notes", "integers", "reals")
_READ = ("records.jsonl", "plan.json")


def key_of(folder: Path) -> str:
    """A hash of what the columns depend on; "" for a result too small to keep. Errors: OSError."""
    if (folder / _READ[0]).stat().st_size < LEAST:
        return ""
    digest = hashlib.sha256(_program())  # processors have instructions for it
    for name in _READ:
        with open_file(folder / name) as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()


@cache
def _program() -> bytes:
    """A hash of the files that say what a record is."""
    files = [Path(str(module.__file__)) for module in (codec, record, record_shapes, record_tables)]
    files.append(Path(__file__))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


class Kept:
    """The columns of one result: read where they were kept, else written while records are read."""

    def __init__(self, folder: Path) -> None:
        """folder: of the result. Errors: OSError where its files cannot be read."""
        self._key = key_of(folder)
        self._place = of_machine.base() / "records" / f"{self._key}.zip"
        self._draft: Path | None = None
        self._chunks = 0

    def runs(self) -> Iterator[list[Runs]] | None:
        """The runs in the chunks in which they were taken in; None where they are not kept."""
        with suppress(OSError, ValueError, KeyError, zipfile.BadZipFile):
            archive = zipfile.ZipFile(self._place)
            about = json.loads(archive.read(_ABOUT))
            if self._key and about["key"] == self._key and archive.testzip() is None:
                return _chunks(archive, int(about["chunks"]), self._place)
        return None

    def add(self, runs: Sequence[Runs]) -> None:
        """Keep the runs of a chunk. What cannot be kept ends it: a full disk, odd records."""
        if not self._key:
            return
        try:
            if self._draft is None:
                self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                descriptor, name = tempfile.mkstemp(dir=self._place.parent, prefix="tmp")
                os.close(descriptor)
                self._draft = Path(name)
            with zipfile.ZipFile(self._draft, "a") as archive:
                _write(archive, self._chunks, runs)
            self._chunks += 1
        except (OSError, NotKept):
            self.drop()

    def end(self) -> None:
        """All records were added, and are whole."""
        if self._draft is None:
            return
        try:
            with zipfile.ZipFile(self._draft, "a") as archive:
                archive.writestr(_ABOUT, json.dumps({"key": self._key, "chunks": self._chunks}))
            self._draft.replace(self._place)
        except OSError:
            self.drop()

    def drop(self) -> None:
        """Keep nothing."""
        if self._draft is not None:
            self._draft.unlink(missing_ok=True)
        self._key, self._draft = "", None


class NotKept(Exception):
    """Records that columns do not hold, or not in less room."""


def _write(archive: zipfile.ZipFile, number: int, runs: Sequence[Runs]) -> None:
    """Add a chunk. Errors: OSError, NotKept."""
    notes = {id(note): note for each in runs for note in each.notes}
    total = sum(map(len, runs))
    if len(notes) > FEW_NOTES + MOST_NOTES * total:
        raise NotKept
    places = {key: at for at, key in enumerate(notes)}
    by_table: dict[int, list[Runs]] = {}
    for each in runs:
        by_table.setdefault(id(each.table), []).append(each)
    cells = [sorted(of_one, key=lambda each: each.at.start) for of_one in by_table.values()]
    tables, ordered = [of_one[0].table for of_one in cells], list(chain(*cells))
    arrays: dict[str, npt.NDArray[Any]] = {
        "rows": np.concatenate([each.rows for each in tables]),
        "started": np.array([text.encode() for each in ordered for text in each.started]),
        "notes": np.array([places[id(note)] for each in ordered for note in each.notes]),
        "integers": np.concatenate([each.integers.ravel() for each in tables]),
        "reals": np.concatenate([each.reals.ravel() for each in tables]),
    }
    if any(array.dtype == object for array in arrays.values()):
        raise NotKept
    for name, array in arrays.items():
        with archive.open(f"{number}/{name}.npy", "w", force_zip64=True) as out:
            np.lib.format.write_array(out, array, allow_pickle=False)
    about = {
        "tables": [
            {
                "line": of_one[0].table.kind.line.decode(),
                "cells": [(astuple(each.head), len(each)) for each in of_one],
            }
            for of_one in cells
        ],
        "notes": [note.line.decode() for note in notes.values()],
    }
    archive.writestr(f"{number}/{_ABOUT}", json.dumps(about), zipfile.ZIP_DEFLATED)


def _chunks(archive: zipfile.ZipFile, chunks: int, place: Path) -> Iterator[list[Runs]]:
    """Errors: StoreError for an archive that is whole, and that netbench has not written."""
    try:
        for number in range(chunks):
            yield _read(archive, number)
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise StoreError(f"{place}: not what netbench has written ({error}); remove it") from error


def _read(archive: zipfile.ZipFile, number: int) -> list[Runs]:
    """The runs of a chunk."""
    about = json.loads(archive.read(f"{number}/{_ABOUT}"))
    arrays = {}
    for name in _ARRAYS:
        with archive.open(f"{number}/{name}.npy") as opened:
            arrays[name] = np.lib.format.read_array(opened, allow_pickle=False)
    notes = [note_of(line.encode()) for line in about["notes"]]
    started = arrays["started"].astype(str).tolist()
    noted = [notes[at] for at in arrays["notes"].tolist()]
    found, row, integer, real = [], 0, 0, 0
    for said in about["tables"]:
        kind, n = Kind(said["line"].encode()), sum(each for _, each in said["cells"])
        integers, reals = (len(kind.integers), n), (len(kind.reals), n)
        table = Table(
            kind,
            arrays["rows"][row : row + n],
            arrays["integers"][integer : integer + integers[0] * n].reshape(integers),
            arrays["reals"][real : real + reals[0] * n].reshape(reals),
        )
        integer, real, first = integer + integers[0] * n, real + reals[0] * n, row
        for head, runs in said["cells"]:
            of_cell = slice(row, row + runs)
            at = slice(row - first, row - first + runs)
            found.append(Runs(Head(*head), started[of_cell], noted[of_cell], table, at))
            row = of_cell.stop
    return sorted(found, key=lambda runs: int(runs.rows[0]))
