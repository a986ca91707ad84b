"""Settings of the interface's link: its largest packet, its queueing discipline, and the largest
segments that the stack builds for it and joins from it (BIG TCP).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from netbench.base.errors import EngineError
from netbench.base.units import parse_size
from netbench.settings.setting import LINK, Operation, Setting, SettingContext, Value, whole

SMALL = 65536  # up to here the kernel moves the limit of IPv4 along by itself


class Mtu(Value):
    name = "mtu"
    about = "Largest packet of the interface, in bytes without the link's header."
    levels = "a whole number of bytes such as 9000"
    cost = LINK

    def parse(self, level: str) -> str:
        return whole(level, 68, 65536)

    def places(self, what: str, place: SettingContext) -> list[tuple[str, ...]]:
        return [("link", place.interface, "mtu")]

    def why_not(self, what: str, level: str, place: SettingContext) -> str:
        with suppress(EngineError):  # Linux before 4.19 does not report them
            limits = (place.read("link", place.interface, key) for key in ("min_mtu", "max_mtu"))
            low, high = map(int, limits)
            if not low <= int(level) <= (high or int(level)):
                return f"{place.interface} takes {low} to {high or 'any'}"
        return super().why_not(what, level, place)

    def is_ready(self, place: SettingContext) -> bool:
        return place.worker.operate("link", (place.interface, "state"))[0].strip() == "up"


class Qdisc(Value):
    name = "qdisc"
    about = (
        "Queueing discipline at the root of the interface, with its default options (fq, fq_codel,"
        " pfifo_fast, noqueue, ...)."
    )
    levels = "the name of a queueing discipline such as fq"
    syntax = "[a-z][a-z0-9_]{0,14}"

    def places(self, what: str, place: SettingContext) -> list[tuple[str, ...]]:
        return [("qdisc", place.interface)]

    def decode(self, text: str) -> str:
        lines = map(str.split, text.splitlines())
        return next((words[1] for words in lines if words[0] == "root"), "none")


@dataclass
class SegmentSize(Setting):
    """`name` is also the link's attribute; `key_ipv4` is that of the limit of IPv4 alone."""

    name: str
    key_ipv4: str
    about: str

    levels = "a size such as 64K or 192K"

    def parse(self, level: str) -> str:
        size = parse_size(level)
        if not 1 <= size <= 2**31:
            raise ValueError(self.levels)
        return str(size)

    def read(self, what: str, place: SettingContext) -> str:
        return place.read("link", place.interface, self.name).strip()

    def reading(self, what: str, level: str, place: SettingContext) -> str:
        """With IPv4's limit where that is another, and none that the kernel moves along."""
        now, ipv4 = self.read(what, place), self._ipv4(place)
        return now if ipv4 in (now, "") or int(now) <= SMALL else f"{now} (IPv4: {ipv4})"

    def _ipv4(self, place: SettingContext) -> str:
        """The limit of IPv4; "" of a kernel that has none (before 6.3)."""
        try:
            return place.read("link", place.interface, self.key_ipv4).strip()
        except EngineError:
            return ""

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        """That of IPv4 first, so put back last: as it was, whatever the other one moved along."""
        ipv4, differs = self._ipv4(place), self.read(what, place) != level
        keys = [self.key_ipv4] if ipv4 and (differs or ipv4 != level) else []
        keys += [self.name] if differs else []
        keys += (
            [self.key_ipv4] if not ipv4 and int(level) > SMALL else []
        )  # which the kernel refuses, and says why
        return [Operation("link", (place.interface, key), level) for key in keys]


SETTINGS = (
    SegmentSize(
        "gso_max_size",
        "gso_ipv4_max_size",
        "Largest segment that the stack builds for the device; above 64K it is BIG TCP, for IPv4"
        " too.",
    ),
    SegmentSize(
        "gro_max_size",
        "gro_ipv4_max_size",
        "Largest segment that the stack joins from what arrives; above 64K it is BIG TCP, for IPv4"
        " too.",
    ),
)
