"""Cautions: what a reader must know before trusting a number, each with where, evidence and remedy.
Nothing is dropped or corrected.

A check is one function in CHECKS that yields Caution values.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbench.analysis.boots import ENOUGH, KERNEL, half_width, without_boots
from netbench.analysis.cells import CellResult, rows_by_cell
from netbench.analysis.epochs import BETWEEN, Epochs
from netbench.analysis.load import Loaded, Readback
from netbench.analysis.noise import disturbances
from netbench.analysis.series import ALPHA, FEWEST, drift, instabilities, outliers
from netbench.facts.comparison import change, same
from netbench.facts.entry import known_facts
from netbench.facts.registry import BY_NAME
from netbench.units import count, said_of

FEW = 5
FEW_TICKS = 10  # in a window: below, one tick more or less is over a tenth of a CPU
DRIFT_SIZE = 0.01  # of the mean, over the whole campaign: less does not matter
VARYING = (
    "boot_id",
    "uptime",
    "load",
    "temperature",
    "memory_free",
    "time",
)  # facts that differ by nature
FACTS_SAID = 4  # in a sentence; the rest are counted
OF_KERNEL = ("kernel", "command_line")  # facts that differ because kernels are swept
BUFFERS = ("send_buffer", "receive_buffer", "socket_buffer")
WISHES = (*BUFFERS, "congestion")


@dataclass(frozen=True)
class Caution:
    """`kind` is one word, `what` a sentence, `where` cells or hosts, `evidence` the numbers,
    `remedy` what to do.
    """

    kind: str
    what: str
    where: tuple[str, ...]
    evidence: str
    remedy: str


@dataclass(frozen=True)
class Evidence:
    """What checks look at."""

    loaded: Loaded
    cells: Sequence[CellResult]

    def ticks(self, host: str) -> int:
        """Clock ticks of a host in a second."""
        return next(
            (
                int(boot["clock_ticks"])
                for boot in self.loaded.hosts.get(host, ())
                if boot.get("clock_ticks")
            ),
            100,
        )

    def label(self, cell: str, pair: str) -> str:
        """A place in words: the pair is said where there are several."""
        return cell if len(self.loaded.plan["pairs"]) == 1 else f"{cell} {pair}"


def cautions(loaded: Loaded, cells: Sequence[CellResult]) -> list[Caution]:
    """All cautions, the gravest checks first."""
    seen = Evidence(loaded, cells)
    return [caution for check in CHECKS for caution in check(seen)]


def truncated(seen: Evidence) -> Iterator[Caution]:
    """The last record was cut when the controller was killed."""
    if seen.loaded.truncated:
        what = (
            "The last line of records.jsonl is cut and is left out: the controller was killed while"
            " it wrote it."
        )
        yield Caution(
            "truncated", what, (), "one run is lost", "resume the campaign: the run is repeated"
        )


def bad_runs(seen: Evidence) -> Iterator[Caution]:
    """Runs that failed, were refused, unsupported or interrupted, by reason."""
    remedies = {
        "failed": "see the reason and log.txt; repeat the campaign when its cause is gone",
        "refused": "choose a level that the host accepts, or exclude the cell",
        "unsupported": "exclude the cell, or use a host that can run it (`check` says why)",
        "interrupted": "resume the campaign",
    }
    frame = seen.loaded.runs
    bad = frame[frame["status"] != "ok"]
    bad = bad.assign(
        reason=[str(reason).partition("\n")[0] for reason in bad["reason"]]
    )  # what follows is a console's, never twice the same
    for (status, reason), group in bad.groupby(["status", "reason"], observed=True, sort=True):
        where = tuple(
            dict.fromkeys(
                seen.label(str(c), str(p))
                for c, p in zip(group["cell"], group["pair"], strict=True)
            )
        )
        what = said_of(len(group), "run", "failed" if status == "failed" else f"were {status}")
        evidence = f"of {count(len(frame), 'run')}"
        yield Caution(
            str(status),
            f"{what}: {reason or 'no reason was recorded'}.",
            where,
            evidence,
            remedies[str(status)],
        )


def not_engaged(seen: Evidence) -> Iterator[Caution]:
    """Runs whose method did not do what its name says."""
    runs = seen.loaded.ok
    marked = runs[runs["engaged"] != ""]
    alike = (
        marked["engaged"].astype(str).str.replace(r" counted \d+", " moved", regex=True)
    )  # how much differs from run to run
    for reason, group in marked.groupby(alike, sort=True):
        where = tuple(
            dict.fromkeys(
                seen.label(str(c), str(p))
                for c, p in zip(group["cell"], group["pair"], strict=True)
            )
        )
        remedy = (
            "do not read these cells as this method's cost; see `netbench check` for what the host"
            " lacks"
        )
        what = (
            f"The mechanism did not engage in {count(len(group), 'run')} ({reason}): such runs"
            " count, and their cells are marked."
        )
        yield Caution(
            "mechanism", what, where, f"{len(group)} of {count(len(runs), 'ok run')}", remedy
        )


def not_converged(seen: Evidence) -> Iterator[Caution]:
    """Cells that stopped for another reason than precision."""
    repeat = seen.loaded.repeat
    in_boots = "boots (the table of boots says what that buys)"
    more = in_boots if seen.loaded.in_boots else "max"
    for status, what, remedy in (
        (
            "unstable",
            "are not precise enough, with runs that are no independent draws",
            "find what changes during the campaign; longer runs",
        ),
        (
            "max",
            "did not reach the precision that was asked for",
            f"raise repeat.{more} or transfer.duration, or accept a wider interval",
        ),
        ("interrupted", f"have fewer than {count(repeat.min, 'run')}", "resume the campaign"),
    ):
        found = [
            c
            for c in seen.cells
            if c.status == status and (c.n or status != "interrupted" or not c.reasons)
        ]
        if repeat.max == 1:
            found = [c for c in found if status != "max"]  # one run was asked for, no precision
        if found:
            widths = [
                (c.intervals[m].precision, m)
                for c in found
                for m in repeat.metrics
                if m in c.intervals and c.intervals[m].known
            ]
            widest = max(widths, default=None)
            of = " of the ratio to the baseline" if seen.loaded.compare else ""
            evidence = (
                f"widest ±{widest[0]:.1%} ({widest[1]}), " if widest else ""
            ) + f"asked ±{repeat.precision:.1%}{of}"
            signs = "; ".join(sorted({sign for c in found for sign in c.signs})[:3])
            where = tuple(seen.label(c.cell, c.pair) for c in found)
            out_of_time = seen.loaded.ended == "limit" and status != "unstable"
            limit = ": the limit was reached" if out_of_time else ""
            said = f"{said_of(len(found), 'cell', what)}{limit}."
            advice = "raise limit, or run fewer or shorter cells" if out_of_time else remedy
            yield Caution(
                status, said, where, f"{evidence}; {signs}" if signs else evidence, advice
            )


def few_runs(seen: Evidence) -> Iterator[Caution]:
    """So few runs that an interval rests on the assumption of normal noise, or does not exist."""
    for low, high, what in (
        (1, 1, "have one run, which has no interval"),
        (2, FEW - 1, f"have fewer than {FEW} runs"),
    ):
        found = [c for c in seen.cells if low <= c.n <= high and c.unit == "run"]
        if found:
            where = tuple(seen.label(c.cell, c.pair) for c in found)
            remedy = f"raise repeat.min to {FEW} or more"
            yield Caution(
                "few",
                f"{said_of(len(found), 'cell', what)}.",
                where,
                "n is in the table of cells",
                remedy,
            )


def few_boots(seen: Evidence) -> Iterator[Caution]:
    """So few boots that next to nothing can be told of what is between them, or boots that nobody
    asked for.
    """
    loaded = seen.loaded
    if KERNEL in loaded.factors and loaded.repeat.boots == 1:
        what = (
            "Each kernel was booted once: a difference between kernels cannot be told from what any"
            " two boots differ by."
        )
        remedy = f"repeat.boots: {ENOUGH} or more; the intervals here are of that one boot of each"
        yield Caution("boots", what, (), "one boot has no interval", remedy)
    by_boots: dict[int, list[str]] = {}
    for c in seen.cells:
        if c.unit == "boot" and c.intervals:
            by_boots.setdefault(max(i.n for i in c.intervals.values()), []).append(
                seen.label(c.cell, c.pair)
            )
    for boots, places in sorted(by_boots.items()):
        noun = "1 cell was" if len(places) == 1 else f"{len(places)} cells were"
        if not loaded.in_boots:
            what = (
                f"{noun} run in {boots} boots, though nobody asked for that: their means are over"
                " boots."
            )
            yield Caution(
                "boots",
                what,
                tuple(places),
                "boot ids",
                "run it anew without a reboot, or with repeat.boots",
            )
        elif boots < ENOUGH:
            what = (
                f"{noun} run in {boots} {'boot' if boots == 1 else 'boots'}, which is too few to"
                " prove much."
            )
            width = (
                f"±{half_width(boots, loaded.repeat.confidence):.1f} deviations of a boot's mean"
            )
            evidence = (
                "one boot has no interval"
                if boots == 1
                else f"an interval over {boots} boots is {width}"
            )
            yield Caution("boots", what, tuple(places), evidence, f"repeat.boots: {ENOUGH} or more")


def campaign_drift(seen: Evidence) -> Iterator[Caution]:
    """All cells together rise or fall over the campaign: each run over its cell's mean, against the
    order of execution.
    """
    loaded = seen.loaded
    runs = loaded.ok
    for metric in (m for m in loaded.repeat.metrics if m in runs):
        means = runs.groupby(["cell", "pair"], observed=True)[metric].transform("mean")
        for pair, rows in (runs[metric] / means).groupby(runs["pair"], observed=True):
            unit = (
                "boot" if len(loaded.kernels) > 1 else "block"
            )  # blocks of one boot are no independent draws
            blocks = rows.groupby(runs[unit]).mean().dropna()
            tau, p = drift(blocks.to_numpy(dtype=float))
            if len(blocks) < FEWEST or p >= ALPHA:
                continue
            change = float(np.polyfit(np.arange(len(blocks)), blocks, 1)[0]) * (len(blocks) - 1)
            if abs(change) >= DRIFT_SIZE:
                what = (
                    f"{metric} of all cells together {'rises' if tau > 0 else 'falls'} by"
                    f" {abs(change):.1%} over the campaign."
                )
                evidence = f"{len(blocks)} {unit}s, Kendall's tau {tau:+.2f}, p {p:.1g}"
                remedy = (
                    "comparisons within blocks stand; means do not: warm the hosts up, fix clock"
                    " speed and cooling, repeat"
                )
                yield Caution("drift", what, (str(pair),), evidence, remedy)


def unsteady(seen: Evidence) -> Iterator[Caution]:
    """Converged cells whose runs still show drift, memory or two levels; and outliers, by run."""
    loaded, frame = seen.loaded, seen.loaded.runs
    ok = ((frame["status"] == "ok") & (frame["excluded"] == "")).to_numpy()
    numbers, boots = frame["run"].to_numpy(), frame["boot"].to_numpy()
    rows = rows_by_cell(frame)
    for metric in (m for m in loaded.repeat.metrics if m in frame):
        values = frame[metric].to_numpy(dtype=float)
        found: list[tuple[str, str]] = []
        for c in seen.cells:
            mine = rows.get((c.cell, c.pair), np.array([], dtype=np.int64))
            mine = mine[ok[mine] & ~np.isnan(values[mine])]
            middle = float(np.median(values[mine])) if len(mine) else 0.0
            for i in outliers(without_boots(values[mine], boots[mine])):
                off = values[mine[i]] / middle - 1 if middle else 0.0
                found.append(
                    (
                        seen.label(c.cell, c.pair),
                        f"run {numbers[mine[i]]}: {values[mine[i]]:.4g} ({off:+.1%} of the median)",
                    )
                )
        if found:
            what = (
                f"{said_of(len(found), 'run', 'lie')} far from the other runs of the cell in"
                f" {metric}; counted like all others."
            )
            evidence = "; ".join(text for _, text in found[:4]) + (
                f"; and {len(found) - 4} more" if len(found) > 4 else ""
            )
            remedy = (
                "look at what else ran then (plot of runs in order); a quieter host or longer runs"
            )
            yield Caution(
                "outlier", what, tuple(dict.fromkeys(place for place, _ in found)), evidence, remedy
            )


def signs_of_converged(seen: Evidence) -> Iterator[Caution]:
    """Signs of dependence in cells that were precise nevertheless."""
    loaded, frame = seen.loaded, seen.loaded.ok
    rows, boots = rows_by_cell(frame), frame["boot"].to_numpy()
    for metric in (m for m in loaded.repeat.metrics if m in frame):
        values = frame[metric].to_numpy(dtype=float)
        found = []
        for c in seen.cells:
            mine = (
                rows.get((c.cell, c.pair), np.array([], dtype=np.int64))
                if c.status == "converged"
                else np.array([], dtype=int)
            )
            mine = mine[~np.isnan(values[mine])]
            signs = instabilities(without_boots(values[mine], boots[mine])) if len(mine) else []
            found += [(seen.label(c.cell, c.pair), sign) for sign in signs]
        if found:
            places = tuple(dict.fromkeys(place for place, _ in found))
            what = (
                f"{metric} of {count(len(places), 'converged cell')} is not a series of independent"
                " draws."
            )
            evidence = "; ".join(f"{place} {sign}" for place, sign in found[:3]) + (
                f"; and {len(found) - 3} more" if len(found) > 3 else ""
            )
            remedy = "the interval is too narrow: longer runs or warm-up, or find what switches"
            yield Caution("dependence", what, places, evidence, remedy)


def mixed_facts(seen: Evidence) -> Iterator[Caution]:
    """Facts that changed during the campaign, or engines that differ between hosts."""
    yield from _not_pooled(seen)
    epochs = Epochs(seen.loaded.hosts, seen.loaded.handled)
    for host, boots in seen.loaded.hosts.items():
        for before, after in _consecutive(boots, seen.loaded.kernels):
            was, now = known_facts(before), known_facts(after)
            changed = [
                name
                for name in was
                if name in now
                and not same(name, was[name], now[name])
                and _is_odd(name, seen, epochs)
            ]
            if changed:
                what = (
                    f"{_listed(changed)} of {host} changed{_when(after)}; no run is left out for"
                    " that."
                )
                evidence = "; ".join(
                    change(name, was[name], now[name]) for name in changed[:FACTS_SAID]
                )
                yield Caution(
                    "facts",
                    what,
                    (host,),
                    evidence,
                    f"keep {_listed(changed)} equal, or sweep what changes it",
                )
    yield from _between_kernels(seen, epochs)
    engines = {
        host: f"{boots[-1].get('engine')} {boots[-1].get('layout')}"
        for host, boots in seen.loaded.hosts.items()
        if boots
    }
    if len(set(engines.values())) > 1:
        evidence = "; ".join(f"{host} {engine}" for host, engine in engines.items())
        yield Caution(
            "facts",
            "The hosts ran different engines.",
            tuple(engines),
            evidence,
            "deploy one engine to all hosts",
        )


def _consecutive(
    entries: Sequence[Mapping[str, Any]], kernels: Mapping[int, str]
) -> Iterator[tuple[Mapping[str, Any], ...]]:
    """Entries that follow each other on one kernel; those of boots without a run are left out where
    kernels are swept.
    """
    for kernel in dict.fromkeys(kernels.values()) or ("",):
        yield from itertools.pairwise(e for e in entries if kernel_of(e, kernels) == kernel)


def kernel_of(entry: Mapping[str, Any], kernels: Mapping[int, str]) -> str:
    """The level of `kernel` that an entry of facts.json is of; "" where kernels are not swept, or
    none of them was booted.
    """
    return (
        str(entry.get("on", kernels.get(int(entry["boot"]), ""))) if any(kernels.values()) else ""
    )


def _between_kernels(seen: Evidence, epochs: Epochs) -> Iterator[Caution]:
    """What kernels differ in beside themselves; a driver whose version is the kernel's release is
    the kernel.
    """
    for host, entries in seen.loaded.hosts.items():
        by_kernel = {kernel_of(entry, seen.loaded.kernels): known_facts(entry) for entry in entries}
        by_kernel.pop("", None)
        for (one, was), (other, now) in itertools.pairwise(by_kernel.items()):
            changed = [
                name
                for name in epochs.names
                if name in was and name in now and was[name] != now[name]
                if not name.startswith(OF_KERNEL)
                and (was[name], now[name]) != (was.get(KERNEL), now.get(KERNEL))
            ]
            if changed:
                what = (
                    f"On {host}, {one} and {other} differ in more than the kernel:"
                    f" {_listed(changed)}."
                )
                evidence = "; ".join(
                    change(name, was[name], now[name]) for name in changed[:FACTS_SAID]
                )
                remedy = (
                    "a comparison of these kernels is of all that together: hold it equal by"
                    " settings where that is not meant"
                )
                yield Caution("kernels", what, (host,), evidence, remedy)


def _is_odd(name: str, seen: Evidence, epochs: Epochs) -> bool:
    """Whether a fact should not have changed, and pooling does not depend on it."""
    swept = set(seen.loaded.factors)
    fact = BY_NAME.get(name)
    by_itself = name.startswith(VARYING) or (fact is not None and fact.varies)
    meant = (
        name in swept
        or (fact is not None and fact.setting in swept)
        or ("kernel" in swept and name.startswith(OF_KERNEL))
    )
    return not by_itself and not meant and name not in epochs.names


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:FACTS_SAID]) + (
        f" and {len(names) - FACTS_SAID} more" if len(names) > FACTS_SAID else ""
    )


def _when(entry: Mapping[str, Any]) -> str:
    return f" before run {entry['from_run']}" if "from_run" in entry else " between boots"


def _not_pooled(seen: Evidence) -> Iterator[Caution]:
    """Runs that are in no mean, since facts that must match were others when they were made."""
    frame = seen.loaded.runs
    left_out = frame[frame["excluded"] != ""]
    for (pair, why), group in left_out.groupby(["pair", "excluded"], observed=True, sort=False):
        of = int(((frame["status"] == "ok") & (frame["pair"] == pair)).sum())
        changes = str(why).split(BETWEEN)
        said = "; ".join(changes[:FACTS_SAID]) + (
            f"; and {len(changes) - FACTS_SAID} more" if len(changes) > FACTS_SAID else ""
        )
        first, last = int(group["run"].min()), int(group["run"].max())
        what = (
            f"{len(group)} of {count(of, 'ok run')} (between run {first} and run {last}) went into"
            " no mean, interval or comparison: facts that must match were others then than at the"
            " end."
        )
        hosts = tuple(dict.fromkeys(change.partition(":")[0] for change in changes))
        remedy = (
            "their records are kept: bring the facts back to what they were and resume to go on"
            " with them, or run it anew"
        )
        yield Caution("facts", what, hosts, said, remedy)


def noise(seen: Evidence) -> Iterator[Caution]:
    """What disturbed blocks, on which host: counters that moved between the readings before and
    after them.
    """
    if not seen.loaded.noise:
        return
    runs = seen.loaded.runs
    ends = runs["pair"].astype(str).str.split(">")
    for found in disturbances(seen.loaded.noise, seen.ticks):
        mine = ends.map(lambda names, hosts=found.hosts: not hosts.isdisjoint(names)) & runs[
            "block"
        ].isin(found.blocks)
        what = (
            f"{found.what}; the {said_of(int(mine.sum()), 'run', 'there are labelled, and count')}."
        )
        yield Caution("noise", what, tuple(sorted(found.hosts)), found.evidence, found.remedy)


def congestion(seen: Evidence) -> Iterator[Caution]:
    """Congestion control that makes runs depend on time (bbr), or that differs without
    being swept.
    """
    used: dict[str, set[str]] = {}
    for r in seen.loaded.readbacks:
        if r.name == "congestion" and r.side == "sender" and r.read:
            used.setdefault(r.read, set()).add(seen.label(r.cell, r.pair))
    for name in sorted(name for name in used if name.startswith("bbr")):
        what = (
            f"{name} paces by what it probed: throughput depends on when it probes, and CPU on its"
            " pacing timers."
        )
        remedy = "runs of 30 s or more, or cubic where the network is not what is tested"
        yield Caution(
            "congestion",
            what,
            tuple(sorted(used[name])),
            f"read back in {count(len(used[name]), 'cell')}",
            remedy,
        )
    if len(used) > 1 and not {"congestion", "sysctl.net.ipv4.tcp_congestion_control"} & set(
        seen.loaded.factors
    ):
        evidence = "; ".join(
            f"{name} in {count(len(places), 'cell')}" for name, places in sorted(used.items())
        )
        remedy = "set transfer.congestion, or sweep it"
        yield Caution(
            "congestion",
            "Cells ran with different congestion control, which is no factor.",
            (),
            evidence,
            remedy,
        )


def retransmits(seen: Evidence) -> Iterator[Caution]:
    """TCP sent segments again: the network, not the method, may bound the transfer."""
    runs = seen.loaded.ok
    if "retransmits" not in runs:
        return
    hit = runs[runs["retransmits"] > 0]
    if len(hit):
        where = tuple(
            dict.fromkeys(
                seen.label(str(c), str(p)) for c, p in zip(hit["cell"], hit["pair"], strict=True)
            )
        )
        total, most = int(hit["retransmits"].sum()), int(hit["retransmits"].max())
        evidence = (
            f"{count(total, 'segment')} in {len(hit)} of {count(len(runs), 'run')}, most in one run"
            f" {most}"
        )
        remedy = (
            "look for drops (`ethtool -S`, `nstat`), check flow control and ring sizes, or offer"
            " less with rate"
        )
        yield Caution("retransmits", "The sender retransmitted.", where, evidence, remedy)


def read_back(seen: Evidence) -> Iterator[Caution]:
    """What the kernel made of a transfer's wishes; socket buffers hold twice what was asked
    (socket(7)).

    A host's settings are not among them: one that reads otherwise than asked was refused, and
    nothing was run.
    """
    found: dict[tuple[str, str, str, str], set[str]] = {}
    for r in seen.loaded.readbacks:
        if r.name in WISHES and r.asked and r.read and not _as_asked(r):
            found.setdefault((r.side, r.name, r.asked, r.read), set()).add(
                seen.label(r.cell, r.pair)
            )
    for (side, name, asked, read), places in found.items():
        if name in BUFFERS:
            limit = "wmem_max" if name == "send_buffer" else "rmem_max"
            what = (
                f"The {side}'s {name} was clamped: asked {asked} bytes, which the kernel doubles,"
                f" and read {read}."
            )
            yield Caution(
                "buffers",
                what,
                tuple(sorted(places)),
                f"read {read}",
                f"raise sysctl net.core.{limit} in settings:",
            )
        else:
            what = f"The {side}'s {name} is {read}, not {asked} as asked."
            yield Caution(
                "setting",
                what,
                tuple(sorted(places)),
                f"read {read}",
                "check that the host can hold this level, and who else sets it",
            )


def _as_asked(r: Readback) -> bool:
    if r.name in BUFFERS and r.asked.isdigit() and r.read.isdigit():
        return int(r.read) == 2 * int(r.asked)
    return r.asked == r.read


def moved_along(seen: Evidence) -> Iterator[Caution]:
    """What the kernel changed together with settings: all that moved in the same cells at once."""
    places: dict[str, set[str]] = {}
    for cell, pair, what in seen.loaded.moved:
        places.setdefault(what, set()).add(seen.label(cell, pair))
    together: dict[tuple[str, ...], list[str]] = {}
    for what, where in places.items():
        together.setdefault(tuple(sorted(where)), []).append(what)
    for cells, whats in together.items():
        evidence = f"in {count(len(cells), 'cell')}; the table of what else moved has them all"
        remedy = "the difference between levels is that of all of it together"
        yield Caution(
            "moved",
            f"Something else moved with a setting: {_listed(sorted(whats))}.",
            cells,
            evidence,
            remedy,
        )


def no_throughput(seen: Evidence) -> Iterator[Caution]:
    """Runs that are ok and moved data, but whose throughput cannot be computed."""
    runs = seen.loaded.ok
    if "throughput" not in runs:
        return
    lacking = runs[runs["throughput"].isna() & (runs["steps"].isna() if "steps" in runs else True)]
    if len(lacking):
        where = tuple(
            dict.fromkeys(
                seen.label(str(c), str(p))
                for c, p in zip(lacking["cell"], lacking["pair"], strict=True)
            )
        )
        what = said_of(
            len(lacking),
            "ok run",
            "have no throughput: their counters, or a tool's words, could not be read.",
        )
        evidence = f"{len(lacking)} of {count(len(runs), 'ok run')}"
        yield Caution("missing", what, where, evidence, "see samples/ and the tool's pattern")


def page_cache(seen: Evidence) -> Iterator[Caution]:
    """The page cache was not as asked: a warm source was partly on the disk, or a cold one partly
    in memory.
    """
    found = seen.loaded.partly_cached
    if found:
        where = tuple(seen.label(cell, pair) for cell, pair in found)
        what = (
            "The source was not in the page cache (warm) or out of it (cold) as asked when runs"
            " began."
        )
        remedy = (
            "warm: a source that fits in memory; cold: a file on a disk, sent once (bytes: its"
            " size, warmup: 0s)"
        )
        yield Caution("cache", what, where, f"in {count(sum(found.values()), 'run')}", remedy)


def cut_off(seen: Evidence) -> Iterator[Caution]:
    """The management link was cut for a while during runs, which went on."""
    found = seen.loaded.cuts
    if found:
        runs = sum(number for number, _ in found.values())
        what = (
            f"The controller lost sight of a worker for a while in {count(runs, 'run')}: the data"
            " went on, and such runs count."
        )
        evidence = (
            f"for {max(longest for _, longest in found.values()):.3g} s at most; `cut` in"
            " records.jsonl says in which runs"
        )
        where = tuple(seen.label(cell, pair) for cell, pair in found)
        remedy = (
            "look at the management link to the hosts; where data shares it, compare these runs"
            " with the others"
        )
        yield Caution("cut", what, where, evidence, remedy)


def coarse(seen: Evidence) -> Iterator[Caution]:
    """Windows of few clock ticks: /proc/stat counts whole ticks, so CPU comes in steps, and may
    exceed what the machine has.
    """
    ticks = min(
        (int(boot["clock_ticks"]) for boots in seen.loaded.hosts.values() for boot in boots),
        default=100,
    )
    found = {
        place: window for place, window in seen.loaded.windows.items() if window * ticks < FEW_TICKS
    }
    if found:
        shortest = min(found.values())
        what = "The measured window is so short that CPU by procstat comes in coarse steps."
        evidence = f"{shortest * 1e3:.3g} ms are {shortest * ticks:.2g} ticks of 1/{ticks} s"
        where = tuple(seen.label(cell, pair) for cell, pair in found)
        yield Caution(
            "resolution",
            what,
            where,
            evidence,
            "longer runs, or the metrics by rusage, which counts nanoseconds",
        )


def rejected_connections(seen: Evidence) -> Iterator[Caution]:
    """Connections that did not show the run's token."""
    dropped: Mapping[str, int] = {
        cell: n for cell, n in seen.loaded.rejected_connections.items() if n
    }
    if dropped:
        evidence = f"{count(sum(dropped.values()), 'connection')} dropped"
        what = "Something else connected to the data port."
        yield Caution(
            "rejected_connections",
            what,
            tuple(dropped),
            evidence,
            "find out who scans this network; set port: to a range of its own",
        )


