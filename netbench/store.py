"""Result folders: append-only records, written so that a kill at any instant loses at most the run
in flight.

    results/<name>/<UTC>-<id>/ campaign.yaml plan.json signature.json facts.json records.jsonl
    samples/ journal.jsonl log.txt report/

The folder appears whole, by rename. Every record is one line, flushed before the next run begins.
Others may write nothing of it, and what lets a controller act on hosts is signed.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from netbench.codec import SCHEMA, to_json, unreadable
from netbench.control_characters import escape_controls
from netbench.errors import PlaceError, ReportError, StoreError
from netbench.journal import Journal
from netbench.json_lines import (
    JsonLines,
    add_line,
    cannot,
    cannot_read,
    now,
    open_own,
    remedy_of,
    to_line,
)
from netbench.ownership import refuse_foreign
from netbench.profile_files import (
    PROFILES,
    RUNS,
    Folded,
    ProfileRecord,
    folded_text,
    read_profile_runs,
)
from netbench.record import Record, parse_record
from netbench.result_files import (
    NOISE,
    SIGNATURE,
    FactsFile,
    Hosts,
    PlanFile,
    read_facts,
    read_plan,
    read_signature,
)
from netbench.result_signature import SIGNED, sign, why_not_as_begun
from netbench.signing import Doubt, Key, LineSigner, own_key, read_key

_LINES = ("records.jsonl", "journal.jsonl", "log.txt")
_READ = (
    *(*SIGNED, *_LINES, SIGNATURE, "facts.json", "samples", NOISE),
    *(PROFILES, f"{PROFILES}/{RUNS}"),
)
"""What a controller that goes on with a result reads, or adds to."""


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
        self._profiles = JsonLines(path / PROFILES / RUNS)
        self._lines = JsonLines(path / "records.jsonl")
        self._records: int | None = (
            None  # a descriptor: a buffer would hold back what the disk did not take
        )
        self._log: TextIO | None = None
        self._contents: dict[str, bytes] = {}
        self.why_unsigned = ""  # why the account could keep no key when the folder was made
        self.doubts: list[Doubt] = []
        """Lines of the journal that are not acted on. Known once the folder is locked."""

    @staticmethod
    def create(results: Path, name: str, campaign: str, plan: Mapping[str, Any]) -> Store:
        """Make a new result folder below `results`, whole or not at all, signed where the account
        can keep a key.
        """
        final = new_place(results, name)
        key, why_unsigned = _usable(own_key)
        contents = (campaign.encode(), document(plan))
        signature = sign(key, dict(zip(SIGNED, contents, strict=True)))
        with new_folder(final) as draft:
            for file, data in zip(SIGNED, contents, strict=True):
                write_new(draft / file, data, forced=True)
            write_new(draft / SIGNATURE, document(to_json(signature)), forced=True)
            for file in _LINES:
                write_new(draft / file, b"", forced=True)
        made = Store(final)
        made.why_unsigned = why_unsigned
        return made

    @staticmethod
    def open(path: Path) -> Store:
        """An existing result folder, to act on what it says. Errors: ReportError when it is none;
        StoreError when others may have changed it.
        """
        if not (path / "records.jsonl").is_file() or not (path / "campaign.yaml").is_file():
            raise no_result(path)
        try:
            for each in (path, *(path / name for name in _READ)):
                if each == path or os.path.lexists(each):
                    refuse_foreign(each)
        except OSError as error:
            raise cannot_read(path, error) from error
        return Store(path)

    def lock(self) -> None:
        """Take the folder for this process, cut off lines that a kill left unfinished, and look
        which lines of the journal are signed.
        """
        try:
            self._records = open_own(os.fspath(self._lines.path), os.O_RDWR)
            fcntl.flock(self._records, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for lines in (self._lines, self._journal, self._noise, self._profiles):
                if lines.path.exists():
                    lines.cut_unfinished()
            log = open_own(f"{self.path}/log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._log = os.fdopen(log, "a", encoding="utf-8")
            signature = read_signature(self.path / SIGNATURE)
            signer = LineSigner(_usable(read_key)[0], signature.id if signature else "")
            self.doubts = self.journal.require(signer)
        except BlockingIOError as error:
            self.close()
            raise StoreError(
                f"{self.path} is in use by another netbench; wait until it ends, or stop it"
            ) from error
        except OSError as error:
            self.close()
            raise cannot("open", self._lines.path, error) from error
        except StoreError:
            self.close()
            raise

    def why_not_as_begun(self) -> list[str]:
        """What of the campaign is not known to be as it was when it began; none: it may be acted
        on.
        """
        files = {name: self._read(name) for name in SIGNED}
        signature = read_signature(self.path / SIGNATURE)
        why = why_not_as_begun(signature, read_key(), files)
        return [f"{self.path / each}" for each in why]

    def append(self, record: Record) -> None:
        """Add one record: whole and on its way to the disk when this returns, or not at all."""
        if self._records is None:
            raise StoreError(f"{self.path} is not open for writing")
        try:
            add_line(self._records, to_line(record.to_json()))
        except OSError as error:
            raise cannot("write", self._lines.path, error) from error

    def plan(self) -> PlanFile:
        """plan.json."""
        return read_plan(self.path / "plan.json")

    def samples(self, run: int, lines: Iterable[Mapping[str, Any]]) -> None:
        """Keep a run's samples, one line each."""
        self._write(self.path / "samples" / f"{run:06d}.jsonl", b"".join(map(to_line, lines)))

    def profile(self, run: ProfileRecord, stacks: Mapping[str, Folded]) -> None:
        """Keep a profile run, and the stacks of each of its files."""
        make_folders(self.path / PROFILES)
        for file, folded in stacks.items():
            self._write(self.path / PROFILES / file, folded_text(folded).encode())
        self._profiles.append({"schema": SCHEMA, **to_json(run)})

    def profile_runs(self) -> Iterator[ProfileRecord]:
        """All profile runs, in order."""
        return read_profile_runs(self.path)

    def noise(self, entry: Mapping[str, Any]) -> None:
        """Add what was read around a block on one host, on its way to the disk when this
        returns.
        """
        self._noise.append({"time": now(), **entry})

    def text(self, run: int, text: str, of: str = "") -> None:
        """Keep what an external tool printed in a run."""
        self._write(self.path / "samples" / f"{run:06d}{of}.txt", text.encode())

    def facts(self, hosts: Hosts) -> None:
        """Replace facts.json."""
        facts = FactsFile({host: tuple(entries) for host, entries in hosts.items()})
        self._write(
            self.path / "facts.json",
            document(to_json(facts)),
            forced=True,
        )

    def _write(self, file: Path, data: bytes, forced: bool = False) -> None:
        """Write a file whole or not at all. `forced`: it is on the disk when this returns."""
        draft = file.with_name(f".{file.name}.new")
        try:
            write_new(draft, data, forced)
            draft.rename(file)
            if forced:
                _force_names(file.parent)
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

    def records(self, having: bytes = b"") -> Iterator[Record]:
        """All whole records, in order, whose line holds these bytes. Errors: StoreError with the
        line of one that is none.
        """
        where = self._lines.where
        return (parse_record(each, where(at)) for at, each in self._lines if having in each)

    def stored_facts(self) -> Hosts:
        """The hosts of facts.json, each with an entry or more; none if there is no such
        file yet.
        """
        return read_facts(self.path / "facts.json")

    def campaign_text(self) -> str:
        """The effective campaign."""
        try:
            return self._read("campaign.yaml").decode()
        except ValueError as error:
            raise unreadable(self.path / "campaign.yaml", "not UTF-8 text") from error

    def _read(self, name: str) -> bytes:
        """A file that the signature covers: what was read first, so what is checked is what is
        used.
        """
        if name not in self._contents:
            file = self.path / name
            try:
                self._contents[name] = file.read_bytes()
            except OSError as error:
                raise cannot_read(file, error) from error
        return self._contents[name]

    def close(self) -> None:
        """Let go of the folder."""
        if self._records is not None:
            os.close(self._records)
        if self._log is not None:
            with suppress(OSError):  # what the log could not take was said when it was written
                self._log.close()
        self._records = self._log = None


