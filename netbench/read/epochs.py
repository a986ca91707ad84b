"""Epochs: stretches of a campaign in which its hosts agree in every fact that must match. Runs of
different ones are not pooled.

One rule for the conductor's ledger and for the report. Runs are told apart for each pair, and
within it for each kernel where kernels are swept; means, intervals and the closing rule see those
of the epoch of the latest ok run alone. An earlier epoch counts again when its facts return. So all
boots of one kernel must agree in every fact, its release, build and command line among them; what
another kernel does otherwise keeps no runs apart. Where a kernel has several builds, each may have
a release and a command line of its own, and boots of one build must agree in them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from netbench.facts import comparison
from netbench.facts.comparison import handled_on
from netbench.result.files import HostEntry, Hosts
from netbench.result.record import Record

BETWEEN = " | "  # changes
KERNEL = "kernel"
OF_KERNEL = ("kernel", "command_line")  # beginnings of facts that a swept kernel brings along
Epoch = tuple[int, ...]
"""Numbers of what the hosts of a pair were like, equal where no fact that must match differs; below
0 of runs in which one changed: ~N, N that of the entry after the change.
"""
Stratum = tuple[str, str]
"""A pair, and the level of the factor `kernel` ("" where it is not swept)."""


class Epochs:
    """What hosts were like by facts.json: what an entry does not know is as in that before."""

    def __init__(self, hosts: Hosts, handled: Iterable[str], pairs: Iterable[str]) -> None:
        """handled: what the campaign sets itself; facts of these keep no runs apart."""
        own = [name for name in handled if name != KERNEL]  # within a stratum kernels are equal
        self._kernels = KERNEL in handled
        self._entries = hosts
        self.names, self._filled = dict[str, list[str]](), dict[str, list[dict[str, str]]]()
        for host, entries in hosts.items():
            varying = {n for e in entries for n, v in e.facts.items() if v == comparison.BY_ITSELF}
            names = comparison.must_match(handled_on(host, pairs, own))
            self.names[host] = [name for name in names if name not in varying]
            self._filled[host] = _filled(entries, self.names[host], self._kernels)
        self._numbers = {
            host: [known.index(entry) for entry in known] for host, known in self._filled.items()
        }
        self._from_run = {host: _from_run(entries) for host, entries in hosts.items()}

    def of(self, pair: str, run: int, boot: int) -> Epoch:
        """The epoch of a run."""
        return tuple(self._number(host, run, boot) for host in pair.split(">"))

    def _number(self, host: str, run: int, boot: int) -> int:
        """By the entry in force: the last that began by then; by boot where entries do not say with
        which run they began.
        """
        numbers = self._numbers.get(host, ())
        if len(numbers) < 2:
            return 0
        begun = self._from_run[host]
        if begun is not None:
            at = max(bisect_right(begun, run) - 1, 0)
            is_last, filled = at + 1 == len(begun), self._filled[host]
            changes = None if is_last else self._entries[host][at + 1].changed_from
            mixed = changes and changes <= run and _changes(filled[at], filled[at + 1])
            return ~(at + 1) if mixed else numbers[at]
        return numbers[
            max((i for i, e in enumerate(self._entries[host]) if e.boot <= boot), default=0)
        ]

    def not_pooled(self, pair: str, latest: Epoch, counted: Collection[Epoch]) -> str:
        """What a resumed campaign must say where facts of a pair are others than in its latest ok
        runs, those on this kernel; counted: all its epochs that have such runs.
        """
        new = tuple(self._numbers.get(host, (0,))[-1] for host in pair.split(">"))
        for host, was, now in zip(pair.split(">"), latest, new, strict=True):
            kernels = _kernels(self._entries.get(host, ()), self._kernels)
            if was != now and kernels[was] != kernels[now]:
                return ""
        changes = self.describe(pair, latest, new)
        if changes and new in counted:
            return f"{changes}, as in earlier runs: these count again, those since do not"
        return changes and (
            f"{changes}: once a new run is ok, those before it are kept but not pooled with new"
            " ones, and cells begin anew; to go on with them instead, stop now, bring this back to"
            " what it was and resume"
        )

    @cached_property
    def several(self) -> bool:
        """Whether any host was not the same all the time."""
        return any(any(numbers) for numbers in self._numbers.values())

    def describe(self, pair: str, one: Epoch, other: Epoch) -> str:
        """What was otherwise in one epoch than in the other: `snd: kernel was 6.18.0, then 6.18.1`,
        more of them with BETWEEN; "" of one with itself, but for a mixed one.
        """
        changes = dict[str, None]()
        for host, a, b in zip(pair.split(">"), one, other, strict=True):
            when = ", in these runs" if a < 0 else ""
            known = self._filled.get(host, [{}])
            found = _changes(known[~a - 1], known[~a]) if a < 0 else _changes(known[a], known[b])
            changes |= dict.fromkeys(f"{host}: {change}{when}" for change in found)
        return BETWEEN.join(changes)


def is_mixed(epoch: Epoch) -> bool:
    """Whether a fact changed within its runs: they never count."""
    return min(epoch) < 0


def stratum(record: Record) -> Stratum:
    """Within which of a campaign's runs a run is compared to others."""
    return record.pair, record.factors.get(KERNEL, "")


