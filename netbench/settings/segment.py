"""The largest segment that the stack builds for, or joins from, an interface (BIG TCP): gso_max_size and gro_max_size."""

from __future__ import annotations

from typing import ClassVar

from netbench.settings.base import Operation, Place, Setting
from netbench.units import parse_size

SMALL = 65536  # up to here the kernel moves the limit of IPv4 along by itself


class SegmentSize(Setting):
    levels = "a size such as 64K or 192K"
    key: ClassVar[str]
    key_ipv4: ClassVar[str]

    def parse(self, level: str) -> str:
        size = parse_size(level)
        if not 1 <= size <= 2**31:
            raise ValueError(self.levels)
        return str(size)

    def read(self, what: str, place: Place) -> str:
        return place.read("link", place.interface, self.key).strip()

    def changes(self, what: str, level: str, place: Place) -> list[Operation]:
        if self.read(what, place) == level:
            return []
        both = [self.key, self.key_ipv4] if int(level) > SMALL else [self.key]
        return [Operation("link", (place.interface, key), level) for key in both]
