"""Result folders: append-only records, written so that a kill at any instant loses at most the run in flight.

    results/<name>/<UTC>-<id>/ campaign.yaml plan.json facts.json records.jsonl samples/ journal.jsonl log.txt report/

The folder appears whole, by rename. Every record is one line, flushed before the next run begins.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from netbench.errors import ReportError, StoreError

SCHEMA = 1


def now() -> str:
    """UTC in ISO 8601 with microseconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"


SAFE = ". Records that were written are safe; `resume` goes on from them"


def _trouble(what: str, path: Path, error: OSError, then: str = SAFE) -> StoreError:
    remedy = "free some space" if error.errno == errno.ENOSPC else "choose another folder with --results, or make it writable"
    return StoreError(f"cannot {what} {path}: {error.strerror}; {remedy}{then}")


class Store:
    """One result folder, open for one campaign. Errors of every method: StoreError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records: int | None = None  # a descriptor: a buffer would hold back what the disk did not take
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
                json.dumps({"schema": SCHEMA, **plan}, indent=1, ensure_ascii=False), encoding="utf-8"
            )
            for file in ("records.jsonl", "journal.jsonl", "log.txt"):
                (draft / file).touch()
            draft.rename(final)
        except OSError as error:
            shutil.rmtree(draft, ignore_errors=True)
            raise _trouble("make the result folder", final, error, then="") from error
        return Store(final)

    @staticmethod
    def open(path: Path) -> Store:
        """An existing result folder."""
        if not (path / "records.jsonl").is_file() or not (path / "campaign.yaml").is_file():
            raise ReportError(f"{path} holds no result; give a folder such as results/NAME/TIME-ID")
        return Store(path)

    def lock(self) -> None:
        """Take the folder for this process and cut off a line that a kill left unfinished."""
        file = self.path / "records.jsonl"
        try:
            self._records = os.open(file, os.O_RDWR | os.O_CLOEXEC)
            fcntl.flock(self._records, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._cut_unfinished(file)
            self._log = (self.path / "log.txt").open("a", encoding="utf-8")
        except BlockingIOError as error:
            self.close()
            raise StoreError(f"{self.path} is being written by another netbench; wait for it or stop it") from error
        except OSError as error:
            self.close()
            raise _trouble("open", file, error) from error

    @staticmethod
    def _cut_unfinished(file: Path) -> None:
        with file.open("rb+") as raw:
            size = raw.seek(0, os.SEEK_END)
            step, end = 65536, size
            while end > 0:
                start = max(0, end - step)
                raw.seek(start)
                newline = raw.read(end - start).rfind(b"\n")
                if newline >= 0:
                    raw.truncate(start + newline + 1)
                    return
                end = start
            raw.truncate(0)

    def append(self, record: Mapping[str, Any]) -> None:
        """Add one record: whole and on its way to the disk when this returns, or not at all."""
        if self._records is None:
            raise StoreError(f"{self.path} is not open for writing")
        end = os.lseek(self._records, 0, os.SEEK_END)
        line = _line({"schema": SCHEMA, **record}).encode()
        try:
            while line:
                line = line[os.write(self._records, line) :]
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._records, end)
            raise _trouble("write", self.path / "records.jsonl", error) from error

    def journal(self, entry: Mapping[str, Any]) -> None:
        """Add a line to journal.jsonl and force it to the disk: what must be known after a crash."""
        file = self.path / "journal.jsonl"
        try:
            with file.open("a", encoding="utf-8") as journal:
                journal.write(_line({"time": now(), **entry}))
                journal.flush()
                os.fsync(journal.fileno())
        except OSError as error:
            raise _trouble("write", file, error) from error

    def journal_entries(self) -> list[dict[str, Any]]:
        """The journal's whole lines, in order."""
        try:
            text = (self.path / "journal.jsonl").read_text(encoding="utf-8")
            return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.path / 'journal.jsonl'} cannot be read: {error}") from error

    def plan(self) -> dict[str, Any]:
        """plan.json."""
        try:
            return dict(json.loads((self.path / "plan.json").read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.path / 'plan.json'} cannot be read: {error}") from error

    def samples(self, run: int, lines: Iterable[Mapping[str, Any]]) -> None:
        """Keep a run's samples, one line each."""
        self._write(self.path / "samples" / f"{run:06d}.jsonl", "".join(_line(line) for line in lines))

    def text(self, run: int, text: str) -> None:
        """Keep what an external tool printed in a run."""
        self._write(self.path / "samples" / f"{run:06d}.txt", text)

    def facts(self, hosts: Mapping[str, Any]) -> None:
        """Replace facts.json."""
        self._write(self.path / "facts.json", json.dumps({"schema": SCHEMA, "hosts": hosts}, indent=1, ensure_ascii=False))

    def _write(self, file: Path, text: str) -> None:
        draft = file.with_name(f".{file.name}.new")
        try:
            draft.write_text(text, encoding="utf-8")
            draft.rename(file)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise _trouble("write", file, error) from error

    def note(self, message: str) -> None:
        """Add a line to log.txt."""
        if self._log is None:
            return
        try:
            self._log.write(f"{now()} {message}\n")
            self._log.flush()
        except OSError as error:
            raise _trouble("write", self.path / "log.txt", error) from error

    def records(self) -> Iterator[dict[str, Any]]:
        """All whole records, in order. Errors: StoreError with the line of one that is not JSON."""
        with (self.path / "records.jsonl").open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith("\n"):
                    return
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise StoreError(f"{self.path / 'records.jsonl'}:{number}: not JSON: {error}") from error

    def stored_facts(self) -> dict[str, Any]:
        """The hosts of facts.json, or nothing if there is none yet."""
        try:
            found = json.loads((self.path / "facts.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.path / 'facts.json'} cannot be read: {error}") from error
        return dict(found.get("hosts", {}))

    def campaign_text(self) -> str:
        """The effective campaign."""
        try:
            return (self.path / "campaign.yaml").read_text(encoding="utf-8")
        except OSError as error:
            raise _trouble("read", self.path / "campaign.yaml", error) from error

    def close(self) -> None:
        """Let go of the folder."""
        if self._records is not None:
            os.close(self._records)
        if self._log is not None:
            with suppress(OSError):  # what the log could not take was said when it was written
                self._log.close()
        self._records = self._log = None
