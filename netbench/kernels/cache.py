"""What netbench keeps in its cache of this machine, ~/.cache/netbench: entries that are in use, and
those that go.

An entry is a file or a folder. Whoever uses one holds a shared lock on it (flock(2)), which its
children may inherit, and sets its time of modification. Once a day, what nobody has used for 90
days is removed, and of the rest, the least recently used first, what is beyond a size. What is
locked, or was used within a day, stays. An entry is renamed before it is removed, so that none is
ever there in part; what a killed process left of that goes the next time.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from netbench.base.units import count, format_size, parse_size
from netbench.kernels import revision

SIZE = "NETBENCH_CACHE_SIZE"
DEFAULT_SIZE = "30G"
OFF = "off"
UNUSED_SECONDS = 90 * 86400.0
RECENT_SECONDS = 86400.0
_STAMP = "pruned"
_AWAY = ".pruned-"
_DRAFT = "tmp"  # as tempfile names what is being made
_NOTE = ".sha256"
_PLACES = (
    *("lab", "lab/programs", "lab/kernels", "lab/roots", "lab/apt", "lab/kvm"),
    *("built", "trees"),
)
_FOLDERS = frozenset(Path(place).name for place in _PLACES)
_held: dict[tuple[int, int], int] = {}
"""Descriptors of this process's own locks, by device and inode; they end with it."""


def base() -> Path:
    """The cache's folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "netbench"


def use(place: Path) -> bool:
    """Keep an entry as long as this process runs; whether it is there."""
    try:
        entry = _lock(place, fcntl.LOCK_SH)
    except OSError:
        return False
    status = os.fstat(entry)
    if _held.setdefault((status.st_dev, status.st_ino), entry) != entry:
        os.close(entry)
    with suppress(OSError):  # root's, which this user may read
        os.utime(place)
    return True


@contextmanager
def locks(places: Iterable[Path]) -> Iterator[list[int]]:
    """Descriptors with locks on those entries that are there, for a child to inherit: they stay as
    long as it runs.
    """
    with ExitStack() as stack:
        held = []
        for place in places:
            with suppress(OSError):
                held.append(_lock(place, fcntl.LOCK_SH))
                stack.callback(os.close, held[-1])
                os.utime(place)
        yield held


def _lock(place: Path, how: int) -> int:
    """An open entry that is locked, and still in its place. Errors: OSError."""
    entry = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(entry, how)
        if not os.path.samestat(os.fstat(entry), place.lstat()):
            raise FileNotFoundError(place)
    except OSError:
        os.close(entry)
        raise
    return entry


def prune(say: Callable[[str], None]) -> None:
    """Remove what is not needed, once a day, and say so in a line."""
    word = os.environ.get(SIZE) or DEFAULT_SIZE
    here, now = base(), time.time()
    stamp = here / _STAMP
    if word == OFF or (stamp.exists() and 0 <= now - stamp.stat().st_mtime < RECENT_SECONDS):
        return
    try:
        limit = parse_size(word)
    except ValueError:
        say(f"{here} is not pruned: expected {SIZE} as a size such as 30G, or {OFF}, got {word!r}")
        return
    with suppress(OSError):
        stamp.touch()
        entries = sorted(_entries(here, now))
        total, gone = sum(size for _, _, size in entries), list[int]()
        for used, place, size in entries:
            age = now - used
            if age > UNUSED_SECONDS or (total > limit and age > RECENT_SECONDS):
                total -= size
                gone += [size] * _remove(place)
        if gone:
            whole = format_size(max(sum(gone) >> 20, 1) << 20)
            say(
                f"removed {count(len(gone), 'unused item')} of {here} ({whole}): not used for"
                f" {UNUSED_SECONDS / 86400:.0f} days, or beyond {SIZE}={word}"
            )


def _entries(here: Path, now: float) -> Iterator[tuple[float, Path, int]]:
    """When each entry was used last, the entry, and its bytes on the disk. What killed processes
    left beside them goes: those on their way out, drafts, notes without their entries.
    """
    for place in (place for folder in _places(here) for place in folder.iterdir()):
        with suppress(OSError):
            used = place.lstat().st_mtime
            draft, note = place.name.startswith(_DRAFT), place.suffix == _NOTE
            left = draft or (note and not place.with_suffix("").exists())
            if place.name.startswith(_AWAY) or (left and now - used > RECENT_SECONDS):
                _delete(place)
            elif not draft and not note and place.suffix != ".lock" and place.name not in _FOLDERS:
                yield used, place, _size(place)


def _places(here: Path) -> Iterator[Path]:
    """The folders of entries: folders, no links to elsewhere."""
    for name in _PLACES:
        with suppress(OSError):
            if stat.S_ISDIR((here / name).lstat().st_mode):
                yield here / name


def _size(place: Path) -> int:
    """Bytes on the disk, in blocks of 512."""
    total = place.lstat().st_blocks * 512
    for folder, folders, files in os.walk(place):
        for name in (*folders, *files):
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total


def _remove(place: Path) -> bool:
    """Remove an entry that nobody uses; whether it is gone. Git forgets the worktree of a tree."""
    away = place.with_name(f"{_AWAY}{place.name}")
    try:
        entry = _lock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    try:
        if place.parent.name == "trees":
            revision.unlock(place / "source")
        place.rename(away)
    except OSError:
        return False
    finally:
        os.close(entry)
    place.with_name(f"{place.name}{_NOTE}").unlink(missing_ok=True)
    _delete(away)
    return True


def _delete(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)
