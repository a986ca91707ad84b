"""What the network, TCP and sockets did that a run did not ask for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netbench.base.names import AS_IS
from netbench.base.units import count
from netbench.model import OR_DEFAULT
from netbench.read.cautions.rule import Caution, Cautions, Evidence, caution
from netbench.read.readbacks import BUFFERS, Readback
from netbench.read.stack import Runs
from netbench.result.files import HostEntry

OPTIONS = (*BUFFERS, "congestion")
CONGESTION = {"congestion", "sysctl.net.ipv4.tcp_congestion_control"}
TCP_METRICS = {"tcp_metrics", "sysctl.net.ipv4.tcp_no_metrics_save"}


@caution(
    200,
    kinds=("buffers", "setting"),
    remedy="raise net.core.wmem_max or rmem_max, or find out what else sets the option",
)
def read_back(evidence: Evidence) -> Cautions:
    """A socket has another buffer size or congestion control than was asked first; or a setting
    that is left as it is reads otherwise in some runs of a cell.
    """
    # a setting of a host that reads otherwise than asked is refused, and nothing is run
    by_side: dict[tuple[str, str, str], dict[str, set[str]]] = {}
    left: dict[tuple[str, str, str], set[str]] = {}
    for r in evidence.result.readbacks:
        place = evidence.label(r.cell, r.pair)
        if r.asked == AS_IS:
            left.setdefault((r.side, r.name, place), set()).add(r.read)
        if r.name in OPTIONS and r.asked and r.read and not _as_asked(r):
            places = by_side.setdefault((r.name, r.asked, r.read), {})
            places.setdefault(r.side, set()).add(place)
    for (name, asked, read), places in by_side.items():
        side, where = " and ".join(places), tuple(sorted(set().union(*places.values())))
        if name in BUFFERS:
            limit = "wmem_max" if name == "send_buffer" else "rmem_max"
            yield Caution(
                f"The {side}'s {name} was clamped: {asked} bytes were asked, which the kernel"
                f" doubles, and {read} were read back.",
                where,
                f"read {read}",
                f"raise sysctl net.core.{limit} in settings:",
                kind="buffers",
            )
        else:
            algorithm = asked.removesuffix(OR_DEFAULT)
            why = f"but {asked} was asked"
            if algorithm != asked:
                why = f"the host's default: {algorithm} could not be chosen"
            yield Caution(
                f"The {side}'s {name} is {read}, {why}.",
                where,
                f"read {read}",
                "`check` says what the host supports, and what this user may choose",
                kind="setting",
            )
    moved: dict[tuple[str, tuple[str, ...]], dict[str, set[str]]] = {}
    for (side, name, place), values in left.items():
        if len(values) > 1:
            sides = moved.setdefault((name, tuple(sorted(values))), {})
            sides.setdefault(side, set()).add(place)
    for (name, reads), sides in moved.items():
        yield Caution(
            f"The {' and '.join(sides)}'s {name} was left as it is, which was not the same in all"
            " runs.",
            tuple(sorted(set().union(*sides.values()))),
            f"read {' and '.join(reads)}",
            "find out what sets it, and run the campaign anew",
            kind="setting",
        )


@caution(80, remedy="set transfer.congestion, or sweep it")
def congestion(evidence: Evidence) -> Cautions:
    """Cells ran with bbr, or with different congestion control that is not a factor."""
    used: dict[str, set[str]] = {}
    for r in evidence.result.readbacks:
        if r.name == "congestion" and r.side == "sender" and r.read:
            used.setdefault(r.read, set()).add(evidence.label(r.cell, r.pair))
    swept = {key.replace("/", ".") for key in evidence.result.factors}
    for name in sorted(name for name in used if name.startswith("bbr")):
        yield Caution(
            f"{name} paces by the bandwidth that it probed: throughput depends on when it probes,"
            " and CPU includes its pacing timers.",
            tuple(sorted(used[name])),
            f"read back in {count(len(used[name]), 'cell')}",
            "runs of 30 s or more, or cubic where the network is not what is tested",
        )
    if len(used) > 1 and not CONGESTION & swept:
        each = (f"{name} in {count(len(cells), 'cell')}" for name, cells in sorted(used.items()))
        yield Caution(
            "Cells ran with different congestion control, which is not a factor.",
            evidence="; ".join(each),
        )


def _as_asked(r: Readback) -> bool:
    if r.name in BUFFERS and r.asked.isdigit() and r.read.isdigit():
        return int(r.read) == 2 * int(r.asked)
    return r.asked.removesuffix(OR_DEFAULT) == r.read


@caution(
    75,
    remedy="write `settings: {tcp_metrics: drop}`, which needs root or `sudo -n`; or as root on"
    " each host `sysctl net.ipv4.tcp_no_metrics_save=1 && ip tcp_metrics flush`",
)
def tcp_metrics(evidence: Evidence) -> Cautions:
    """TCP kept what it learnt in one run (round-trip time, reordering, ssthresh) for the
    connections of the next, so runs may depend on the run before.
    """
    sides = (key.removeprefix("sender.") for key in evidence.result.handled)
    if TCP_METRICS & {key.removeprefix("receiver.").replace("/", ".") for key in sides}:
        return
    first = {
        host: next(filter(_is_used, entries), None)
        for host, entries in evidence.result.hosts.items()
    }
    by_host = {host: _in_words(entry) for host, entry in first.items() if entry}
    if by_host:
        yield Caution(
            "What TCP learnt in one run was handed to the connections of the next.",
            tuple(by_host),
            "; ".join(f"{host}: {words}" for host, words in by_host.items()),
        )


def _is_used(entry: HostEntry) -> bool:
    """Whether connections begin with what others have left; not where that is not known."""
    saved, known = entry.facts.get("tcp_no_metrics_save"), entry.facts.get("tcp_metrics")
    return saved == "0" or (bool(entry.not_held) and known not in (None, "none"))


def _in_words(entry: HostEntry) -> str:
    facts = ("tcp_no_metrics_save", "tcp_metrics")
    shown = ", ".join(f"{name} {entry.facts[name]}" for name in facts if entry.facts.get(name))
    why = entry.not_held.get("tcp_metrics", "")
    return f"{shown} ({why})" if why else shown


@caution(
    70, remedy="look for drops (`ethtool -S`, `nstat`), flow control and ring sizes, or send less"
)
def retransmits(evidence: Evidence) -> Cautions:
    """The sender retransmitted: the network may bound the transfer."""
    runs = evidence.result.ok
    if "retransmits" not in runs:
        return
    lossy = runs[runs["retransmits"] > 0]
    if len(lossy):
        total, most = int(lossy["retransmits"].sum()), int(lossy["retransmits"].max())
        yield Caution(
            "The sender retransmitted.",
            evidence.labels_of(lossy),
            f"{count(total, 'segment')} in {len(lossy)} of {count(len(runs), 'run')}, most in one"
            f" run {most}",
        )


def _rejected(runs: Runs) -> Iterator[tuple[str, int]]:
    receiver = runs.record.receiver
    if receiver and (rejected := int(np.sum(receiver.rejected_connections))):
        yield runs.record.cell, rejected


@caution(
    20,
    remedy="find out what scans this network; set port: to a range that nothing else uses",
    observe=_rejected,
)
def rejected_connections(evidence: Evidence) -> Cautions:
    """Connections to the data port did not show the run's token, or met a tool's server."""
    if evidence.saw:  # by cell, whatever the pair
        total = sum(map(sum, evidence.saw.values()))
        yield Caution(
            "Something else connected to the data port.",
            tuple(evidence.saw),
            count(total, "connection"),
        )
