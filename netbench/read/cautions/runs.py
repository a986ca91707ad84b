"""Runs that were lost, are left out, or are not what was asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pandas as pd

from netbench.base.names import QUANTILES
from netbench.base.units import count, listed, parse_size, said_of
from netbench.read.cautions.rule import NAMED, Caution, Cautions, Evidence, caution
from netbench.read.cells import rows_by_cell
from netbench.read.compare import late_of
from netbench.read.epochs import BETWEEN
from netbench.read.meter_choice import SIDES_OF_CPU
from netbench.read.offered import BOTH, TOLERANCE, rate_of
from netbench.read.shown_levels import NO_TOOL
from netbench.read.stack import Runs
from netbench.stats.series import outliers

BRIEF = 0.025  # seconds: opening and closing a window takes up to 0.25 ms
BUSY = 0.3  # of the requests that may be under way: those that are, on average
BURST = 64 << 20  # bytes of a stream: ten times what tcp_rmem lets a buffer hold
NEAR = 0.01  # a run that is as near to the median matters to nobody
REMEDIES = {
    "failed": "see the reason and log.txt, remove the cause and repeat the campaign",
    "refused": "choose a level that the host accepts, or exclude the cell",
    "unsupported": "exclude the cell, or use a host that can run it (`netbench check` says why)",
    "interrupted": "resume the campaign",
}


@caution(240, remedy="resume the campaign: it repeats the run")
def truncated(evidence: Evidence) -> Cautions:
    """The last line of records.jsonl is incomplete, so that its run is left out."""
    if evidence.result.truncated:
        yield Caution(
            "The last line of records.jsonl is incomplete, as a kill leaves it, and is left out.",
            evidence="one run is lost",
        )


@caution(
    220,
    kinds=tuple(REMEDIES),
    remedy="; ".join(f"{status}: {remedy}" for status, remedy in REMEDIES.items()),
)
def bad_runs(evidence: Evidence) -> Cautions:
    """Runs failed, were refused, unsupported or interrupted, and count in no number."""
    runs = pd.concat([evidence.result.runs, evidence.result.control_runs])
    bad = runs[runs["status"] != "ok"]
    first_lines = [str(reason).partition("\n")[0] for reason in bad["reason"]]
    # what follows is a console's output, which differs from run to run
    groups = bad.assign(reason=first_lines).groupby(["status", "reason"], observed=True, sort=True)
    for (status, reason), group in groups:
        what = said_of(len(group), "run", "failed" if status == "failed" else f"were {status}")
        yield Caution(
            f"{what}: {reason or 'no reason was recorded'}.",
            evidence.labels_of(group),
            f"of {count(len(runs), 'run')}",
            REMEDIES[str(status)],
            kind=str(status),
        )


@caution(
    210, remedy="do not read these cells as this method's cost; `netbench check` says what it lacks"
)
def mechanism(evidence: Evidence) -> Cautions:
    """A method's proof counters show that its mechanism was not used."""
    runs = evidence.result.ok
    marked = runs[runs["engaged"] != ""]
    # how far a counter moved differs from run to run
    alike = marked["engaged"].astype(str).str.replace(r" counted \d+", " moved", regex=True)
    for reason, group in marked.groupby(alike, sort=True):
        yield evidence.of_ok(
            group,
            f"The mechanism did not engage in {count(len(group), 'run')} ({reason}). These runs"
            " count; their cells are marked.",
        )


@caution(
    195,
    remedy="ask for a lower rate, give the client threads or CPUs of its own, or `wait: spin` (rr)",
)
def client_limit(evidence: Evidence) -> Cautions:
    """Requests of an open loop began later than they were due, though there was a place for them,
    by more than a tenth of the latency (p99, or mean): the client's own delay is in what it
    measured.
    """
    runs = evidence.result.ok
    if len(late := late_of(runs)):
        has_p99 = "p99" in late and late["p99"].notna().all()
        names = ("p99", "p99", "lateness_p99"), ("mean", "latency", "lateness")
        name, of, own = names[0 if has_p99 else 1]
        yield evidence.of_ok(
            late,
            f"The client was late in {count(len(late), 'run')}: its requests began up to"
            f" {late[own].max():.3g} µs ({name}) after they could.",
            f"; {name} of their latency {late[of].median():.3g} µs",
        )


