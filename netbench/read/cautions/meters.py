"""Meters and sources that were not what a number takes them for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from netbench.base.units import count
from netbench.read.cautions.rule import Caution, Cautions, Evidence, caution
from netbench.read.counters import is_known
from netbench.read.meter_choice import LEAST
from netbench.read.soak import SOAK, idle_share
from netbench.read.stack import Runs
from netbench.result.record import SIDES, SideCounters

MOVED = 0.005  # of a CPU's time: what the meter soak is accurate to
ERROR = 0.1  # of what a run reads: its standard error
OF_A_TICK = 6**-0.5  # sd of the difference of two times, each in whole ticks
READ_AHEAD = 0.05
"""The kernel reads ahead: this share of a window may have been read before it."""
WARM, COLD = "warm", "cold"
REMEDIES = {
    WARM: "use a source that fits in memory",
    COLD: "use a file on a disk, and send it once (bytes: at most its size, warmup: 0s)",
}
Place = tuple[str, str]
Numbers = npt.NDArray[Any]


def _idle_shares(runs: Runs) -> Iterator[tuple[str, dict[int, float]]]:
    """By host, the share of each idle window by its opening: it is in every record of the block
    that follows it.
    """
    for side in filter(None, map(runs.record.side, SIDES)):
        if is_known(share := idle_share(side)):
            opened, _ = side.meters[SOAK]["idle_time_ns"]
            known = zip(opened.tolist(), share.tolist(), strict=True)
            yield side.host, {at: one for at, one in known if not math.isnan(one)}


@caution(
    95,
    remedy="keep other machines of the same hypervisor and other programs quiet, and repeat",
    observe=_idle_shares,
)
def idle(evidence: Evidence) -> Cautions:
    """The share of time that idle CPUs lose, which soak subtracts, moved by 0.5% of a CPU or more
    between blocks. CPU by soak is off by up to as much.
    """
    for host, seen in evidence.saw.items():
        by_window = {at: share for each in seen for at, share in each.items()}
        least, most = min(by_window.values(), default=0.0), max(by_window.values(), default=0.0)
        if most - least >= MOVED:
            lost = f"between {least:.1%} and {most:.1%} of their time"
            yield Caution(
                f"Idle CPUs of {host} lost {lost}, which soak subtracts.",
                (host,),
                f"{len(by_window)} idle windows between blocks",
            )


@caution(
    64, remedy="longer runs (a meter that samples at clock ticks misses bursts), or the meter soak"
)
def contradicted(evidence: Evidence) -> Cautions:
    """A meter of the whole host counted less CPU time than the measured processes used, which
    cannot be: CPU metrics without a meter's name are by another one.
    """
    found = evidence.result.contradicted
    for meter in dict.fromkeys(each.meter for each in found):
        mine = [each for each in found if each.meter == meter]
        worst = max(mine, key=lambda each: each.short.mean / each.used)
        yield Caution(
            f"{meter} counted less CPU time than the processes used, which cannot be: CPU metrics"
            " without a meter's name are by another meter.",
            evidence.labels((each.cell, each.pair) for each in mine),
            f"{worst.metric} {worst.counted:.3f} by {meter}, {worst.used:.3f} by {LEAST}:"
            f" {worst.short.mean / worst.used:.1%} short, mean of {worst.short.n} runs",
        )


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
        found = evidence.saw.get(asked, [])
        if shares := [share for _, of_runs in found for share in of_runs]:
            least, most = f"{min(shares):.0%}", f"{max(shares):.0%}"
            how_much = f", {least if least == most else f'{least} to {most}'} of the bytes"
            yield Caution(
                what,
                evidence.labels(place for place, _ in found),
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


def _windows(runs: Runs) -> Iterator[tuple[Place, float]]:
    """The shortest window of runs that have procstat, in seconds."""
    sender = runs.record.sender
    if sender and sender.time_ns and "procstat" in sender.meters:
        opening, closing = sender.time_ns
        yield (runs.record.cell, runs.record.pair), int(np.min(closing - opening)) / 1e9


@caution(
    30,
    remedy="longer runs, the meter cpuidle, or the metrics by rusage, which count nanoseconds",
    observe=_windows,
)
def resolution(evidence: Evidence) -> Cautions:
    """The measured window is so short that the steps of procstat, whole clock ticks, alone give the
    CPU time of one run a standard error of over 10%.
    """
    hosts = evidence.result.hosts.values()
    ticks = min((entry.clock_ticks for host in hosts for entry in host), default=100)
    errors: dict[Place, float] = {}
    for c in evidence.cells:
        counted = [c.intervals.get(f"{who}_cpu.procstat") for who in ("sender", "system")]
        least = min((each.mean for each in counted if each), default=0.0)
        if c.place in evidence.saw:
            window = min(evidence.saw[c.place])
            at_once = OF_A_TICK / ticks / window if window else math.inf
            error = at_once / least if least > 0 else math.inf
            if error > ERROR:
                errors[c.place] = error
    if errors:
        worst = max(errors, key=errors.__getitem__)
        window = min(evidence.saw[worst])
        yield Caution(
            "The window is short for the ticks of /proc/stat: CPU by procstat of a run is rough.",
            evidence.labels(errors),
            f"standard error of one run {errors[worst]:.0%} of what it reads, the most:"
            f" {window * 1e3:.3g} ms are {window * ticks:.2g} ticks of 1/{ticks} s",
        )
