"""Files of one JSON object a line: lines are added, and read, whole or not at all."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from threading import Lock
from typing import Any

from netbench.base.errors import StoreError
from netbench.base.opening import LINE, open_file, open_inside, read_inside


def now() -> str:
    """UTC in ISO 8601 with microseconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class JsonLines:
    """One such file. Errors of every method: StoreError with the file.

    Iterating gives each whole line with its number from 1. A last line without a newline is left
    out, even if it can be read: its writer was killed, and `cut_unfinished` removes it.
    """

    def __init__(self, path: Path, below: int = 1) -> None:
        """`below`: how many of the path's last names are within the result."""
        self.path, self._below = path, below
        self.truncated = False
        """Whether the last line was left out. Known once all lines were read."""
        self._lock = Lock()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        try:
            with open_file(self.path, self._below) as lines:
                for number, line in enumerate(iter(lambda: lines.readline(LINE), b""), 1):
                    if not line.endswith(b"\n"):
                        if len(line) == LINE:
                            raise OSError(errno.EFBIG, f"a line of more than {LINE >> 20} MiB")
                        self.truncated = True
                        return
                    yield number, line
        except OSError as error:
            raise cannot_read(self.path, error) from error

    def where(self, number: int) -> str:
        """A line for messages: `FILE:LINE`."""
        return f"{self.path}:{number}"

    def _open(self, flags: int) -> FileIO:
        """Without a buffer, which would hold back what the disk did not take."""
        return FileIO(open_inside(self.path, self._below, flags), "rb+")

    def append(self, line: bytes, force: bool = False) -> None:
        """Add a line: all of it, or nothing. `force`: it is on the disk when this returns."""
        try:
            with self._lock, self._open(os.O_RDWR | os.O_CREAT) as file:
                end = file.seek(0, os.SEEK_END)
                try:
                    while line:
                        line = line[file.write(line) :]
                except OSError:
                    with suppress(OSError):
                        file.truncate(end)
                    raise
                if force:
                    os.fsync(file.fileno())
        except OSError as error:
            raise cannot("write", self.path, error) from error

    def cut_unfinished(self) -> None:
        """Remove what a kill left after the last newline. Errors: OSError."""
        with self._open(os.O_RDWR) as raw:
            start = raw.seek(max(0, raw.seek(0, os.SEEK_END) - LINE))  # no line is longer
            raw.truncate(start + raw.read().rfind(b"\n") + 1)


def to_line(value: Mapping[str, Any]) -> bytes:
    """A JSON object as one line; `?` for what is no character."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"
    return text.encode("utf-8", "replace")


def cannot(what: str, path: Path, error: OSError) -> StoreError:
    """The error for a result folder that can no longer be written. `what`: a verb."""
    remedy = f"{remedy_of(error)}, then `resume` the campaign: all records are safe"
    if error.errno == errno.ENOENT:
        remedy = "was the folder moved? give `resume` its new path"
    return StoreError(f"cannot {what} {path}: {error.strerror}; {remedy}")


def remedy_of(error: OSError) -> str:
    """What to do where a file cannot be written."""
    if error.errno == errno.ENAMETOOLONG:
        return "give a shorter name"
    if error.errno == errno.ELOOP:
        return "name what the link leads to"
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "free some space there" if full else "make it writable"


def read_whole(file: Path) -> bytes:
    """A file of a result. Errors: StoreError."""
    try:
        return read_inside(file)
    except OSError as error:
        raise cannot_read(file, error) from error


def pieces(file: Path, below: int = 1) -> Iterator[bytes]:
    """A file of a result as it is now, to be copied. Errors: StoreError, also for one with holes,
    which would fill a disk: netbench writes none.
    """
    try:
        with open_file(file, below) as source:
            left = os.fstat(source.fileno()).st_size
            if left and os.lseek(source.fileno(), 0, os.SEEK_HOLE) < left:
                raise OSError(errno.EFBIG, "it is sparse, which no file of netbench's is")
            source.seek(0)
            while piece := source.read(min(left, 1 << 20)):
                left -= len(piece)
                yield piece
    except OSError as error:
        raise cannot_read(file, error) from error


def cannot_read(file: Path, error: OSError) -> StoreError:
    """The error for a file of a result folder that cannot be opened or read."""
    return StoreError(
        f"cannot read {file}: {error.strerror}; make it readable, or restore it from a copy"
    )