@caution(193, remedy="ask for a lower rate: here the latency grows for as long as the window lasts")
def backlog(evidence: Evidence) -> Cautions:
    """Fewer requests of an open loop were answered within the window than were due in it: what it
    measured is how long the queue became.
    """
    runs = evidence.result.ok
    if "offered" not in runs:
        return
    behind = runs[runs["transactions"] < (1 - TOLERANCE) * runs["offered"]]
    if len(behind):
        share = (behind["transactions"] / behind["offered"]).min()
        yield evidence.of_ok(
            behind,
            f"The rate was not kept in {count(len(behind), 'run')}: as little as {share:.0%} of"
            " what was due in the window was answered within it.",
        )


@caution(
    191,
    remedy="move or ask more, or bound the run by `duration`, whose window does not wait for data",
)
def burst(evidence: Evidence) -> Cautions:
    """A run bounded by bytes moved few: its window begins when the first read has returned, and
    what was read, and what had come meanwhile, counts in full. Or one bounded by requests asked
    few: its window is brief, or most of it has connections that begin or have ended.
    """
    result, short = evidence.result, dict[str, str]()
    asked, places = dict[str, float](), dict[str, float]()
    for cell in result.cells:
        known = {f"transfer.{key}": level for key, level in cell.factors.items()}
        known = {key: str(level) for key, level in {**(result.asked or {}), **known}.items()}
        if known.get("transfer.tool", NO_TOOL) != NO_TOOL:  # it times its bytes itself
            continue
        with suppress(ValueError, OverflowError):  # no number, or none that can be
            if requests := known.get("transfer.requests"):
                each = (known.get(f"transfer.{key}", "1") for key in ("connections", "depth"))
                places[cell.cell] = float(math.prod(map(int, each)))
                asked[cell.cell] = float(int(requests))
            streams = int(known.get("transfer.streams", "1"))
            if 0 < parse_size(known.get("transfer.bytes", "0")) < BURST * streams:
                short[cell.cell] = known["transfer.bytes"]
    runs = result.ok[result.ok["cell"].isin(list(short))]
    if "throughput" in runs and len(runs := runs[runs["throughput"].notna()]):
        sizes = listed(list(dict.fromkeys(short.values())), NAMED)
        yield evidence.of_ok(
            runs,
            f"{count(len(runs), 'run')} moved {sizes} alone, less than a receiver may find in its"
            " buffer: the throughput is too high.",
        )
    runs = result.ok[result.ok["cell"].isin(list(asked))]
    if asked and {"transactions", "latency"} <= {*runs}:
        cells = runs["cell"].astype(str)
        seconds = cells.map(asked) / runs["transactions"]
        under_way = runs["transactions"] * runs["latency"] * 1e-6  # Little's law
        few = (seconds < BRIEF) | (under_way < cells.map(places) * BUSY)
        runs, seconds = runs[few], seconds[few]
    if len(runs):
        yield evidence.of_ok(
            runs,
            f"{count(len(runs), 'run')} asked few requests, within {seconds.min():.2g} s: opening"
            " and closing the window, or connections that begin and end, are much of it.",
        )


@caution(194, remedy="ask for a longer duration, or compare a lower quantile")
def few_requests(evidence: Evidence) -> Cautions:
    """Some runs of a cell had too few requests for a quantile, which is missing there: what is told
    is that of its faster runs.
    """
    runs, lacking = evidence.result.ok, dict[str, pd.DataFrame]()
    for name in (name for name in QUANTILES if name in runs and "transactions" in runs):
        asked = runs[runs["transactions"].notna()]
        measured = asked.groupby(["cell", "pair"], observed=True)[name].transform("count")
        if len(some := asked[asked[name].isna() & measured.gt(0)]):
            lacking[name] = some
    if lacking:
        each = ", ".join(f"{name} ({count(len(some), 'run')})" for name, some in lacking.items())
        yield evidence.of_ok(
            pd.concat(lacking.values()),
            f"Too few requests for {each}, which other runs of the same cells have.",
        )


