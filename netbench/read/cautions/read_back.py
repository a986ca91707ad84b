"""Options of a transfer that the kernel did not take as asked. Socket buffers and congestion
control. A setting of a host that reads otherwise than asked is refused, and nothing is run.
"""

from __future__ import annotations

from netbench.model import OR_DEFAULT
from netbench.read.cautions.rule import CautionRule, Cautions, Evidence
from netbench.read.readbacks import BUFFERS, Readback

OPTIONS = (*BUFFERS, "congestion")


class ReadBack(CautionRule):
    """A socket has another buffer size or congestion control than was asked first."""

    name = "read_back"
    kinds = ("buffers", "setting")
    severity = 200
    reads = "`settings` of records; socket buffers read twice what was asked (socket(7))"
    shows = "what was read back"
    remedy = "raise net.core.wmem_max or rmem_max, or find out what else sets the option"

    def report(self, evidence: Evidence) -> Cautions:
        by_side: dict[tuple[str, str, str], dict[str, set[str]]] = {}
        congestion: dict[str, set[str]] = {}  # of both ends, by place
        for r in evidence.result.readbacks:
            place = evidence.label(r.cell, r.pair)
            if r.name in OPTIONS and r.asked and r.read and not _as_asked(r):
                places = by_side.setdefault((r.name, r.asked, r.read), {})
                places.setdefault(r.side, set()).add(place)
            if r.name == "congestion":
                congestion.setdefault(place, set()).add(r.read)
        for (name, asked, read), places in by_side.items():
            side, where = " and ".join(places), sorted(set().union(*places.values()))
            if name in BUFFERS:
                limit = "wmem_max" if name == "send_buffer" else "rmem_max"
                yield self.caution(
                    f"The {side}'s {name} was clamped: {asked} bytes were asked, which the kernel"
                    f" doubles, and {read} were read back.",
                    where,
                    f"read {read}",
                    remedy=f"raise sysctl net.core.{limit} in settings:",
                    kind="buffers",
                )
            else:
                wanted = asked.removesuffix(OR_DEFAULT)
                why = f"but {asked} was asked"
                if wanted != asked:
                    why = f"the host's default: {wanted} could not be chosen"
                others = sorted(set().union(*(congestion[place] for place in where)) - {read})
                yield self.caution(
                    f"The {side}'s {name} is {read}, {why}.",
                    where,
                    f"read {read}" + "".join(f", and {other} at the other end" for other in others),
                    remedy="`check` says what the host supports, and what this user may choose",
                    kind="setting",
                )


def _as_asked(r: Readback) -> bool:
    if r.name in BUFFERS and r.asked.isdigit() and r.read.isdigit():
        return int(r.read) == 2 * int(r.asked)
    return r.asked.removesuffix(OR_DEFAULT) == r.read
