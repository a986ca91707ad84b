"""Whether a file is locked, seen without a lock."""

from __future__ import annotations

import os
from pathlib import Path


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
