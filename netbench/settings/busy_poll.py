"""Busy polling of sockets."""

from __future__ import annotations

from netbench.settings.file import KernelFiles
from netbench.settings.setting import SettingContext, whole

FILES = ("/proc/sys/net/core/busy_read", "/proc/sys/net/core/busy_poll")


class BusyPoll(KernelFiles):
    name = "busy_poll"
    about = (
        "Microseconds that a reader polls the device before it sleeps (net.core.busy_read and"
        " busy_poll)."
    )
    levels = "a whole number of microseconds such as 50, 0 for off"
    whole_kernel = True

    def parse(self, level: str) -> str:
        return whole(level, 0, 10**6)

    def files(self, place: SettingContext) -> tuple[str, ...]:
        return FILES
