"""Archives that a kernel unpacks as its first root: cpio's "new ASCII" format
(Documentation/driver-api/early-userspace).
"""

from __future__ import annotations

import stat
from pathlib import Path

_TRAILER = "TRAILER!!!"
_ALIGN = 4
_BLOCK = 512


class Archive:
    """Folders, files and links of root, in the order added; folders above are made with them."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._known: set[str] = set()

    def folder(self, path: str, mode: int = 0o755) -> None:
        if path in self._known:
            return
        self._above(path)
        self._entry(path, stat.S_IFDIR | mode, b"")

    def file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        self._above(path)
        self._entry(path, stat.S_IFREG | mode, content)

    def link(self, path: str, target: str) -> None:
        self._above(path)
        self._entry(path, stat.S_IFLNK | 0o777, target.encode())

    def whole(self) -> bytes:
        """The archive, padded so that another may follow it."""
        joined = b"".join((*self._parts, _entry(0, _TRAILER, 0, b"")))
        return joined + b"\0" * (-len(joined) % _BLOCK)

    def _above(self, path: str) -> None:
        for parent in list(Path(path).parents)[-2::-1]:
            self.folder(str(parent))

    def _entry(self, path: str, mode: int, content: bytes) -> None:
        self._known.add(path)
        self._parts.append(_entry(len(self._parts) + 1, path, mode, content))


def _entry(inode: int, path: str, mode: int, content: bytes) -> bytes:
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (inode, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return _padded(head) + _padded(content)


def _padded(part: bytes) -> bytes:
    return part + b"\0" * (-len(part) % _ALIGN)