@caution(192, remedy="let the tool print one unit, or leave the unit out of the pattern")
def units(evidence: Evidence) -> Cautions:
    """A tool printed a metric in a unit that is no multiple of the first run's: it is left out."""
    for (cell, pair, metric), runs in evidence.result.odd_units.items():
        unit = evidence.result.units[metric] or "no unit"
        yield Caution(
            f"{metric} of {count(runs, 'run')} is not in {unit}, as that of the first run is, and"
            " is left out.",
            evidence.labels([(cell, pair)]),
        )


@caution(190, remedy="see samples/, and the tool's pattern")
def missing(evidence: Evidence) -> Cautions:
    """An ok run moved data, but its throughput could not be computed."""
    runs = evidence.result.ok
    if "throughput" not in runs:
        return
    others = [name for name in ("steps", "transactions") if name in runs]
    lacking = runs[runs[["throughput", *others]].isna().all(axis=1)]
    if len(lacking):
        no_number = "have no throughput: their counters, or a tool's output, could not be read."
        yield evidence.of_ok(lacking, said_of(len(lacking), "ok run", no_number))


@caution(189, remedy="let the tool's pattern have the groups bytes and seconds in place of rate")
def no_demand(evidence: Evidence) -> Cautions:
    """A tool printed a rate alone, and its CPU time is that of its whole life: for how many bytes
    that was is not known.
    """
    runs = evidence.result.ok
    if "throughput" not in runs:
        return
    cpu, demand = (
        [n for n in evidence.result.metrics if n.endswith(e)] for e in ("_cpu", "_demand")
    )
    known = runs["throughput"].gt(0) & runs[cpu].notna().any(axis=1)
    if len(lacking := runs[known & runs[demand].isna().all(axis=1)]):
        yield evidence.of_ok(
            lacking,
            f"CPU time a byte of {count(len(lacking), 'run')} is not known: their tool told a rate"
            " alone, and ran for longer than it moved data.",
        )


@caution(
    155, remedy="find what stood still then; lower the rate; use a window of 100 chunks or more"
)
def rate(evidence: Evidence) -> Cautions:
    """Runs moved over 2% less or more than their `rate`: their CPU is of another load."""
    result, runs = evidence.result, evidence.result.ok
    missed: dict[tuple[str, str], list[tuple[float, str]]] = {}
    rows, paced = rows_by_cell(runs), 0
    sides = [name for name in BOTH if name in runs]
    for c in evidence.cells if sides else ():
        asked, places = rate_of(result, c.factors), rows.get(c.place)
        if asked is None or places is None:
            continue
        paced += len(places)
        off = np.nan_to_num(runs[sides].to_numpy(dtype=float)[places] * 1e9 / asked - 1)
        worst = off[np.arange(len(places)), np.abs(off).argmax(axis=1)]
        for run, by in zip(runs["run"].to_numpy()[places], worst, strict=True):
            if abs(by) > TOLERANCE:
                missed.setdefault(c.place, []).append((abs(by), f"run {run}: {by:+.1%}"))
    if missed:
        short = sorted((each for of_cell in missed.values() for each in of_cell), reverse=True)
        yield Caution(
            f"{said_of(len(short), 'run', 'missed')} the rate by over {TOLERANCE:.0%}, and"
            f" {'counts' if len(short) == 1 else 'count'} like all others.",
            evidence.labels(missed),
            f"of {count(paced, 'run')} at a rate; {listed([each for _, each in short], NAMED)}",
        )


