"""Files of the kernel's as settings: any sysctl, any file below /sys, and those with a name."""

from __future__ import annotations

import re
from abc import abstractmethod

from netbench.settings.setting import LINK, Operation, SettingContext, Value, whole

CHOICE = re.compile(r"\[([^\[\]\s]+)\]")
NO_SAVE = "/proc/sys/net/ipv4/tcp_no_metrics_save"
SAVED = {"drop": "1", "keep": "0"}
TABLE = ("addresses",)  # the target of the operation `tcp_metrics`
EMPTY = "none"


class KernelFile(Value):
    """White space is of no account; of a choice (`always [madvise] never`) the chosen one."""

    levels = "what the kernel's file takes"

    @abstractmethod
    def path(self, what: str) -> str:
        """The file of a name. Errors: ValueError when it is none."""

    def places(self, what: str, place: SettingContext) -> list[tuple[str, ...]]:
        return [("file", self.path(what))]

    def parse(self, level: str) -> str:
        if not level.strip() or "\0" in level:
            raise ValueError(self.levels)
        return " ".join(level.split())

    def decode(self, text: str) -> str:
        chosen = CHOICE.search(text)
        return chosen[1] if chosen else " ".join(text.split())


_ODD = {"", ".", ".."}
"""Parts of a path that would make it another spelling of one."""


class Sysctl(KernelFile):
    name = "sysctl."
    about = "Any sysctl by its name, such as sysctl.net.ipv4.tcp_sack."

    def path(self, what: str) -> str:
        # As sysctl(8): where a slash comes first, dots are part of the names
        # (net/ipv4/conf/eth0.1/forwarding).
        name = (
            what
            if "/" in what.split(".", 1)[0]
            else what.replace("/", "\0").replace(".", "/").replace("\0", ".")
        )
        if _ODD & {*name.split("/")}:
            raise ValueError("the name of a sysctl such as net.ipv4.tcp_sack")
        return f"/proc/sys/{name}"

    def is_whole_kernel(self, what: str) -> bool:
        return not self.path(what).startswith("/proc/sys/net/")


class Sysfs(KernelFile):
    name = "sysfs."
    about = "Any file below /sys, such as sysfs.kernel/mm/transparent_hugepage/enabled."

    def path(self, what: str) -> str:
        name = what.removeprefix("/sys/").lstrip("/")
        if _ODD & {*name.split("/")}:
            raise ValueError("a path below /sys such as class/net/eth1/gro_flush_timeout")
        return f"/sys/{name}"

    def is_whole_kernel(self, what: str) -> bool:
        return "/net/" not in self.path(what)


class BusyPoll(Value):
    name = "busy_poll"
    about = (
        "Microseconds that a reader polls the device before it sleeps (net.core.busy_read and"
        " busy_poll)."
    )
    levels = "a whole number of microseconds such as 50, 0 for off"
    whole_kernel = True

    def parse(self, level: str) -> str:
        return whole(level, 0, 10**6)

    def places(self, what: str, place: SettingContext) -> list[tuple[str, ...]]:
        return [("file", f"/proc/sys/net/core/{name}") for name in ("busy_read", "busy_poll")]


class TcpMetrics(Value):
    """What TCP keeps of a connection for the next one to the same address (ip-tcp_metrics(8))."""

    name = "tcp_metrics"
    about = (
        "What TCP has learnt of an address (round-trip time, reordering, ssthresh): dropped, or"
        " kept for the next connection (net.ipv4.tcp_no_metrics_save)."
    )
    levels = "drop or keep"
    syntax = "drop|keep"
    cost = LINK  # each change empties the cache that `keep` is about, so levels change rarely

    def places(self, what: str, place: SettingContext) -> list[tuple[str, ...]]:
        return [("file", NO_SAVE)]

    def decode(self, text: str) -> str:
        word = text.strip()
        return next((level for level, saved in SAVED.items() if saved == word), word)

    def encode(self, level: str) -> str:
        return SAVED[level]

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        operations = super().changes(what, level, place)
        if level == "drop" and (operations or place.read("tcp_metrics", *TABLE).strip() != EMPTY):
            operations.append(Operation("tcp_metrics", TABLE, EMPTY, lasting=True))
        return operations
