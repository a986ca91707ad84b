"""The columns of netperf's TCP_STREAM with -c -C, to be read beside its output."""

from __future__ import annotations

from collections.abc import Mapping

from netbench.analysis.cells import CellResult
from netbench.analysis.host_cpus import cpus_online
from netbench.analysis.intervals import Interval
from netbench.model import Transfer
from netbench.record import SIDES
from netbench.report.blocks import Column, Section, Table, Value
from netbench.report.numbers import count
from netbench.report.source import Source
from netbench.units import parse_size

LETTERS = {
    "procstat": "S",
    "rusage": "R",
}  # netperf's own, of how it measured CPU (netperf manual, "CPU Utilization")
BUFFERS = {"receive_buffer": "receiver", "send_buffer": "sender"}
FEW = 2


def netperf(source: Source) -> Section | None:
    """One row a cell that moved data: socket and message sizes, time, throughput, utilization and
    service demand.
    """
    cells = [c for c in source.cells if "throughput" in c.intervals]
    if not cells:
        return None
    sizes, cpus = (
        _buffers(source),
        {host: cpus_online(entries) for host, entries in source.result.hosts.items()},
    )
    meters = [{_meter(source, c, f"{side}_cpu") for c in cells} - {""} for side in SIDES]
    columns = (
        *(Column(name, kind="key") for name in source.keys),
        Column("Recv Socket Size", "bytes"),
        Column("Send Socket Size", "bytes"),
        Column("Send Message Size", "bytes"),
        Column("Elapsed Time", "secs."),
        Column("Throughput", "10^6bits/s"),
        Column("Utilization Send", _percent(meters[0])),
        Column("Utilization Recv", _percent(meters[1])),
        Column("Service Demand Send", "us/KB"),
        Column("Service Demand Recv", "us/KB"),
    )
    rows = tuple((*source.key(c), *_row(source, c, sizes, cpus)) for c in cells)
    marked = frozenset(i for i, c in enumerate(cells) if c.marked)
    table = Table("", columns, rows, tuple(_notes(source, meters[0] | meters[1], cpus)), marked)
    return Section("netperf", "In netperf's columns", (table,))


def _row(
    source: Source,
    c: CellResult,
    sizes: Mapping[tuple[str, str, str], Value],
    cpus: Mapping[str, int | None],
) -> tuple[Value, ...]:
    sender, _, receiver = c.pair.partition(">")
    elapsed = source.result.used.get((c.cell, c.pair, "receiver", "seconds"))
    by_engine = (c.cell, c.pair, "send_buffer") in sizes
    return (
        *(sizes.get((c.cell, c.pair, name)) for name in BUFFERS),
        _message(source, c) if by_engine else None,
        elapsed.mean if elapsed else None,
        c.intervals["throughput"].times(1000),
        _utilization(c.intervals.get("sender_cpu"), cpus.get(sender)),
        _utilization(c.intervals.get("receiver_cpu"), cpus.get(receiver)),
        c.intervals.get("sender_demand"),
        c.intervals.get("receiver_demand"),
    )


def _utilization(busy: Interval | None, cpus: int | None) -> Interval | None:
    """CPUs busy as percent of all CPUs; None where either is not known."""
    return busy.times(100 / cpus) if busy and cpus else None


def _buffers(source: Source) -> dict[tuple[str, str, str], Value]:
    """(cell, pair, name) -> the socket's size that was read: one, or the least and the most where
    the kernel tuned it.
    """
    read: dict[tuple[str, str, str], set[str]] = {}
    for r in source.result.readbacks:
        if BUFFERS.get(r.name) == r.side and r.read:
            read.setdefault((r.cell, r.pair, r.name), set()).add(r.read)
    return {key: _span(words) for key, words in read.items()}


def _span(words: set[str]) -> Value:
    if not all(word.isdecimal() for word in words):
        return ", ".join(sorted(words)[:FEW])
    sizes = sorted(map(int, words))
    return sizes[0] if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"


def _message(source: Source, c: CellResult) -> Value:
    """Bytes that a send call was given, as the campaign asks; `file` where it is a whole one."""
    asked = source.result.asked
    if asked is None and "chunk" not in c.factors:
        return None
    word = c.factors.get("chunk", (asked or {}).get("transfer.chunk", ""))
    try:
        return parse_size(word) if word else Transfer.chunk
    except ValueError:
        return word


def _meter(source: Source, c: CellResult, metric: str) -> str:
    """The meter that gave a cell's CPU metric, or ""."""
    order = source.result.meters[metric]
    return next((meter for meter in order if f"{metric}.{meter}" in c.intervals), "")


def _percent(meters: set[str]) -> str:
    letters = {LETTERS.get(meter, "") for meter in meters}
    return f"% {letters.pop()}".strip() if len(letters) == 1 else "%"


def _notes(source: Source, meters: set[str], cpus: Mapping[str, int | None]) -> list[str]:
    online = ", ".join(
        f"{host} {n if n else 'not known, or they changed'}" for host, n in cpus.items()
    )
    known = set(cpus.values())
    online = (
        count(known.pop() or 0, "CPU")
        if len(known) == 1 and None not in known
        else f"CPUs: {online}"
    )
    notes = [
        (
            f"Utilization is of all CPUs of a host, as with netperf ({online}); demand is CPU time"
            " of all CPUs for 1024 bytes."
        ),
        (
            "Socket sizes are what getsockopt(2) gave when a run ended: Linux doubles what is"
            " asked, and tunes what is not."
        ),
    ]
    if "procstat" in meters:
        notes.append("% S: by /proc/stat, all that the host did.")
    if "rusage" in meters:
        shared = any(source.result.shared.values())
        why = (
            "both ends share a kernel, whose whole cost is in the table of cells"
            if shared
            else "no meter of the host ran"
        )
        notes.append(f"% R: by getrusage(2), the processes alone, without softirq; {why}.")
    return notes
