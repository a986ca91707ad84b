"""Locks of whole files: one process at a time has a campaign.

They are write locks of an open file description (F_OFD_SETLK in fcntl(2)): only who may write the
file can hold one, and whether one is held is seen without it, from any PID namespace.
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from pathlib import Path

_FLOCK = struct.Struct("hhqqi4x")  # struct flock: of what type, from where, how much, whose


def lock(opened: int) -> None:
    """Lock a file, open for writing, until it is closed. Errors: OSError; BlockingIOError."""
    fcntl.fcntl(opened, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))


def is_locked(path: Path) -> bool:
    """Whether a file is there and locked; to try the lock would make its owner's attempt fail."""
    read = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
    with suppress(OSError):
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = fcntl.fcntl(opened, fcntl.F_OFD_GETLK, read)
        finally:
            os.close(opened)
        return bool(_FLOCK.unpack(found)[0] != fcntl.F_UNLCK)
    return False
