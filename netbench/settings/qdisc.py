"""The queueing discipline at the interface's root."""

from __future__ import annotations

import re

from netbench.settings.setting import SettingContext
from netbench.settings.values import Value


class Qdisc(Value):
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

    def places(self, what: str, place: SettingContext) -> list[tuple[str, ...]]:
        return [("qdisc", place.interface)]

    def decode(self, text: str) -> str:
        lines = map(str.split, text.splitlines())
        return next((words[1] for words in lines if words[0] == "root"), "none")
