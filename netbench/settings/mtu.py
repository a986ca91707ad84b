"""The interface's largest packet."""

from __future__ import annotations

from contextlib import suppress

from netbench.base.errors import EngineError
from netbench.settings.setting import LINK, SettingContext, whole
from netbench.settings.values import Value


class Mtu(Value):
    name = "mtu"
    about = "Largest packet of the interface, in bytes without the link's header."
    levels = "a whole number of bytes such as 9000"
    cost = LINK

    def parse(self, level: str) -> str:
        return whole(level, 68, 65535)

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
