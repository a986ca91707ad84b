"""The queueing discipline at the interface's root."""

from __future__ import annotations

import re

from netbench.settings.setting import Operation, Setting, SettingContext


class Qdisc(Setting):
    name = "qdisc"
    about = (
        "Queueing discipline at the root of the interface, with its default options (fq, fq_codel,"
        " pfifo_fast, noqueue, ...)."
    )
    levels = "the name of a queueing discipline such as fq"

    def parse(self, level: str) -> str:
        if not re.fullmatch("[a-z][a-z0-9_]{0,14}", level):
            raise ValueError(self.levels)
        return level

    def read(self, what: str, place: SettingContext) -> str:
        lines = (line.split() for line in place.read("qdisc", place.interface).splitlines())
        return next((words[1] for words in lines if words[0] == "root"), "none")

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        if self.read(what, place) == level:
            return []
        return [Operation("qdisc", (place.interface,), level)]
