"""The one way to open what a result holds, whoever made it: beneath its folder, through no symbolic
link, regular files only, and no more of them than fits. And the one way to a place to write to.

The way to a result's folder is its reader's own, and may have links. A writer follows root's and
its own alone: whoever made another one would choose what is written over.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from io import BufferedReader
from pathlib import Path

from netbench.base.ownership import own_users, user_name

LINE = 16 << 20
"""The most bytes of a line."""
WHOLE = 64 << 20
"""The most bytes of a file that is read as a whole, such as facts.json of a large fleet."""


DEEPEST = 16
"""Folders one within another that are looked into."""
_LINKS = 40  # as many as the kernel follows
_ANY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER = _ANY | os.O_DIRECTORY
"""How a folder is opened within another one."""
_held: dict[Path, int] = {}
_left: set[Path] = set()


def hold(path: Path, folder: int | None = None) -> int:
    """Open what is in a folder by this path from now on, whatever is put there: the folder above
    may be another account's. Its descriptor, which `let_go` closes. Errors: OSError.
    """
    for each in {path, *_left}:
        let_go(each)
    _held[path] = open_folder(path) if folder is None else folder
    return _held[path]


def let_go(path: Path, later: bool = False) -> None:
    """Hold it no more; `later`: once another is held, so that what is read next was written."""
    (_left.add if later else _left.discard)(path)
    if path in _held and not later:
        os.close(_held.pop(path))


def _enter(path: Path, below: int, mode: int = 0) -> tuple[int, str, int]:
    """The folder of a path, as a descriptor; the name in it; and the mode of what has that name, 0
    where nothing has. Through no link beneath a folder that is held, or beneath the path's last
    names but `below`; with 0, the way of a writer. `mode`: folders that are missing are made.
    """
    top = next((each for each in path.parents if each in _held), None)
    if top:
        here = os.dup(_held[top])
    else:
        top = path.parents[below - 1] if below else None
        here = os.open(top or ".", FOLDER & ~os.O_NOFOLLOW)
    names = [*reversed((path.relative_to(top) if top else path).parts)] or ["."]
    links = 0
    try:
        while True:
            name = names.pop()
            try:
                there = os.open(name, _ANY, dir_fd=here)
            except FileNotFoundError:
                if not names:
                    return here, name, 0
                if not mode:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(name, mode, dir_fd=here)
                force_names(".", here)
                there = os.open(name, _ANY, dir_fd=here)
            entry = os.fstat(there)
            is_link = stat.S_ISLNK(entry.st_mode)
            if names and not is_link:
                here, there = there, here
            target = os.readlink("", dir_fd=there) if is_link else ""
            os.close(there)
            # a pipe or socket of /proc/PID/fd, such as /dev/stdout, has no name to follow
            is_open = ":[" in target and os.fstat(here).st_dev == os.stat("/proc").st_dev
            if not names and (not is_link or is_open):
                return here, name, entry.st_mode
            links += is_link
            if is_link and (top or links > _LINKS):
                raise OSError(errno.ELOOP, "a symbolic link, which is not followed")
            if is_link and entry.st_uid not in own_users():
                whose = f"{name} is a link of {user_name(entry.st_uid)}, which is not followed"
                raise OSError(errno.ELOOP, whose)
            names += reversed(Path(target).parts)
    except OSError as error:
        os.close(here)
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def folder_of(path: Path, mode: int = 0) -> Iterator[tuple[int, str, int]]:
    """The folder to write to, as a descriptor; the name in it; and the mode of what has that name,
    0 where nothing has. `mode`: folders that are missing are made. Errors: OSError with the path.
    """
    entered = _enter(path, 0, mode)
    try:
        yield entered
    finally:
        os.close(entered[0])


def open_folder(folder: Path, mode: int = 0) -> int:
    """A descriptor of a folder to write to. `mode`: it and those above it are made where they are
    missing, with their names on the disk where the file system does that. Errors: OSError.
    """
    return _enter(folder / "..", 0, mode)[0]  # as the folder of any name in it


def make_folder(folder: Path, mode: int) -> None:
    """A folder and those above it, which others may not write. Errors: OSError."""
    os.close(open_folder(folder, mode))


def open_inside(path: Path, below: int = 1, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
    """A descriptor of a result's file; `below`: how many of the path's last names are within the
    result; 0: the way of a writer. Errors: OSError with the path.
    """
    here, name, _ = _enter(path, below)
    try:
        # A pipe without a writer would be waited for, a terminal become this process's own.
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        opened = os.open(name, flags, mode, dir_fd=here)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(here)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return opened


def read_inside(path: Path, below: int = 1, most: int = WHOLE) -> bytes:
    """A result's file as a whole. Errors: OSError with the path, also for one of more bytes."""
    with open_file(path, below) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"more than {most >> 20} MiB", str(path))
    return data


def open_file(path: Path, below: int = 1) -> BufferedReader:
    """A result's file, to be read. Errors: OSError with the path."""
    return os.fdopen(open_inside(path, below), "rb")


def force_names(folder: Path | str, above: int | None = None) -> None:
    """Bring the names in a folder to the disk, where its file system does that."""
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=above)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def write_new(file: Path, data: bytes, forced: bool = False) -> None:
    """A file that others may not write. `forced`: it is on the disk then. Errors: OSError."""
    how = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(open_inside(file, 0, how), "wb") as raw:
        raw.write(data)
        if forced:
            raw.flush()
            os.fsync(raw.fileno())


def walk(folder: Path, deepest: int = DEEPEST) -> Iterator[Path]:
    """What is below a folder but is none itself, in order: through no link, and in at most
    `deepest` folders one within another, as who made them may have made thousands. Folders that
    cannot be read are left out.
    """
    entries: list[Path] = []
    with suppress(OSError):
        entries = sorted(folder.iterdir())
    for each in entries:
        if each.is_symlink() or not each.is_dir():
            yield each
        elif deepest:
            yield from walk(each, deepest - 1)


def files_inside(result: Path, pattern: str = "*") -> list[Path]:
    """The regular files of a result whose paths match, or all, in order: none behind a link."""
    own = (each for each in walk(result) if each.is_file() and not each.is_symlink())
    return [each for each in own if fnmatch(str(each.relative_to(result)), pattern)]
