"""Comparing the facts of two hosts, boots or results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from netbench.facts.registry import BY_NAME, FACTS

_LONG = 60  # characters


SIDES = "sender", "receiver"
BY_ITSELF = "changes by itself"
"""What a fact is that has changed often: it keeps no runs apart any more."""


def handled_on(host: str, pairs: Iterable[str], handled: Iterable[str]) -> list[str]:
    """What a campaign with these pairs sets itself on a host: of either side alone, the host's."""
    ends = {end for pair in pairs for end in zip(pair.split(">"), SIDES, strict=True)}
    sides = [f"{side}." for side in SIDES if (host, side) not in ends]
    return [name for name in handled if not name.startswith(tuple(sides))]


def must_match(handled: Iterable[str] = ()) -> list[str]:
    """The facts in which pooled runs must agree, but for what the campaign itself sets."""
    names = {name.removeprefix("sender.").removeprefix("receiver.") for name in handled}
    if "kernel" in names:
        names |= {"kernel_build", "command_line"}
    if "busy_poll" in names:
        names.add("busy_read")
    paths = {name.replace(".", "/") for name in names}
    files = {p.replace("sysctl/", "/proc/sys/", 1).replace("sysfs/", "/sys/", 1) for p in paths}
    return [
        fact.name
        for fact in FACTS
        if fact.must_match
        and names.isdisjoint((fact.setting, fact.name))
        and not any(source.op == "file" and files & {*source.target} for source in fact.sources)
    ]


def differences(
    a: Mapping[str, str | None], b: Mapping[str, str | None], handled: Iterable[str] = ()
) -> list[tuple[str, str, str]]:
    """The facts that must match and do not, as (fact, in a, in b), of those that both know."""
    pairs = [(name, a.get(name), b.get(name)) for name in must_match(handled)]
    return [
        (name, one, other)
        for name, one, other in pairs
        if one is not None and other is not None and one != other
    ]


def same(name: str, one: str | None, other: str | None) -> bool:
    """Whether two values of a fact are the same to a reader. Two sizes of memory are within 1%: the
    part that the kernel reserves differs by boot.
    """
    if name != "memory" or one is None or other is None:
        return one == other
    sizes = [int(digits) for value in (one, other) if (digits := value.partition(" ")[0]).isdigit()]
    return one == other or (len(sizes) == 2 and abs(sizes[0] - sizes[1]) < max(sizes) / 100)


def change(name: str, was: str, now: str) -> str:
    """A change in words."""
    was, now = shortened(was, now)
    return f"{name} was {was}, then {now}"


def remedy(name: str) -> str:
    """How a user keeps a fact from changing with a boot: ` (hold it: settings: {mtu: VALUE})`, or
    "" where no setting does.
    """
    setting = BY_NAME[name].setting
    return f" (hold it: settings: {{{setting}: VALUE}})" if setting else ""


def shortened(one: str, other: str) -> tuple[str, str]:
    """Two values of a fact that differ. Of long values only the part between their common beginning
    and their common end is left.
    """
    if max(len(one), len(other)) <= _LONG:
        return one, other
    a, b = one.split(), other.split()
    ahead = _common(a, b)
    behind = _common(a[ahead:][::-1], b[ahead:][::-1])
    return _middle(a, ahead, behind), _middle(b, ahead, behind)


def version(release: str) -> list[tuple[int, int | str]]:
    """A key of releases in order: 6.1.9 is before 6.1.10, 6.9.0-rc7 before 6.9.0."""
    parts = re.findall(r"\d+|[^\d]+", release)
    return [
        *((1, int(part)) if part.isdecimal() else (-("rc" in part), part) for part in parts),
        (0, ""),
    ]


def _middle(words: list[str], ahead: int, behind: int) -> str:
    middle = " ".join(words[ahead : len(words) - behind]) or "without it"
    short = middle if len(middle) <= 2 * _LONG else f"{middle[: 2 * _LONG]} ..."
    return f"{'... ' if ahead else ''}{short}{' ...' if behind else ''}"


def _common(one: list[str], other: list[str]) -> int:
    """How many words two texts begin with together."""
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