def _usable(get: Callable[[], Key | None]) -> tuple[Key | None, str]:
    """The account's key; None, and why where it cannot be made or others may know it."""
    try:
        return get(), ""
    except StoreError as error:
        return None, str(error)


def new_place(results: Path, name: str) -> Path:
    """Where a new result of a campaign goes."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return results / name / f"{stamp}-{secrets.token_hex(3)}"


@contextmanager
def new_folder(final: Path) -> Iterator[Path]:
    """A folder to write a new result into, which is at its place when the context ends, whole, or
    nowhere. Errors: PlaceError.
    """
    draft = final.parent / f".{final.name}.new"
    try:
        make_folders(draft / "samples")
        yield draft
        _force_names(draft)
        draft.rename(final)
        for folder in (final.parent, *final.parents[1:3]):
            _force_names(folder)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        what = f"cannot create the result folder {final}: {error.strerror}"
        raise PlaceError(
            f"{what}; {remedy_of(error)}, or choose another place with --results"
        ) from error


def document(value: Mapping[str, Any]) -> bytes:
    """A JSON file of a result."""
    return json.dumps({"schema": SCHEMA, **value}, indent=1, ensure_ascii=False).encode()


def make_folders(folder: Path) -> None:
    """A folder and those above it, which others may not write whatever the umask is. Errors:
    OSError.
    """
    if not folder.is_dir():
        make_folders(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o755)


def write_new(file: Path, data: bytes, forced: bool = False) -> None:
    """Write a file that others may not write. `forced`: it is on the disk when this returns.
    Errors: OSError.
    """
    with open(file, "wb", opener=open_own) as raw:
        raw.write(data)
        if forced:
            raw.flush()
            os.fsync(raw.fileno())


def _force_names(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the folder can be read and its file system
    does that.
    """
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def count_records(folder: Path) -> int | None:
    """How many records a result folder has; None where they cannot be read."""
    try:
        with (folder / "records.jsonl").open("rb") as raw:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: raw.read(1 << 20), b""))
    except OSError:
        return None
