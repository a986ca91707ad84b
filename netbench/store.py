"""Result folders: append-only records, written so that a kill at any instant loses at most the run
in flight.

    results/<name>/<UTC>-<id>/ campaign.yaml plan.json facts.json records.jsonl samples/
    journal.jsonl log.txt report/

The folder appears whole, by rename. Every record is one line, flushed before the next run begins.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from netbench.codec import SCHEMA, unreadable
from netbench.control_characters import escape_controls
from netbench.errors import PlaceError, ReportError, StoreError
from netbench.journal import Journal
from netbench.json_lines import JsonLines, add_line, cannot, cannot_read, now, remedy_of, to_line
from netbench.record import Record, parse_record
from netbench.result_files import NOISE, Hosts, RawEntry, read_facts, read_plan


def no_result(path: Path) -> ReportError:
    """A path is no result folder."""
    return ReportError(
        f"{path} is not a result folder; give one such as results/NAME/TIME-ID (`list results`"
        " shows them)"
    )


class Store:
    """One result folder, open for one campaign. Errors of every method: StoreError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal = JsonLines(path / "journal.jsonl")
        self.journal = Journal(self._journal.path)
        self._noise = JsonLines(path / NOISE)
        self._lines = JsonLines(path / "records.jsonl")
        self._records: int | None = (
            None  # a descriptor: a buffer would hold back what the disk did not take
        )
        self._log: TextIO | None = None

    @staticmethod
    def create(results: Path, name: str, campaign: str, plan: Mapping[str, Any]) -> Store:
        """Make a new result folder below `results`, whole or not at all."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        final = results / name / f"{stamp}-{secrets.token_hex(3)}"
        draft = final.parent / f".{final.name}.new"
        try:
            (draft / "samples").mkdir(parents=True)
            (draft / "campaign.yaml").write_text(campaign, encoding="utf-8")
            (draft / "plan.json").write_text(
                json.dumps({"schema": SCHEMA, **plan}, indent=1, ensure_ascii=False),
                encoding="utf-8",
            )
            for file in ("records.jsonl", "journal.jsonl", "log.txt"):
                (draft / file).touch()
            draft.rename(final)
        except OSError as error:
            shutil.rmtree(draft, ignore_errors=True)
            what = f"cannot create the result folder {final}: {error.strerror}"
            raise PlaceError(
                f"{what}; {remedy_of(error)}, or choose another place with --results"
            ) from error
        return Store(final)

    @staticmethod
    def open(path: Path) -> Store:
        """An existing result folder."""
        if not (path / "records.jsonl").is_file() or not (path / "campaign.yaml").is_file():
            raise no_result(path)
        return Store(path)

    def lock(self) -> None:
        """Take the folder for this process and cut off lines that a kill left unfinished."""
        try:
            self._records = os.open(self._lines.path, os.O_RDWR | os.O_CLOEXEC)
            fcntl.flock(self._records, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for lines in (self._lines, self._journal, self._noise):
                if lines.path.exists():
                    lines.cut_unfinished()
            self._log = (self.path / "log.txt").open("a", encoding="utf-8")
        except BlockingIOError as error:
            self.close()
            raise StoreError(
                f"{self.path} is in use by another netbench; wait until it ends, or stop it"
            ) from error
        except OSError as error:
            self.close()
            raise cannot("open", self._lines.path, error) from error

    def append(self, record: Record) -> None:
        """Add one record: whole and on its way to the disk when this returns, or not at all."""
        if self._records is None:
            raise StoreError(f"{self.path} is not open for writing")
        try:
            add_line(self._records, record.to_json())
        except OSError as error:
            raise cannot("write", self._lines.path, error) from error

    def plan(self) -> dict[str, Any]:
        """plan.json, of the shape of PlanFile."""
        return read_plan(self.path / "plan.json")

    def samples(self, run: int, lines: Iterable[Mapping[str, Any]]) -> None:
        """Keep a run's samples, one line each."""
        self._write(self.path / "samples" / f"{run:06d}.jsonl", b"".join(map(to_line, lines)))

    def noise(self, entry: Mapping[str, Any]) -> None:
        """Add what was read around a block on one host, on its way to the disk when this
        returns.
        """
        self._noise.append({"time": now(), **entry})

    def text(self, run: int, text: str) -> None:
        """Keep what an external tool printed in a run."""
        self._write(self.path / "samples" / f"{run:06d}.txt", text.encode())

    def facts(self, hosts: Mapping[str, Sequence[RawEntry]]) -> None:
        """Replace facts.json."""
        self._write(
            self.path / "facts.json",
            json.dumps({"schema": SCHEMA, "hosts": hosts}, indent=1, ensure_ascii=False).encode(),
        )

    def _write(self, file: Path, data: bytes) -> None:
        draft = file.with_name(f".{file.name}.new")
        try:
            draft.write_bytes(data)
            draft.rename(file)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise cannot("write", file, error) from error

    def note(self, message: str) -> None:
        """Add a line to log.txt."""
        if self._log is None:
            return
        try:
            self._log.write(f"{now()} {escape_controls(message)}\n")
            self._log.flush()
        except OSError as error:
            raise cannot("write", self.path / "log.txt", error) from error

    def records(self) -> Iterator[Record]:
        """All whole records, in order. Errors: StoreError with the line of one that is none."""
        return (parse_record(line, self._lines.where(number)) for number, line in self._lines)

    def stored_facts(self) -> Hosts:
        """The hosts of facts.json, each with an entry or more, of the shape of HostEntry; none if
        there is no such file yet.
        """
        return read_facts(self.path / "facts.json")

    def campaign_text(self) -> str:
        """The effective campaign."""
        file = self.path / "campaign.yaml"
        try:
            return file.read_text(encoding="utf-8")
        except OSError as error:
            raise cannot_read(file, error) from error
        except ValueError as error:
            raise unreadable(file, "not UTF-8 text") from error

    def close(self) -> None:
        """Let go of the folder."""
        if self._records is not None:
            os.close(self._records)
        if self._log is not None:
            with suppress(OSError):  # what the log could not take was said when it was written
                self._log.close()
        self._records = self._log = None


def count_records(folder: Path) -> int | None:
    """How many records a result folder has; None where they cannot be read."""
    try:
        with (folder / "records.jsonl").open("rb") as raw:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: raw.read(1 << 20), b""))
    except OSError:
        return None