def emulation(seen: Evidence) -> Iterator[Caution]:
    """Hosts whose CPU is software."""
    if seen.loaded.emulated:
        what = (
            "A program emulates the CPU: what was moved, refused and counted is true; times and"
            " rates are of no machine."
        )
        remedy = (
            "use it to see that things work and what the kernel does; measure speed on hardware"
        )
        yield Caution("emulated", what, seen.loaded.emulated, "the fact `emulated`", remedy)


def one_kernel(seen: Evidence) -> Iterator[Caution]:
    """Where both ends share a kernel, no host-wide meter can tell the sides apart."""
    pairs = tuple(pair for pair, shared in seen.loaded.shared.items() if shared)
    if pairs:
        what = (
            "Sender and receiver share one kernel: sender_cpu and receiver_cpu are of processes"
            " (rusage), without softirq."
        )
        remedy = "read system_cpu for the whole cost; two hosts tell the sides apart"
        yield Caution("shared", what, pairs, "equal boot id", remedy)


CHECKS: tuple[Callable[[Evidence], Iterator[Caution]], ...] = (
    truncated,
    emulation,
    bad_runs,
    not_engaged,
    read_back,
    no_throughput,
    not_converged,
    campaign_drift,
    signs_of_converged,
    unsteady,
    few_runs,
    few_boots,
    mixed_facts,
    congestion,
    retransmits,
    noise,
    moved_along,
    page_cache,
    cut_off,
    coarse,
    rejected_connections,
    one_kernel,
)