def _from_run(entries: Sequence[HostEntry]) -> list[int] | None:
    begun = [entry.from_run for entry in entries if entry.from_run is not None]
    return begun if len(begun) == len(entries) else None


def _kernels(entries: Sequence[HostEntry], swept: bool) -> list[tuple[object, ...]]:
    """What tells the kernel of each entry from others: the level that the host was booted onto; of
    one that netbench did not boot, what its kernel says of itself. Equal for all where kernels are
    not swept.
    """
    if not swept:
        return [()] * len(entries)
    of_facts = ("kernel", "kernel_build")
    return [
        tuple(map(entry.facts.get, of_facts)) if entry.on is None else (entry.on,)
        for entry in entries
    ]


def _filled(
    entries: Sequence[HostEntry], names: Sequence[str], swept: bool
) -> list[dict[str, str]]:
    """The facts by entry; what one does not know is as before it, and before the first that knows
    it as there.

    swept: kernels are, and what one of them does not tell is not taken from another.
    """
    if len(entries) < 2:
        return [{} for _ in entries]
    known = [entry.known for entry in entries]
    filled: list[dict[str, str]] = [{} for _ in entries]
    kernels = _kernels(entries, swept)
    for kernel in dict.fromkeys(kernels):
        places = [i for i, one in enumerate(kernels) if one == kernel]
        for name in names:
            value = next((known[i][name] for i in places if name in known[i]), None)
            for i in places:
                value = known[i].get(name, value)
                if value is not None:
                    filled[i][name] = value
    return _with_builds_alike(entries, filled) if swept else filled


def _with_builds_alike(
    entries: Sequence[HostEntry], filled: Sequence[dict[str, str]]
) -> list[dict[str, str]]:
    """The facts, those of the kernel in each build as they are in the first entry of its level; a
    driver whose version is the release is part of the kernel.
    """
    levels: dict[str | None, dict[str, str]] = {}
    builds: dict[tuple[str | None, int | None], dict[str, str]] = {}
    alike = []
    for entry, facts in zip(entries, filled, strict=True):
        level = levels.setdefault(entry.on, facts)
        own = builds.setdefault((entry.on, entry.build), facts)
        of_kernel = {
            name
            for name, value in facts.items()
            if entry.build is not None
            and value == own.get(name)
            and (name.startswith(OF_KERNEL) or value == own.get(KERNEL))
        }
        alike.append(
            {n: level.get(n, value) if n in of_kernel else value for n, value in facts.items()}
        )
    return alike


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What differs, of what both know, in words."""
    return [
        comparison.change(name, was, now[name])
        for name, was in before.items()
        if name in now and was != now[name]
    ]
