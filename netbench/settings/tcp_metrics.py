"""What TCP keeps of a connection for the next one to the same address (ip-tcp_metrics(8))."""

from __future__ import annotations

from netbench.settings.setting import LINK, Operation, Setting, SettingContext

NO_SAVE = "/proc/sys/net/ipv4/tcp_no_metrics_save"
TABLE = ("addresses",)  # the target of the operation `tcp_metrics`
EMPTY = "none"
SAVED = {"drop": "1", "keep": "0"}


class TcpMetrics(Setting):
    name = "tcp_metrics"
    about = (
        "What TCP has learnt of an address (round-trip time, reordering, ssthresh): dropped, or"
        " kept for the next connection (net.ipv4.tcp_no_metrics_save)."
    )
    levels = "drop or keep"
    cost = LINK  # each change empties the cache that `keep` is about, so levels change rarely

    def parse(self, level: str) -> str:
        if level not in SAVED:
            raise ValueError(self.levels)
        return level

    def read(self, what: str, place: SettingContext) -> str:
        text = place.read("file", NO_SAVE).strip()
        return next((level for level, word in SAVED.items() if word == text), text)

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        operations = []
        if self.read(what, place) != level:
            operations.append(Operation("file", (NO_SAVE,), SAVED[level]))
        if level == "drop" and (operations or place.read("tcp_metrics", *TABLE).strip() != EMPTY):
            operations.append(Operation("tcp_metrics", TABLE, EMPTY, lasting=True))
        return operations
