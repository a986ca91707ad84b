"""The interface's largest packet."""

from __future__ import annotations

from netbench.settings.base import LINK, Operation, Setting, SettingContext, whole


class Mtu(Setting):
    name = "mtu"
    about = "Largest packet of the interface, in bytes without the link's header."
    levels = "a whole number of bytes such as 9000"
    cost = LINK

    def parse(self, level: str) -> str:
        return whole(level, 68, 65535)

    def read(self, what: str, place: SettingContext) -> str:
        return place.read("link", place.interface, "mtu").strip()

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        if self.read(what, place) == level:
            return []
        return [Operation("link", (place.interface, "mtu"), level)]

    def is_ready(self, place: SettingContext) -> bool:
        return place.worker.operate("link", (place.interface, "state"))[0].strip() == "up"
