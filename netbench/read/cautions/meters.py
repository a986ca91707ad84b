"""Meters and sources that were not what a number takes them for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from netbench.base.units import count
from netbench.read.cautions.rule import Caution, Cautions, Evidence, caution
from netbench.read.meter_choice import LEAST
from netbench.read.stack import Runs
from netbench.result.record import SideCounters

READ_AHEAD = 0.05
"""The kernel reads ahead: this share of a window may have been read before it."""
WARM, COLD = "warm", "cold"
REMEDIES = {
    WARM: "use a source that fits in memory",
    COLD: "use a file on a disk, and send it once (bytes: at most its size, warmup: 0s)",
}
Place = tuple[str, str]
Numbers = npt.NDArray[Any]


@caution(
    64, remedy="longer runs (a meter that samples at clock ticks misses bursts), or the meter soak"
)
def contradicted(evidence: Evidence) -> Cautions:
    """A meter of the whole host counted less CPU time than the measured processes used, which
    cannot be: CPU metrics without a meter's name are by another one.
    """
    contradictions = evidence.result.contradicted
    for meter in dict.fromkeys(each.meter for each in contradictions):
        of_meter = [each for each in contradictions if each.meter == meter]
        worst = max(of_meter, key=lambda each: each.short.mean / each.used)
        yield Caution(
            f"{meter} counted less CPU time than the processes used, which cannot be: CPU metrics"
            " without a meter's name are by another meter.",
            evidence.labels((each.cell, each.pair) for each in of_meter),
            f"{worst.metric} {worst.counted:.3f} by {meter}, {worst.used:.3f} by {LEAST}:"
            f" {worst.short.mean / worst.used:.1%} short, mean of {worst.short.n} runs",
        )


@caution(66, remedy="add the meter rusage; `check` says what the meters lack that are named")
def no_cpu(evidence: Evidence) -> Cautions:
    """No meter of the campaign counted CPU time, which perf does by the CPU's own counters."""
    result = evidence.result
    if len(result.ok) and not any("_cpu" in name for name in result.metrics):
        yield Caution("No meter counted CPU time.", evidence="no CPU metric in any run")


def _out_of_cache(runs: Runs) -> Iterator[tuple[str, tuple[Place, list[float]]]]:
    """Of the runs whose source was not as asked, `warm` or `cold`, where, and what share of their
    bytes came from the page cache.
    """
    record, sender = runs.record, runs.record.sender
    if sender is None or sender.resident is None:
        return
    resident, asked = np.asarray(sender.resident), COLD if sender.cache == COLD else WARM
    shares, odd = np.zeros(len(runs)), resident != sender.source_size
    if asked == COLD:
        shares = _from_memory(sender, record.receiver)
        odd = (resident != 0) | (shares > READ_AHEAD)
    if np.any(odd):
        yield asked, ((record.cell, record.pair), shares[odd].tolist())


@caution(
    45,
    remedy="; ".join(f"{asked}: {remedy}" for asked, remedy in REMEDIES.items()),
    observe=_out_of_cache,
)
def cache(evidence: Evidence) -> Cautions:
    """The source was not in the page cache when a run began (warm), or part of what was sent came
    from the page cache and not from a disk (cold).
    """
    for asked, what in (
        (WARM, "The source was not in the page cache when runs began, as cache: warm asks."),
        (
            COLD,
            "Part of what was sent came from the page cache, though cache: cold asks for the disk.",
        ),
    ):
        by_cell = evidence.saw.get(asked, [])
        if shares := [share for _, of_runs in by_cell for share in of_runs]:
            least, most = f"{min(shares):.0%}", f"{max(shares):.0%}"
            how_much = f", {least if least == most else f'{least} to {most}'} of the bytes"
            yield Caution(
                what,
                evidence.labels(place for place, _ in by_cell),
                f"in {count(len(shares), 'run')}{how_much if asked == COLD else ''}",
                REMEDIES[asked],
            )


def _from_memory(sender: SideCounters, receiver: SideCounters | None) -> Numbers:
    """The share of each cold run's bytes that came from the page cache: those of the window that
    the process did not read from storage, or what was there before the run; where nothing says what
    was read (NFS), what was sent more than once.
    """
    size = np.asarray(0 if sender.source_size is None else sender.source_size)
    before = _share(np.asarray(sender.resident), size)
    begun, sent = _bytes(sender)
    whole = np.where(sent > 0, sent, _bytes(receiver)[1] if receiver else 0)
    twice = np.where(whole > size, 1 - _share(size, whole), 0.0)
    if read := sender.meters.get("disk", {}).get("read_bytes"):
        stored = 1.0 - _share(read[1] - read[0], sent - begun)
        twice = np.where(sent > begun, stored, twice)
    shares: Numbers = np.maximum(before, twice)
    return shares


def _share(part: Any, whole: Any) -> Numbers:
    """A part of a whole; 0 where there is none."""
    return np.where(whole > 0, part / np.maximum(whole, 1), 0.0)


def _bytes(side: SideCounters) -> tuple[Any, Any]:
    """Bytes of all flows at the opening and the closing of the window, warm-up included."""
    opening, closing = side.meters.get("flow", {}).get("bytes", ([], []))
    return np.asarray(sum(opening)), np.asarray(sum(closing))
