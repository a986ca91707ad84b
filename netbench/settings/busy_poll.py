"""Busy polling of sockets."""

from __future__ import annotations

from netbench.settings.base import Operation, Setting, SettingContext, whole

FILES = ("/proc/sys/net/core/busy_read", "/proc/sys/net/core/busy_poll")


class BusyPoll(Setting):
    name = "busy_poll"
    about = (
        "Microseconds that a reader polls the device before it sleeps (net.core.busy_read and"
        " busy_poll)."
    )
    levels = "a whole number of microseconds such as 50, 0 for off"
    whole_kernel = True

    def parse(self, level: str) -> str:
        return whole(level, 0, 10**6)

    def read(self, what: str, place: SettingContext) -> str:
        return " and ".join(dict.fromkeys(place.read("file", file).strip() for file in FILES))

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        return [
            Operation("file", (file,), level)
            for file in FILES
            if place.read("file", file).strip() != level
        ]
