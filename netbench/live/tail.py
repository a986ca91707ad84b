"""Reading on in files that others write: only what is new, only whole lines, and nothing is ever
written or locked.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from netbench.base.errors import StoreError
from netbench.base.json_lines import cannot_read
from netbench.base.opening import LINE, open_file

STEP = 1 << 20  # bytes that are read at once


class Tail:
    """A file of lines that grows. A last line without a newline is left for the next look."""

    def __init__(self, path: Path, below: int = 1) -> None:
        """`below`: how many of the path's last names are within the result."""
        self.path, self._below = path, below
        self.lines = 0
        """How many lines were read."""
        self._offset = 0

    def read(self, most: int = STEP) -> list[bytes]:
        """The whole lines that are new, of about so many bytes; none where there is no such file
        yet. Errors: StoreError where the file cannot be read, or is shorter than what was read.
        """
        try:
            with open_file(self.path, self._below) as file:
                size = os.fstat(file.fileno()).st_size
                if size < self._offset:
                    raise StoreError(
                        f"{self.path} has become shorter: another file is in its place; start"
                        " `watch` again"
                    )
                lines = list(self._whole_lines(file.fileno(), size, most))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise cannot_read(self.path, error) from error
        self.lines += len(lines)
        return lines

    def _whole_lines(self, file: int, size: int, most: int) -> Iterator[bytes]:
        """New lines, once one of `most` bytes or more is whole. Errors: OSError."""
        data = b""
        while self._offset + len(data) < size and (len(data) < most or b"\n" not in data):
            more = os.pread(file, STEP, self._offset + len(data))
            if not more:
                break
            data += more
            if len(data) > LINE and b"\n" not in data:
                raise OSError(errno.EFBIG, f"a line of more than {LINE >> 20} MiB")
        end = data.rfind(b"\n") + 1
        self._offset += end
        yield from (line + b"\n" for line in data[:end].split(b"\n")[:-1])


class Changes:
    """Whether a file that is replaced as a whole is another one than at the last look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None

    def changed(self) -> bool:
        """Whether it is new; False as long as there is no such file."""
        try:
            status = self.path.stat()
        except OSError:
            return False
        seen = status.st_ino, status.st_mtime_ns, status.st_size
        changed, self._seen = seen != self._seen, seen
        return changed


def is_locked(path: Path) -> bool:
    """Whether a process that this one can see holds a lock on a file, by /proc/locks: to try the
    lock would make its owner's next attempt fail. Device numbers of file systems without a device
    of their own differ between stat(2) and there.
    """
    try:
        status = path.stat()
        table = Path("/proc/locks").read_text()
    except OSError:
        return False
    device = os.major(status.st_dev), os.minor(status.st_dev)
    for line in table.splitlines():
        words = line.split()
        if len(words) < 6 or words[1] not in ("FLOCK", "OFDLCK", "POSIX"):
            continue
        major, minor, inode = words[5].split(":")
        there = int(major, 16), int(minor, 16)
        if int(inode) == status.st_ino and (there == device or 0 == there[0] == device[0]):
            return True
    return False
