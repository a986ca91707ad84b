"""Reading on in files that others write: only what is new, only whole lines, and nothing is ever
written or locked.
"""

from __future__ import annotations

import os
from pathlib import Path

from netbench.base.errors import StoreError
from netbench.base.json_lines import cannot_read
from netbench.base.opening import LINE, open_file

STEP = 1 << 20  # bytes that are read at once


class Tail:
    """A file of lines that grows. A last line without a newline is left for the next look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0
        """How many lines were read."""
        self.behind = False
        """Whether there may be more that is new."""
        self._offset = 0

    def read(self, most: int = STEP) -> list[bytes]:
        """The whole lines that are new, of about so many bytes; none where there is no such file
        yet. Errors: StoreError where the file cannot be read, or is shorter than what was read.
        """
        try:
            with open_file(self.path) as file:
                if os.fstat(file.fileno()).st_size < self._offset:
                    raise StoreError(
                        f"{self.path} has become shorter: another file is in its place; start"
                        " `watch` again"
                    )
                file.seek(self._offset)
                data = file.read(most)
                data += file.readline(LINE)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise cannot_read(self.path, error) from error
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        self.behind = bool(whole) and len(data) >= most
        lines = whole.split(b"\n")[:-1]
        self.lines += len(lines)
        return lines


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
