"""Which cells and which pairs of hosts of two results are compared with each other, and what the
two differ in besides: facts of their hosts, and keys of their campaigns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from netbench.base.names import AS_IS
from netbench.base.units import listed
from netbench.facts import comparison
from netbench.read.compare import Place
from netbench.read.result import Result
from netbench.result.files import PlannedCell
from netbench.result.redaction import REDACTED
from netbench.stats.by_boot import KERNEL

A, B = "A", "B"
CAMPAIGN = "campaign"
NAMED = 6  # things that a note names; the rest are counted
PRIVATE = ("source", "sink", "tool")
"""Keys of transfer that may hold paths: that they differ is reported, not how."""


class Match(NamedTuple):
    """A cell of A and that of B; `context`: levels that say which, `pair`: whose they are."""

    a: Place
    b: Place
    context: Mapping[str, str]
    pair: str


class Matching(NamedTuple):
    """What is compared, and in words what was left out or had to be assumed."""

    matches: tuple[Match, ...]
    notes: tuple[str, ...]


class Difference(NamedTuple):
    """A fact that must match, or a key of the campaign, and what it is in each result."""

    where: str  # hosts, a side, or `campaign`
    what: str
    a: str
    b: str


def match(a: Result, b: Result) -> Matching:
    """Cells of two results whose factors agree.

    A factor that one result alone swept must be at the level that the other campaign wrote for it;
    where it wrote none, each of its levels is compared with the other result's one cell. A key that
    `include` gave a cell is the same in both, or written so by the other campaign.
    """
    pairs, notes = pairs_of(a, b)
    common = [name for name in a.swept if name in b.swept]
    own = {A: [n for n in a.swept if n not in common], B: [n for n in b.swept if n not in common]}
    for name, other, against in ((A, B, b), (B, A, a)):
        for factor in own[name]:
            level = _written(against, factor)
            assumed = f"{other} was run with {level}"
            if not level:
                assumed = f"{other} does not say its level: each is compared with its one cell"
            notes.append(f"{factor} was swept in {name} alone; {assumed}")
    alone_in = {*own[A], *own[B]}
    given = [n for n in dict.fromkeys((*a.factors, *b.factors)) if n not in common]

    def agree(x: PlannedCell, y: PlannedCell) -> bool:
        for n in given:
            there = [c.factors.get(n, _written(of, n)) for of, c in ((a, x), (b, y))]
            if there[0] != there[1] and not (None in there and n in alone_in):
                return False
        return True

    alike: dict[tuple[str, ...], list[PlannedCell]] = {}
    for y in b.cells:
        alike.setdefault(tuple(y.factors.get(n, "") for n in common), []).append(y)
    found = [
        (x, y)
        for x in a.cells
        for y in alike.get(tuple(x.factors.get(n, "") for n in common), ())
        if agree(x, y)
    ]
    times = [Counter(cell.cell for cell in each) for each in zip(*found, strict=True)]
    once = [
        (x, y) for x, y in found if x.cell == y.cell or min(times[0][x.cell], times[1][y.cell]) == 1
    ]
    matches: list[Match] = []
    for x, y in once:
        context = {name: x.factors.get(name, "") for name in common}
        context |= {n: x.factors[n] for n in given if n in x.factors and n not in alone_in}
        for side, cell in ((A, x), (B, y)):
            context |= {f"{side}'s {n}": cell.factors[n] for n in own[side] if n in cell.factors}
        matches += [Match((x.cell, p), (y.cell, q), context, p) for p, q in pairs]
    for at, (name, result) in enumerate(((A, a), (B, b))):
        used = {both[at].cell for both in once}
        alone = [cell.cell for cell in result.cells if cell.cell not in used]
        several = [cell for cell in alone if times and cell in times[at]]
        if several:
            notes.append(f"left out: {listed(several, NAMED)}, of which several could be meant")
        if alone := [cell for cell in alone if cell not in several]:
            notes.append(f"only in {name}: {listed(alone, NAMED)}")
    return Matching(tuple(matches), tuple(notes))


def _written(result: Result, factor: str) -> str | None:
    """The level that a campaign wrote for what it did not sweep; None where it wrote none."""
    asked = result.asked or {}
    return asked.get(f"transfer.{factor}", asked.get(f"settings.{factor}"))


def pairs_of(a: Result, b: Result) -> tuple[list[tuple[str, str]], list[str]]:
    """The pairs of hosts that are compared, those of one name, or the only ones there are; and in
    words what was left out or assumed.
    """
    of_a, of_b = (list(result.plan.pairs) for result in (a, b))
    common = [(pair, pair) for pair in of_a if pair in of_b]
    if not common and len(of_a) == len(of_b) == 1:
        note = f"the pair {of_a[0]} of {A} is compared with {of_b[0]} of {B}"
        return [(of_a[0], of_b[0])], [note]
    alone = {A: [p for p in of_a if p not in of_b], B: [p for p in of_b if p not in of_a]}
    notes = [f"only in {name}: the pairs {listed(p, NAMED)}" for name, p in alone.items() if p]
    return common, notes


def differences(a: Result, b: Result) -> list[Difference]:
    """What the two differ in: facts that must match, words of the transfer and of settings."""
    hosts_of: dict[tuple[str, str, str], list[str]] = {}
    own = set(a.handled) & set(b.handled) - {KERNEL}  # is in what their campaigns say
    for host, other in _hosts(a, b):
        one, two = _known(a, host), _known(b, other)
        label = host if host == other else f"{host} and {other}"
        for name in comparison.must_match(comparison.handled_on(host, a.plan.pairs, own)):
            if name in one and name in two and one[name] != two[name]:
                hosts_of.setdefault((name, one[name], two[name]), []).append(label)
    of_facts = [
        Difference(", ".join(hosts), name, *comparison.shortened(x, y))
        for (name, x, y), hosts in hosts_of.items()
    ]
    return [*of_facts, *_found(a, b), *_words(a, b)]


def _hosts(a: Result, b: Result) -> Collection[tuple[str, str]]:
    """Hosts of one name, or those that play one part in the pairs that are compared."""
    pairs = [(pair.split(">"), other.split(">")) for pair, other in pairs_of(a, b)[0]]
    return dict.fromkeys(ends for both in pairs for ends in zip(*both, strict=True))


def _known(result: Result, host: str) -> dict[str, str]:
    """Each fact over the runs of a host that count: one value, or all that there were."""
    values: dict[str, set[str]] = {}
    for entry in result.in_force(host):
        for name, value in entry.known.items():
            if not value.startswith(REDACTED):  # which has a meaning in one copy alone
                values.setdefault(name, set()).add(value)
    return {name: " or ".join(sorted(each)) for name, each in values.items()}


def _found(a: Result, b: Result) -> Iterator[Difference]:
    """Settings that both leave as they are, and which read otherwise."""
    reads: tuple[dict[str, set[str]], ...] = ({}, {})
    for result, of in zip((a, b), reads, strict=True):
        for r in result.readbacks:
            if r.asked == AS_IS:
                of.setdefault(f"{r.side}.{r.name}", set()).add(r.read)
    for key in (key for key in reads[0] if key in reads[1]):
        one, two = (" or ".join(sorted(of[key])) for of in reads)
        if one != two:
            side, _, name = key.partition(".")
            yield Difference(side, f"{name} {AS_IS}", one, two)


def _words(a: Result, b: Result) -> Iterator[Difference]:
    """Programs, kernels, unswept keys of transfer and settings: what campaigns write otherwise."""
    if a.asked is None or b.asked is None:
        read = ("cannot be read" if each.asked is None else "can be read" for each in (a, b))
        yield Difference(CAMPAIGN, "campaign.yaml", *read)
        return
    for key in dict.fromkeys((*a.asked, *b.asked)):
        one, two = (asked.get(key, "not written") for asked in (a.asked, b.asked))
        name = key.partition(".")[2]
        program = key.startswith(("command.", "tools.", "kernels."))
        ours = name in (*a.factors, *b.factors, KERNEL)
        if one != two and (program or not ours):
            if name in PRIVATE or program:
                one = two = "differs"
            yield Difference(CAMPAIGN, key, one, two)
