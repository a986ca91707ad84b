"""The hosts: what was read of them. Facts that agree are folded into few rows; those that differ
stand side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from netbench.base.units import listed
from netbench.facts.comparison import same
from netbench.facts.fact import CPU, KERNEL, NETWORK, STORAGE, TCP, Fact
from netbench.facts.registry import BY_NAME
from netbench.model import build_name
from netbench.read.result import Result
from netbench.report.blocks import Block, Column, Prose, Section, Table, Value, keys, tabled
from netbench.report.source import Source
from netbench.result.files import HostEntry

OWN = ("engine", "layout", "architecture", "cpus", "clock_ticks")
"""Kept beside the facts in facts.json."""
GROUPS = (KERNEL, CPU, NETWORK, TCP, STORAGE)
SHORT = 20  # characters
FEW = 4  # hosts that are named, of a fleet
SIDE_BY_SIDE = 3  # hosts, and their states, that have a column each
OFFLOADS = {
    "tx-tcp-segmentation": "tso",
    "tx-generic-segmentation": "gso",
    "rx-gro": "gro",
    "rx-lro": "lro",
    "tx-scatter-gather": "sg",
    "rx-checksum": "rx_checksum",
    "tx-checksum-ip-generic": "tx_checksum",
    "tx-checksum-ipv4": "tx_checksum",
}
Known = Mapping[str, str]
FACT = Column("fact", kind="key")


def environment(source: Source) -> Section | None:
    """Tables of what all hosts have in common, what differs between hosts or changed, and what
    could not be read.
    """
    states = [
        state
        for host, entries in source.result.hosts.items()
        for state in _states(host, entries, source.result)
    ]
    known = {label: _known(entry) for label, entry in states}
    names = list(dict.fromkeys(name for facts in known.values() for name in facts))
    if not names:
        return None
    differing = [
        name
        for name in names
        if len({facts[name] for facts in known.values() if name in facts}) > 1
        and not _fact(name).varies  # it would be odd if those agreed
    ]
    blocks: list[Block] = [*_common(known, [name for name in names if name not in differing])]
    every = source.with_cells or not source.result.is_fleet
    if differing and every:
        blocks += _apart(known, differing)
    missing = tuple(_missing(states, len(states) if every else FEW))
    blocks += [Prose(missing)] if missing else []
    return Section("environment", "Environment", tuple(blocks))


def _known(entry: HostEntry) -> Known:
    own = {name: str(value) for name in OWN if (value := getattr(entry, name))}
    return own | {name: str(value) for name, value in entry.facts.items() if value is not None}


def _states(host: str, entries: Sequence[HostEntry], result: Result) -> list[tuple[str, HostEntry]]:
    """The states of a host with their labels; boots of one kernel that agree, or of one build, are
    one state.
    """
    groups: dict[str, list[HostEntry]] = {}
    kernels = result.kernels
    used = [entry for entry in entries if entry.boot in kernels or not any(kernels.values())]
    for entry in used or entries:  # what nothing ran on is in facts.json
        groups.setdefault(result.kernel_of(entry), []).append(entry)
    states: list[tuple[str, HostEntry]] = []
    for kernel, group in groups.items():
        if _are_alike(group):
            states.append((f"{host} {kernel}".strip(), group[0]))
            continue
        builds: dict[int | None, list[HostEntry]] = {}
        for entry in group:
            builds.setdefault(entry.build, []).append(entry)
        for build, mine in builds.items():
            if build and _are_alike(mine):
                states.append((f"{host} {build_name(kernel, build)}", mine[0]))
            else:
                states += [(_label(host, entry, entries), entry) for entry in mine]
    return states


def _are_alike(group: Sequence[HostEntry]) -> bool:
    """Whether entries agree in all that no boot changes."""
    steady = [
        {name: value for name, value in _known(entry).items() if not _fact(name).varies}
        for entry in group
    ]
    return all(_alike(facts, steady[0]) for facts in steady)


def _alike(one: Known, other: Known) -> bool:
    return one.keys() == other.keys() and all(
        same(name, value, other[name]) for name, value in one.items()
    )


def _label(host: str, entry: HostEntry, entries: Sequence[HostEntry]) -> str:
    """A host, and which of its states, if it had several."""
    if len(entries) == 1:
        return host
    if len({other.boot for other in entries}) == len(entries):
        return f"{host} boot {entry.boot}"
    return f"{host} from run {'?' if entry.from_run is None else entry.from_run}"


def _fact(name: str) -> Fact:
    return BY_NAME.get(name) or Fact(
        name, name, row="machine" if name in OWN else "", must_match=False
    )


def _common(known: Mapping[str, Known], names: Sequence[str]) -> list[Table]:
    """A table a group, with a row for facts that belong together."""
    value = {
        name: ", ".join(dict.fromkeys(facts[name] for facts in known.values() if name in facts))
        for name in names
    }
    tables = []
    for group in GROUPS:
        rows: dict[str, list[str]] = {}
        for name in (name for name in names if _fact(name).group == group):
            rows.setdefault(_fact(name).row or name, []).append(name)
        told = tuple((row, _folded(row, members, value)) for row, members in rows.items())
        if told:
            title = f"{group[0].upper()}{group[1:]}" + (" (all hosts)" if len(known) > 1 else "")
            tables.append(Table(title, (FACT, Column("value", kind="prose")), told))
    return tables


def _folded(row: str, members: Sequence[str], value: Known) -> str:
    if list(members) == [row] or (len(members) == 1 and not _fact(members[0]).row):
        return _short(members[0], value[members[0]])
    return "; ".join(f"{name} {value[name]}" for name in members)


def _short(name: str, value: str) -> str:
    """A fact as a table shows it: of the many features only those that have a setting."""
    if name != "features":
        return value
    switched, rest = [], []
    for part in value.split("; "):
        state, _, names = part.partition(": ")
        chosen = dict.fromkeys(
            OFFLOADS[feature] for feature in names.split() if feature in OFFLOADS
        )
        others = sum(feature not in OFFLOADS and feature != "none" for feature in names.split())
        switched.append(f"{state}: {' '.join(chosen) or 'none of these'}")
        rest.append(f"{others} others are {state}")
    return f"{'; '.join(switched)}; {', '.join(rest)}"


def _apart(known: Mapping[str, Known], names: Sequence[str]) -> list[Table]:
    """What differs: short facts with a column a host where there are few of them, others with a row
    a host.
    """
    values = {
        name: {label: _short(name, facts.get(name, "not read")) for label, facts in known.items()}
        for name in names
    }
    beside = [
        name
        for name in names
        if len(known) <= SIDE_BY_SIDE
        and all(len(value) <= SHORT for value in values[name].values())
    ]
    tables = []
    if beside:
        rows = [{FACT: name, **_by_label(values[name])} for name in beside]
        tables.append(tabled("What differs", rows, marked=_marked(beside)))
    told: list[tuple[str, ...]] = []
    for name in (name for name in names if name not in beside):
        by_value: dict[str, list[str]] = {}
        for label, value in values[name].items():
            by_value.setdefault(value, []).append(label)
        told += [(name, ", ".join(labels), value) for value, labels in by_value.items()]
    if told:
        title = "" if tables else "What differs"
        columns = (*keys("fact", "host"), Column("value", kind="prose"))
        tables.append(Table(title, columns, tuple(told), marked=_marked([n for n, *_ in told])))
    if any(table.marked for table in tables):
        note = "† runs are pooled only while a host does not change in it."
        tables[-1] = replace(tables[-1], notes=(note,))
    return tables


def _by_label(values: Known) -> dict[Column, Value]:
    return {Column(label): value for label, value in values.items()}


def _marked(names: Sequence[str]) -> frozenset[int]:
    return frozenset(i for i, name in enumerate(names) if _fact(name).must_match)


def _missing(states: Sequence[tuple[str, HostEntry]], most: int) -> list[str]:
    """Facts that could not be read, together where hosts and reasons agree; `most`: hosts that are
    named.
    """
    why: dict[tuple[str, str], list[str]] = {}
    for label, entry in states:
        for name, reason in entry.missing.items():
            why.setdefault((name, reason.rpartition(": ")[2] or reason), []).append(label)
    together: dict[tuple[str, str], list[str]] = {}
    for (name, reason), labels in why.items():
        who = "any host" if len(labels) == len(states) > 1 else listed(labels, most, ", ")
        together.setdefault((who, reason), []).append(name)
    return [
        f"Not read on {who}: {', '.join(names)} ({reason})."
        for (who, reason), names in together.items()
    ]