@caution(
    150, remedy="look at what else ran then (plot of runs in order); a quieter host or longer runs"
)
def outlier(evidence: Evidence) -> Cautions:
    """A run lies far from the median of its cell, by NEAR at least; it counts like all others."""
    result, runs = evidence.result, evidence.result.ok
    paced = any(rate_of(result, c.factors) for c in evidence.cells)
    for metric in dict.fromkeys((*result.repeat.metrics, *(SIDES_OF_CPU if paced else ()))):
        apart: list[tuple[str, str]] = []
        for c, rows, within in evidence.values(metric):
            values, numbers = runs[metric].to_numpy(float)[rows], runs["run"].to_numpy()[rows]
            middle = float(np.median(values))
            for i in outliers(within):
                off = values[i] / middle - 1 if middle else 0.0
                if middle and abs(off) < NEAR:
                    continue
                text = f"run {numbers[i]}: {values[i]:.4g} ({off:+.1%} from the median)"
                apart.append((evidence.label(*c.place), text))
        if apart:
            yield Caution(
                f"{said_of(len(apart), 'run', 'lie')} far from the other runs of the cell in"
                f" {metric}, and {'counts' if len(apart) == 1 else 'count'} like all others.",
                tuple(dict.fromkeys(label for label, _ in apart)),
                listed([text for _, text in apart], NAMED),
            )


@caution(
    120,
    kinds=("facts",),
    remedy="run the campaign anew; one that was cut short counts them again once these facts are as"
    " they were and it is resumed, but for runs in which one changed",
)
def not_pooled(evidence: Evidence) -> Cautions:
    """Facts that must match changed, so that ok runs made before are excluded."""
    runs = evidence.result.runs
    excluded = runs[runs["excluded"] != ""]
    for (pair, why), group in excluded.groupby(["pair", "excluded"], observed=True, sort=False):
        ok = int(((runs["status"] == "ok") & (runs["pair"] == pair)).sum())
        changes = str(why).split(BETWEEN)
        first, last = int(group["run"].min()), int(group["run"].max())
        yield Caution(
            f"{len(group)} of {count(ok, 'ok run')} (between run {first} and run {last}) are"
            " excluded from all means, intervals and comparisons: these facts differed from"
            " those at the end of the campaign.",
            tuple(dict.fromkeys(change.partition(":")[0] for change in changes)),
            listed(changes, NAMED),
            kind="facts",
        )


def _cuts(runs: Runs) -> Iterator[tuple[tuple[str, str], tuple[int, float]]]:
    record = runs.record
    if record.cut:
        longest = max(float(np.max(seconds)) for seconds in record.cut.values())
        yield (record.cell, record.pair), (len(runs), longest)


@caution(
    40,
    remedy="look at the management link; where data shares it, compare these runs with others",
    observe=_cuts,
)
def cut(evidence: Evidence) -> Cautions:
    """The controller lost its connection to a worker for a while during a run."""
    if cuts := [each for of_cell in evidence.saw.values() for each in of_cell]:
        yield Caution(
            "The controller lost its connection to a worker for a while in"
            f" {count(sum(runs for runs, _ in cuts), 'run')}. The data went on, and these runs"
            " count.",
            evidence.labels(evidence.saw),
            f"for {max(seconds for _, seconds in cuts):.3g} s at most; `cut` in records.jsonl says"
            " in which runs",
        )


def _whys(runs: Runs) -> Iterator[tuple[tuple[str, str], str]]:
    if runs.record.unverified:
        yield (runs.record.cell, runs.record.pair), runs.record.unverified


@caution(25, remedy="a sink that keeps the data (discard, a file), or verify: off", observe=_whys)
def unverified(evidence: Evidence) -> Cautions:
    """`verify` was asked for, and what arrived could not be read again."""
    if evidence.saw:
        yield Caution(
            "Whether what arrived is what was sent was not verified.",
            evidence.labels(evidence.saw),
            "; ".join(dict.fromkeys(whys[-1] for whys in evidence.saw.values())),
        )
