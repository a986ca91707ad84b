"""What `resume` and `restore` act on: the account's own campaign.yaml, plan.json and journal of
each campaign that it has begun, out of reach of whoever may write its result.

    $XDG_STATE_HOME/netbench/campaigns/ID/ campaign.yaml plan.json journal.jsonl result

A result names its ID, and has copies for its readers. Errors of all of it: StoreError; PlaceError
where a new campaign has no place.
"""

from __future__ import annotations

import math
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from netbench.base.errors import PlaceError, StoreError
from netbench.base.json_lines import cannot_read, read_whole
from netbench.base.locked import is_locked, lock
from netbench.base.opening import force_names, make_folder, read_inside, write_new
from netbench.base.ownership import refuse_foreign
from netbench.result.files import CAMPAIGN_FILES
from netbench.result.journal import Journal

ID, RESULT = "id", "result"
SETTLED = "settled"  # its journal's size and time, where that leaves nothing changed
_ID = re.compile(rb"[0-9a-f]{32}\n")
_KEPT_SECONDS = 30 * 86400.0


def state_folder() -> Path:
    """Where the account's state is: below $XDG_STATE_HOME, where that is an absolute path, or
    ~/.local/state. Errors: RuntimeError where the account has no home.
    """
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".local" / "state") / "netbench"


class CampaignState:
    """The state of one campaign, which is there."""

    def __init__(self, path: Path) -> None:
        for each in (*list(path.parents)[1::-1], path):
            refuse_foreign(each, private=each == path)
        self.path = path
        self._lock: int | None = None

    @property
    def journal(self) -> Path:
        return self.path / "journal.jsonl"

    @property
    def result(self) -> Path:
        """Where the campaign's result was when a controller last used it."""
        return Path(os.fsdecode(self.read(RESULT)))

    def read(self, name: str) -> bytes:
        """One of its files."""
        return read_whole(self.path / name)

    def lock(self, result: Path) -> None:
        """Take the campaign for this process, whose result is here now."""
        try:
            self._lock = os.open(self.journal, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            lock_file(self._lock, result)
            if self.result != result.absolute():
                write_new(self.path / RESULT, os.fsencode(result.absolute()), forced=True)
        except (OSError, StoreError) as error:
            self.close()
            if isinstance(error, OSError):
                raise cannot_read(self.path, error) from error
            raise

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None

    def forget(self) -> None:
        """Remove it: nothing is left to be done for its campaign."""
        shutil.rmtree(self.path, ignore_errors=True)


def lock_file(opened: int, result: Path) -> None:
    """Take an open file of a result, or of its state, for this process. Errors: StoreError where
    another process has it; OSError.
    """
    try:
        lock(opened)
    except BlockingIOError as error:
        raise StoreError(
            f"{result} is in use by another netbench; wait until it ends, or stop it"
        ) from error


def begin(files: Mapping[str, bytes], result: Path) -> CampaignState:
    """The state of a new campaign, on the disk. `files`: its CAMPAIGN_FILES."""
    try:
        folder = state_folder() / "campaigns" / secrets.token_hex(16)
        make_folder(folder, 0o700)
        state = CampaignState(folder)  # refused, it holds nothing that is listed
        for name in CAMPAIGN_FILES:
            write_new(folder / name, files[name], forced=True)
        write_new(folder / RESULT, os.fsencode(result.absolute()), forced=True)
        write_new(folder / "journal.jsonl", b"", forced=True)
        force_names(folder)
    except (OSError, RuntimeError) as error:
        raise PlaceError(
            f"cannot keep what would put hosts back: {error}; give it to this account, once its"
            " owner has run `restore`; or set XDG_STATE_HOME to a folder of your own"
        ) from error
    _prune()
    return state


def find(result: Path) -> CampaignState | None:
    """The state of a result's campaign, None where this account has none. What a folder of another
    account says is not believed: there it is the one that has left something changed at its place.
    Errors: also where that is another than the folder says, which somebody has moved.
    """
    identity = b""
    with suppress(OSError):
        if result.lstat().st_uid == os.geteuid():
            identity = read_inside(result / ID, most=64)
    own = named(identity.decode().strip()) if _ID.fullmatch(identity) else None
    left = [each for _, each in unfinished() if isinstance(each, CampaignState)]
    begun = [each for each in left if (each.path / RESULT).exists()]
    there = next((each for each in begun if _place(each.result) == _place(result)), None)
    if own and there and own.path != there.path:
        what = f"it is of {own.path.name}, and another campaign left something changed there"
        raise StoreError(f"{result} was moved: {what}; `restore {there.path.name}` puts that back")
    return own or there


def _place(result: Path) -> Path:
    """Its path, through no link but of folders above it."""
    place = Path(os.path.abspath(result))
    return Path(os.path.realpath(place.parent)) / place.name


def named(identity: str) -> CampaignState | None:
    """The state of the campaign of this ID; None where this account has none."""
    return next((CampaignState(folder) for folder in folders() if folder.name == identity), None)


def folders(before: float = math.inf) -> list[Path]:
    """Where the state of each campaign is that this account began before, the oldest first. Errors:
    StoreError where there is a folder of states that cannot be read.
    """
    begun, place = dict[Path, float](), Path()
    try:
        place = state_folder() / "campaigns"
        for each in place.iterdir():
            with suppress(OSError):  # another process forgets it
                begun[each] = each.lstat().st_mtime
    except (FileNotFoundError, RuntimeError):  # nor a home
        return []
    except OSError as error:
        raise cannot_read(place, error) from error
    old = (folder for folder, when in begun.items() if when < before)
    return [folder for folder in sorted(old, key=begun.__getitem__) if _is_whole(folder)]


def unfinished() -> Iterator[tuple[str, CampaignState | str]]:
    """Campaigns of this account with changes of which nobody knows that they are undone: the ID,
    and the state, or why it cannot be read.
    """
    try:
        states = folders()
    except StoreError as error:
        yield "of any name", str(error)
        return
    for folder in states:
        path, mark = folder / "journal.jsonl", folder / SETTLED
        try:
            state, now = CampaignState(folder), path.stat()  # refused where others may write it
            known = f"{now.st_size} {now.st_mtime_ns}".encode()
            if mark.exists() and mark.read_bytes() == known:
                continue
            if Journal(path).left():
                yield folder.name, state
            else:
                with suppress(OSError):  # it is read again
                    write_new(mark, known)
        except FileNotFoundError:  # another process forgets it
            continue
        except (StoreError, OSError) as error:
            yield folder.name, str(error)


def _is_whole(folder: Path) -> bool:
    try:
        return (folder / "journal.jsonl").is_file()  # which is written last
    except PermissionError:
        return True  # and not this account's to enter: who acts on it says so


def _prune() -> None:
    """Forget campaigns that nobody has acted on for long, where nothing is left to be put back."""
    old = time.time() - _KEPT_SECONDS
    for folder in folders(old):
        with suppress(StoreError, OSError):
            state = CampaignState(folder)
            used = state.journal.stat().st_mtime >= old or is_locked(state.journal)
            if not used and not Journal(state.journal).left():
                state.forget()
