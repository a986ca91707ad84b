"""Result folders: append-only records, written so that a kill at any instant loses at most the run
in flight.

    results/<name>/<UTC>-<id>/ campaign.yaml plan.json id facts.json records.jsonl samples/
    journal.jsonl log.txt report/

The folder appears whole, by rename. Every record is one line, flushed before the next run begins.
Others may write nothing of it. What a controller acts on is in its campaign's state; campaign.yaml,
plan.json and journal.jsonl are copies of that.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from netbench.base.control_characters import escape_controls
from netbench.base.errors import PlaceError, ReportError, RequestError, StoreError
from netbench.base.json_lines import JsonLines, cannot, now, pieces, read_whole, remedy_of, to_line
from netbench.base.opening import (
    FOLDER,
    folder_of,
    force_names,
    hold,
    let_go,
    make_folder,
    open_inside,
    write_new,
)
from netbench.base.ownership import refuse_foreign
from netbench.base.whole_file import whole
from netbench.result import campaign_state
from netbench.result.campaign_state import ID, CampaignState
from netbench.result.codec import SCHEMA, line_of, to_json, unreadable
from netbench.result.files import (
    CAMPAIGN_FILES,
    NOISE,
    FactsFile,
    Hosts,
    NoiseEntry,
    PlanFile,
    read_facts,
    read_plan,
)
from netbench.result.journal import Journal
from netbench.result.profile_files import (
    PROFILES,
    RUNS,
    Folded,
    ProfileRecord,
    folded_text,
    read_profile_runs,
)
from netbench.result.record import Record, parse_record

_LINES = ("records.jsonl", "journal.jsonl", "log.txt")


def no_result(path: Path) -> ReportError:
    """A path is no result folder."""
    return ReportError(
        f"{path} is not a result folder; give one such as results/NAME/TIME-ID, a campaign's NAME,"
        " or latest (`list results` shows them)"
    )


class Store:
    """One result folder, open for one campaign. Errors of every method: StoreError."""

    def __init__(self, path: Path, state: CampaignState | None = None, why: str = "") -> None:
        """`state`: what is acted on; without it nothing is changed of which `why` says why."""
        self.path, self.state = path, state
        copy = path / "journal.jsonl"
        self.journal = Journal(state.journal, copy) if state else Journal(copy, why=why)
        self._noise = JsonLines(path / NOISE, below=2)
        self._profiles = JsonLines(path / PROFILES / RUNS, below=2)
        self._lines = JsonLines(path / "records.jsonl")
        self._records: int | None = None
        self._folder: int | None = None
        self._log: TextIO | None = None
        self._is_begun = True

    @staticmethod
    def create(results: Path, name: str, campaign: str, plan: Mapping[str, Any]) -> Store:
        """Make a new result folder below `results`, whole or not at all, and the campaign's state.
        Where that cannot be kept nothing can be changed. Errors: PlaceError.
        """
        final = new_place(results, name)
        files = dict(zip(CAMPAIGN_FILES, (campaign.encode(), document(plan)), strict=True))
        state, why = None, ""
        try:
            state = campaign_state.begin(files, final)
            files[ID] = f"{state.path.name}\n".encode()
        except StoreError as error:
            why = str(error)
        try:
            with new_folder(final) as (draft, opened):
                folder = hold(final, os.dup(opened))
                for file, data in {**files, **dict.fromkeys(_LINES, b"")}.items():
                    write_new(draft / file, data, forced=True)
        except BaseException:
            let_go(final)
            if state:
                state.forget()
            raise
        store = Store(final, state, why)
        store._folder = folder  # whatever is put there by now
        return store

    @staticmethod
    def open(path: Path) -> Store:
        """An existing result folder, to go on with it. Errors: ReportError when it is none."""
        if not (path / "records.jsonl").is_file() or not (path / "campaign.yaml").is_file():
            raise no_result(path)
        return Store(path, campaign_state.find(path))

    def lock_journal(self) -> None:
        """Take the campaign and its journal, with the copy in a folder of this account's own."""
        copies = False
        if self.state:
            self.state.lock(self.path)
        with suppress(OSError, StoreError):
            refuse_foreign(self.path, opened=hold(self.path))
            copies = True
        with suppress(OSError):
            self.journal.begin(copies)

    @property
    def identity(self) -> str:
        """The ID of the campaign's state; "" where it has none."""
        return self.state.path.name if self.state else ""

    def lock(self) -> None:
        """Take the campaign and its folder for this process, cut off lines that a kill left
        unfinished, and bring the copy of the journal up to date.
        """
        try:
            if self.state:
                self.state.lock(self.path)
            self._folder = self._folder or hold(self.path)
            self._records = open_inside(self._lines.path, flags=os.O_RDWR)
            with suppress(*[StoreError] * bool(self.state)):  # other readers can lock it, too
                campaign_state.lock_file(self._records, self.path)
            for lines in (self._lines, self._noise, self._profiles):
                if lines.path.exists():
                    lines.cut_unfinished()
            self._is_begun = self.journal.begin()
            log = open_inside(self.path / "log.txt", 1, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._log = os.fdopen(log, "a", encoding="utf-8")
        except (OSError, StoreError) as error:
            self.close()
            if isinstance(error, OSError):
                raise cannot("open", self._lines.path, error) from error
            raise

    def refuse_changed(self) -> None:
        """Errors: RequestError where this account has no state of the campaign; StoreError where a
        file of the locked result is not a copy of it.
        """
        if self.state is None:
            raise RequestError(
                f"{self.path}: {campaign_state.state_folder()} knows no such campaign: it was begun"
                " by another account, on another machine, or its state was removed;"
                f" `restore {shlex.quote(str(self.path))}` shows what it may have left changed, and"
                f" `run {shlex.quote(str(self.path / 'campaign.yaml'))}` runs it as a new campaign:"
                " read it first, it is code"
            )
        refuse_foreign(self.path.resolve(), opened=self._folder)  # not what is there by now
        differing = [n for n in CAMPAIGN_FILES if self.state.read(n) != read_whole(self.path / n)]
        if f"{self.identity}\n".encode() != read_whole(self.path / ID):
            differing.append(ID)
        if not self._is_begun:
            differing.append("journal.jsonl")
        if differing:
            raise StoreError(
                f"{self.path}: {' and '.join(differing)} was changed after the campaign began;"
                f" copy it from {self.state.path}, which is named by its id, or run the campaign as"
                " a new one"
            )

    def append(self, record: Record) -> None:
        """Add one record: whole and on its way to the disk when this returns, or not at all.
        Errors: ProtocolError for what no reader would take; StoreError.
        """
        if self._records is None:
            raise StoreError(f"{self.path} is not open for writing")
        self._lines.append(line_of(Record, record.to_json(), "a record"))

    def plan(self) -> PlanFile:
        """plan.json, as it began."""
        return read_plan((self.state.path if self.state else self.path) / "plan.json")

    def samples(self, run: int, lines: Iterable[Mapping[str, Any]]) -> None:
        """Keep a run's samples, one line each."""
        self._write(self.path / "samples" / f"{run:06d}.jsonl", b"".join(map(to_line, lines)))

    def profile(self, run: ProfileRecord, stacks: Mapping[str, Folded]) -> None:
        """Keep a profile run, and the stacks of each of its files. Errors: as append."""
        line = line_of(ProfileRecord, {"schema": SCHEMA, **to_json(run)}, "a profile run")
        make_folder(self.path / PROFILES, 0o755)
        for file, folded in stacks.items():
            self._write(self.path / PROFILES / file, folded_text(folded).encode())
        self._profiles.append(line)

    def profile_runs(self) -> Iterator[ProfileRecord]:
        """All profile runs, in order."""
        return read_profile_runs(self.path)

    def noise(self, entry: Mapping[str, Any]) -> None:
        """Add what was read around a block on one host. Errors: as append."""
        line = line_of(NoiseEntry, {"time": now(), **entry}, "readings of noise")
        self._noise.append(line)

    def text(self, run: int, text: str, of: str = "") -> None:
        """Keep what an external tool printed in a run."""
        self._write(self.path / "samples" / f"{run:06d}{of}.txt", text.encode())

    def facts(self, hosts: Hosts) -> None:
        """Replace facts.json. Errors: as append."""
        facts = to_json(FactsFile({host: tuple(entries) for host, entries in hosts.items()}))
        line_of(FactsFile, {"schema": SCHEMA, **facts}, "facts")
        self._write(self.path / "facts.json", document(facts), forced=True)

    def _write(self, file: Path, data: bytes, forced: bool = False) -> None:
        """Write a file whole or not at all. `forced`: it is on the disk when this returns."""
        try:
            with whole(file, 0, forced) as draft, open(draft, "wb", closefd=False) as out:
                out.write(data)
        except OSError as error:
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
        """All whole records whose line holds these bytes. Errors: StoreError with the line."""
        where = self._lines.where
        return (parse_record(each, where(at)) for at, each in self._lines if having in each)

    def stored_facts(self) -> Hosts:
        """The hosts of facts.json, each with an entry or more; none where there is no such file."""
        return read_facts(self.path / "facts.json")

    def campaign_text(self) -> str:
        """The effective campaign, as it began."""
        name = CAMPAIGN_FILES[0]
        try:
            return read_whole((self.state.path if self.state else self.path) / name).decode()
        except ValueError as error:
            raise unreadable(self.path / name, "not UTF-8 text") from error

    def close(self) -> None:
        """Let go of the folder."""
        if self._records is not None:
            os.close(self._records)
        if self._log is not None:
            with suppress(OSError):  # what the log could not take was said when it was written
                self._log.close()
        self._records = self._log = self._folder = None
        let_go(self.path, later=True)
        if self.state:
            self.state.close()


def new_place(results: Path, name: str) -> Path:
    """Where a new result of a campaign goes."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return results / name / f"{stamp}-{secrets.token_hex(3)}"


@contextmanager
def new_folder(final: Path) -> Iterator[tuple[Path, int]]:
    """A folder to write a new result into, which is at its place when the context ends, whole, or
    nowhere; and its descriptor. Errors: PlaceError.
    """
    draft = final.parent / f".{final.name}.new"
    try:
        with folder_of(final, 0o755) as (above, name, _):
            shutil.rmtree(draft.name, ignore_errors=True, dir_fd=above)  # what a kill left
            os.mkdir(draft.name, 0o755, dir_fd=above)
            try:
                opened = hold(draft, os.open(draft.name, FOLDER, dir_fd=above))
                make_folder(draft / "samples", 0o755)
                yield draft, opened
                force_names(draft)
                os.rename(draft.name, name, src_dir_fd=above, dst_dir_fd=above)
            except BaseException:
                shutil.rmtree(draft.name, ignore_errors=True, dir_fd=above)
                raise
            force_names(".", above)
    except OSError as error:
        what = f"cannot create the result folder {final}: {error.strerror}"
        raise PlaceError(
            f"{what}; {remedy_of(error)}, or choose another place with --results"
        ) from error
    finally:
        let_go(draft)


def document(value: Mapping[str, Any]) -> bytes:
    """A JSON file of a result; `?` for what is no character."""
    text = json.dumps({"schema": SCHEMA, **value}, indent=1, ensure_ascii=False)
    return text.encode("utf-8", "replace")


def count_records(folder: Path) -> int | None:
    """How many records a result folder has; None where they cannot be read."""
    try:
        return sum(piece.count(b"\n") for piece in pieces(folder / "records.jsonl"))
    except StoreError:
        return None
