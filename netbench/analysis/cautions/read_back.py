"""Options of a transfer that the kernel did not take as asked."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.analysis.cautions.base import Caution, CautionRule, Evidence
from netbench.analysis.readbacks import BUFFERS, Readback

OPTIONS = (*BUFFERS, "congestion")


class ReadBack(CautionRule):
    """Socket buffers and congestion control. A setting of a host that reads otherwise than asked
    is refused, and nothing is run.
    """

    name = "read_back"
    kinds = ("buffers", "setting")
    severity = 200
    about = "The kernel gave a socket another buffer size or congestion control than asked."
    reads = "`settings` of records; socket buffers read twice what was asked (socket(7))"
    shows = "what was read back"
    remedy = "raise net.core.wmem_max or rmem_max, or find out what else sets the option"

    def report(self, evidence: Evidence) -> Iterator[Caution]:
        places: dict[tuple[str, str, str, str], set[str]] = {}
        for r in evidence.result.readbacks:
            if r.name in OPTIONS and r.asked and r.read and not _as_asked(r):
                key = r.side, r.name, r.asked, r.read
                places.setdefault(key, set()).add(evidence.label(r.cell, r.pair))
        for (side, name, asked, read), where in places.items():
            if name in BUFFERS:
                limit = "wmem_max" if name == "send_buffer" else "rmem_max"
                yield self.caution(
                    f"The {side}'s {name} was clamped: {asked} bytes were asked, which the kernel"
                    f" doubles, and {read} were read back.",
                    sorted(where),
                    f"read {read}",
                    remedy=f"raise sysctl net.core.{limit} in settings:",
                    kind="buffers",
                )
            else:
                yield self.caution(
                    f"The {side}'s {name} is {read}, but {asked} was asked.",
                    sorted(where),
                    f"read {read}",
                    remedy="check that the host supports this level, and what else sets it",
                    kind="setting",
                )


def _as_asked(r: Readback) -> bool:
    if r.name in BUFFERS and r.asked.isdigit() and r.read.isdigit():
        return int(r.read) == 2 * int(r.asked)
    return r.asked == r.read
