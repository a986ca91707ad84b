"""The hosts: facts that agree in few rows, those that differ in a row a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from netbench.base.units import listed
from netbench.facts.comparison import same
from netbench.facts.fact import CPU, KERNEL, NETWORK, STORAGE, TCP, Fact
from netbench.facts.registry import BY_NAME
from netbench.report.blocks import Block, Prose, Row, Section, Table, keyed, prose, tabled
from netbench.report.source import Source
from netbench.result.files import HostEntry

OWN = ("engine", "layout", "architecture", "cpus", "clock_ticks")
"""Kept beside the facts in facts.json."""
GROUPS = (KERNEL, CPU, NETWORK, TCP, STORAGE)
FEW = 4  # hosts that are named, of a fleet
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
VALUE = prose("value")


def environment(source: Source) -> Section | None:
    """Tables of what hosts have in common, what differs or changed, and what could not be read."""
    states = [state for host in source.result.hosts for state in _states(source, host)]
    known = {label: _known(entry) for label, entry in states}
    values: dict[str, dict[str, list[str]]] = {}  # by fact and value, where it was read
    for label, facts in known.items():
        for name, value in facts.items():
            values.setdefault(name, {}).setdefault(value, []).append(label)
    if not values:
        return None
    # It would be odd if facts agreed that vary.
    differing = [n for n, by_value in values.items() if len(by_value) > 1 and not _fact(n).varies]
    common = {n: ", ".join(by) for n, by in values.items() if n not in differing}
    blocks: list[Block] = [*_common(common, len(known) > 1)]
    every = source.with_cells or not source.result.is_fleet
    if differing and every:
        blocks.append(_apart(known, differing))
    missing = tuple(_missing(states, len(states) if every else FEW))
    blocks += [Prose(missing)] if missing else []
    blocks.append(Prose(("Facts are read before the campaign's own settings are made.",)))
    return Section("environment", "Environment", tuple(blocks))


def _known(entry: HostEntry) -> Known:
    own = {name: str(value) for name in OWN if (value := getattr(entry, name))}
    return own | {name: str(value) for name, value in entry.facts.items() if value is not None}


def _states(source: Source, host: str) -> Iterator[tuple[str, HostEntry]]:
    """The states of a host with their labels; boots of one kernel that agree are one state."""
    result = source.result
    entries = result.hosts[host]
    groups: dict[str, list[HostEntry]] = {}
    for entry in result.in_force(host):
        groups.setdefault(result.kernel_of(entry), []).append(entry)
    for kernel, group in groups.items():
        if _are_alike(group):
            yield f"{host} {kernel}".strip(), group[0]
            continue
        yield from ((_label(host, entry, entries), entry) for entry in group)


def _are_alike(group: Sequence[HostEntry]) -> bool:
    """Whether entries agree in all that no boot changes."""
    first, *others = (
        {name: value for name, value in _known(entry).items() if not _fact(name).varies}
        for entry in group
    )
    return all(
        facts.keys() == first.keys() and all(same(n, v, first[n]) for n, v in facts.items())
        for facts in others
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


def _common(values: Known, several: bool) -> Iterator[Table]:
    """A table a group, with a row for facts that belong together."""
    for group in GROUPS:
        members: dict[str, list[str]] = {}
        for name in (name for name in values if _fact(name).group == group):
            members.setdefault(_fact(name).row or name, []).append(name)
        rows: list[Row] = []
        for row, names in members.items():
            alone = names == [row] or (len(names) == 1 and not _fact(names[0]).row)
            facts = [_short(n, values[n]) if alone else f"{n} {values[n]}" for n in names]
            rows.append({**keyed("fact", row), VALUE: "; ".join(facts)})
        if rows:
            yield tabled(f"{group[0].upper()}{group[1:]}{' (all hosts)' * several}", rows)


def _short(name: str, value: str) -> str:
    """A fact as a table shows it: of the many features only those that have a setting."""
    if name != "features":
        return value
    switched, rest = [], []
    for part in value.split("; "):
        state, _, words = part.partition(": ")
        names = [name for name in words.split() if name != "none"]
        chosen = dict.fromkeys(OFFLOADS[name] for name in names if name in OFFLOADS)
        others = sum(name not in OFFLOADS for name in names)
        switched.append(f"{state}: {' '.join(chosen) or 'none of these'}")
        rest.append(f"{others} others are {state}")
    return f"{'; '.join(switched)}; {', '.join(rest)}"


def _apart(known: Mapping[str, Known], names: Sequence[str]) -> Table:
    """What differs: a row a value, with the hosts that have it."""
    rows: list[Row] = []
    marked = []
    for name in names:
        by_value: dict[str, list[str]] = {}
        for label, facts in known.items():
            by_value.setdefault(_short(name, facts.get(name, "not read")), []).append(label)
        for value, labels in by_value.items():
            marked += [len(rows)] if _fact(name).must_match else []
            rows.append({**keyed("fact host", name, ", ".join(labels)), VALUE: value})
    notes = ["† runs are pooled only while a host does not change in it."] if marked else []
    return tabled("What differs", rows, *notes, marked=marked)


def _missing(states: Sequence[tuple[str, HostEntry]], most: int) -> Iterator[str]:
    """Facts that could not be read, together where hosts and reasons agree; `most`: hosts named."""
    why: dict[tuple[str, str], list[str]] = {}
    for label, entry in states:
        for name, reason in entry.missing.items():
            why.setdefault((name, reason.rpartition(": ")[2] or reason), []).append(label)
    together: dict[tuple[str, str], list[str]] = {}
    for (name, reason), labels in why.items():
        who = "any host" if len(labels) == len(states) > 1 else listed(labels, most, ", ")
        together.setdefault((who, reason), []).append(name)
    for (who, reason), names in together.items():
        yield f"Not read on {who}: {', '.join(names)} ({reason})."
