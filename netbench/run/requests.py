"""What a run of requests measured: numbers of its histograms as metrics, and the histograms
themselves, which are kept beside the record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from netbench.base.errors import EngineError
from netbench.engine.binding import Code, Vector
from netbench.model import Transfer
from netbench.result.record import Capture, Proof, ProofCounters, SideCounters
from netbench.stats.histogram import Histogram

KINDS = {"latency": "", "service": "service_", "lateness": "lateness_"}
"""Histograms as a worker calls them -> how the names of their metrics begin."""
LONGEST = 2 * 10**9
"""ns from the last second that was told to the end of a window, where all were told."""
OF_SERVICE = ("p50", "p99", "latency")
"""Of the service time of an open loop fewer numbers are told; the lateness judges each latency."""


def check_counts(transfer: Transfer, proof: Proof) -> None:
    """Each request was answered once. Errors: EngineError where both sides count otherwise."""
    if not transfer.asks:
        return
    sides = [side.get("transactions") for side in (proof.sender, proof.receiver)]
    if None in sides:
        raise EngineError(Code.PROTOCOL, 0, "requests", "a count is missing", "look at that host")
    asked, answered = (sum(side[-1]) for side in sides if side)
    if asked != answered:
        what = f"{asked} requests were answered, and the receiver answered {answered}"
        remedy = "others connected to its port: `ss -tnp` there names them"
        raise EngineError(Code.SYSTEM, 0, "requests", what, remedy)


def measured(
    transfer: Transfer,
    read: Mapping[str, Any],
    client: SideCounters,
    proof: ProofCounters,
    seconds: Sequence[Vector] = (),
) -> tuple[dict[str, Capture], list[Mapping[str, Any]]]:
    """Metrics, and lines of samples, of what a client has read back. Nothing of bulk. Transactions
    are what was answered within the window; of an open loop `offered` is what was due in it.
    `seconds`: histograms as they were after each second of the window.
    """
    asked = [kind for kind in KINDS if transfer.asks and kind in read]
    if any(read[kind] is None for kind in asked):
        raise ValueError("a number of a histogram is missing")
    histograms = {kind: Histogram.of(read[kind]) for kind in asked}
    if not histograms or not client.time_ns:
        return {}, []
    opened, closed, *_ = map(sum, proof["transactions"])
    window = (client.time_ns[1] - client.time_ns[0]) * 1e-9
    metrics = {"transactions": ((closed - opened) / window, "1/s")}
    if "lateness" in histograms and transfer.duration:
        metrics["offered"] = histograms["latency"].count / (transfer.duration * 1e-9), "1/s"
    for kind, prefix in KINDS.items():
        numbers = histograms[kind].numbers() if kind in histograms else {}
        metrics |= {
            f"{prefix}{name}".replace("lateness_latency", "lateness"): (value, "µs")
            for name, value in numbers.items()
            if kind != "service" or name in OF_SERVICE
        }
    line: dict[str, Any] = {"side": "sender", "edge": "drained", "ns": client.time_ns[1]}
    line["requests"] = {
        f"{kind}_{what}": numbers
        for kind, of in histograms.items()
        for what, numbers in (
            ("bucket", [bucket for bucket, _ in of.buckets]),
            ("count", [number for _, number in of.buckets]),
        )
    }
    counted = [(second.ns, second.numbers) for second in seconds]
    if counted and line["ns"] - counted[-1][0] < LONGEST:
        counted.append((line["ns"], read["latency"]))
    captures = {name: Capture("", value, unit) for name, (value, unit) in metrics.items()}
    return captures, [line, *_by_second(counted)]


def _by_second(counted: Sequence[tuple[int, Sequence[int | None]]]) -> Iterator[Mapping[str, Any]]:
    """A line for each second of a window, of what was answered in it; what is answered when the
    window has closed is of the last.
    """
    buckets = [Counter(dict(zip(of[3::2], of[4::2], strict=True))) for _, of in counted]
    for (ns, _), before, after in zip(counted, [Counter(), *buckets], buckets, strict=False):
        answered = after - before
        yield {
            "side": "sender",
            "edge": "second",
            "ns": ns,
            "requests": {"bucket": [*answered], "count": [*answered.values()]},
        }
