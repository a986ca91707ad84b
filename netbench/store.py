"""Result folders: append-only records, written so that a kill at any instant loses at most the run
in flight.

    results/<name>/<UTC>-<id>/ campaign.yaml plan.json facts.json records.jsonl samples/
    journal.jsonl log.txt report/

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

from netbench.codec import parse, to_line, unreadable
from netbench.errors import PlaceError, ReportError, StoreError
from netbench.record import SCHEMA, Record, parse_record

NOISE = "samples/noise.jsonl"


def now() -> str:
    """UTC in ISO 8601 with microseconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _add_line(descriptor: int, value: Mapping[str, Any]) -> None:
    """Add a line to a file: all of it, or nothing. Errors: OSError."""
    end = os.lseek(descriptor, 0, os.SEEK_END)
    line = to_line(value)
    try:
        while line:
            line = line[os.write(descriptor, line) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, end)
        raise


def _trouble(what: str, path: Path, error: OSError) -> StoreError:
    """A result folder that exists cannot be written any more."""
    then = f"{_remedy(error)}, then `resume` goes on: all records are safe"
    if error.errno == errno.ENOENT:
        then = "the folder was moved or removed; `resume` goes on where it is now"
    return StoreError(f"cannot {what} {path}: {error.strerror}; {then}")


def _remedy(error: OSError) -> str:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "free some space there" if full else "make it writable"


def no_result(path: Path) -> ReportError:
    """A path is no result folder."""
    return ReportError(
        f"{path} holds no result; give a folder such as results/NAME/TIME-ID (`list results` names"
        " them)"
    )


def closed(file: Path, error: OSError) -> StoreError:
    """A file of a result folder cannot be opened or read."""
    return StoreError(
        f"{file} cannot be read: {error.strerror}; make it readable, or put back a copy of it"
    )


MISSHAPEN = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    IndexError,
)  # what reading a file of another shape raises


def misshapen(file: Path | str, what: str, error: Exception) -> StoreError:
    """A file, or a line of it, is JSON but not `what` docs/records.md says."""
    flaw = f"no {error.args[0]!r}" if isinstance(error, KeyError) else str(error)
    return unreadable(file, f"not {what} as docs/records.md says ({flaw})")


def _parsed(file: Path) -> Any:
    """A JSON file. Errors: StoreError; FileNotFoundError."""
    try:
        return json.loads(file.read_bytes())
    except FileNotFoundError:
        raise
    except OSError as error:
        raise closed(file, error) from error
    except ValueError as error:
        raise unreadable(file, f"not JSON: {error}") from error


_NEEDED = {
    "boot",
    "boot_id",
    "clock_ticks",
    "facts",
}  # of a boot's entry in facts.json, to go on with its records


class StoredLines:
    """The whole lines of a file, each with its number from 1. Errors: StoreError.

    A last line without a newline is left out, even if it can be read: its writer was killed, and
    `resume` cuts it off.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.truncated = False
        """Whether the last line was left out. Known once all lines were read."""

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        try:
            with self.file.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    if not line.endswith(b"\n"):
                        self.truncated = True
                        return
                    yield number, line
        except OSError as error:
            raise closed(self.file, error) from error


class Store:
    """One result folder, open for one campaign. Errors of every method: StoreError."""

    def __init__(self, path: Path) -> None:
        self.path = path
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
            what = f"cannot make the result folder {final}: {error.strerror}"
            raise PlaceError(
                f"{what}; {_remedy(error)}, or choose another place with --results"
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
        file = self.path / "records.jsonl"
        try:
            self._records = os.open(file, os.O_RDWR | os.O_CLOEXEC)
            fcntl.flock(self._records, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._cut_unfinished(file)
            for beside in (self.path / "journal.jsonl", self.path / NOISE):
                if beside.exists():
                    self._cut_unfinished(beside)
            self._log = (self.path / "log.txt").open("a", encoding="utf-8")
        except BlockingIOError as error:
            self.close()
            raise StoreError(
                f"{self.path} is being written by another netbench; wait for it or stop it"
            ) from error
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

    def append(self, record: Record) -> None:
        """Add one record: whole and on its way to the disk when this returns, or not at all."""
        if self._records is None:
            raise StoreError(f"{self.path} is not open for writing")
        try:
            _add_line(self._records, record.to_json())
        except OSError as error:
            raise _trouble("write", self.path / "records.jsonl", error) from error

    def journal(self, entry: Mapping[str, Any]) -> None:
        """Add a line to journal.jsonl and force it to the disk: what must be known after
        a crash.
        """
        file = self.path / "journal.jsonl"
        try:
            with file.open("ab") as journal:
                _add_line(journal.fileno(), {"time": now(), **entry})
                os.fsync(journal.fileno())
        except OSError as error:
            raise _trouble("write", file, error) from error

    def journal_entries(self) -> list[dict[str, Any]]:
        """The journal's whole lines, in order."""
        file = self.path / "journal.jsonl"
        entries = [parse(line, f"{file}:{number}") for number, line in StoredLines(file)]
        for number, entry in enumerate(entries, 1):
            if not isinstance(entry, dict):
                raise unreadable(f"{file}:{number}", "not a JSON object")
        return entries

    def plan(self) -> dict[str, Any]:
        """plan.json."""
        file = self.path / "plan.json"
        try:
            found = _parsed(file)
        except FileNotFoundError as error:
            raise closed(file, error) from error
        if not isinstance(found, dict):
            raise unreadable(file, "not a plan")
        return found

    def samples(self, run: int, lines: Iterable[Mapping[str, Any]]) -> None:
        """Keep a run's samples, one line each."""
        self._write(self.path / "samples" / f"{run:06d}.jsonl", b"".join(map(to_line, lines)))

    def noise(self, entry: Mapping[str, Any]) -> None:
        """Add what was read around a block on one host, on its way to the disk when this
        returns.
        """
        file = self.path / NOISE
        try:
            with file.open("ab") as noise:
                _add_line(noise.fileno(), {"time": now(), **entry})
        except OSError as error:
            raise _trouble("write", file, error) from error

    def text(self, run: int, text: str) -> None:
        """Keep what an external tool printed in a run."""
        self._write(self.path / "samples" / f"{run:06d}.txt", text.encode())

    def facts(self, hosts: Mapping[str, Any]) -> None:
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

    def records(self) -> Iterator[Record]:
        """All whole records, in order. Errors: StoreError with the line of one that is none."""
        file = self.path / "records.jsonl"
        return (parse_record(line, f"{file}:{number}") for number, line in StoredLines(file))

    def stored_facts(self) -> dict[str, list[dict[str, Any]]]:
        """The hosts of facts.json, each with an entry or more, or nothing if there is none yet."""
        file = self.path / "facts.json"
        try:
            hosts = dict(_parsed(file)["hosts"].items())
        except FileNotFoundError:
            return {}
        except MISSHAPEN as error:
            raise misshapen(file, "facts", error) from error
        for name, entries in hosts.items():
            whole = isinstance(entries, list) and all(
                isinstance(entry, dict) and entry.keys() >= _NEEDED for entry in entries
            )
            if not whole or not entries:
                raise unreadable(file, f"host {name} lacks one of {', '.join(sorted(_NEEDED))}")
        return hosts

    def campaign_text(self) -> str:
        """The effective campaign."""
        file = self.path / "campaign.yaml"
        try:
            return file.read_text(encoding="utf-8")
        except OSError as error:
            raise closed(file, error) from error
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
