"""The one way to open what a result holds, whoever made it: beneath its folder, through no symbolic
link, regular files only, and no more of them than fits.

The way to a result's folder is its reader's own, and may have links.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

LINE = 16 << 20
"""The most bytes of a line."""
WHOLE = 64 << 20
"""The most bytes of a file that is read as a whole, such as facts.json of a large fleet."""


_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_held: dict[Path, int] = {}


def hold(folder: Path, path: Path) -> None:
    """Open what is in a folder by this path from now on, whatever is put there: the folder above
    may be another account's. Errors: OSError.
    """
    _held[path] = os.open(folder, _FOLDER | os.O_NOFOLLOW)


def let_go(path: Path) -> None:
    """Hold it no more."""
    if path in _held:
        os.close(_held.pop(path))


def open_inside(path: Path, below: int = 1, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a result's file; `below`: how many of the path's last names are within the
    result. Errors: OSError with the path.
    """
    *folders, name = path.parts[-below:]
    top = path.parents[below - 1]
    here = os.dup(_held[top]) if top in _held else os.open(top, _FOLDER)
    try:
        for folder in folders:
            above = here
            here = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
            os.close(above)
        # A pipe without a writer would be waited for, a terminal become this process's own.
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        opened = os.open(name, flags, 0o644, dir_fd=here)
    except OSError as error:
        is_link = error.errno in (errno.ELOOP, errno.ENOTDIR)
        why = "a symbolic link, which is not followed" if is_link else error.strerror
        raise OSError(error.errno, why, str(path)) from error
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


def opener(path: str, flags: int) -> int:
    """An opener for open(): a file that others may not write whatever the umask is, in its folder.
    Errors: OSError.
    """
    return open_inside(Path(path), 1, flags)


def make_folder(folder: Path, mode: int) -> None:
    """A folder and those above it, whatever the umask is, with their names on the disk where the
    file system does that. Errors: OSError.
    """
    if not folder.is_dir():
        make_folder(folder.parent, mode)
        with suppress(FileExistsError):
            folder.mkdir(mode)
        force_names(folder.parent)


def force_names(folder: Path) -> None:
    """Bring the names in a folder to the disk, where its file system does that."""
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def write_new(file: Path, data: bytes, forced: bool = False, below: int = 1) -> None:
    """Write a file that others may not write. `forced`: it is on the disk when this returns.
    Errors: OSError.
    """
    how = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(open_inside(file, below, how), "wb") as raw:
        raw.write(data)
        if forced:
            raw.flush()
            os.fsync(raw.fileno())


def files_inside(result: Path, pattern: str = "**/*") -> list[Path]:
    """The regular files of a result whose paths match, in order: none behind a link."""

    def is_own(path: Path) -> bool:
        own = [each for each in (path, *path.parents) if result in each.parents]
        return path.is_file() and not any(each.is_symlink() for each in own)

    return [path for path in sorted(result.glob(pattern)) if is_own(path)]
