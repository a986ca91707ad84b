"""What the kernel changes along with a setting: texts of the worker's operation `neighbours`
(native/src/ops/neighbours.c), read and compared.

A text has sections, each begun by what it is of (`file:0 FOLDER`, `link:INDEX INTERFACE`, ...); a
line of one is a space, a name, a space, and its value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from itertools import groupby

from netbench.settings.setting import Operation

OP = "neighbours"
ALL = ("all", "")
"""The target that stands for all of a network namespace, and /proc/sys/vm."""
STATE = "state"
"""Sections of what is only read: addresses, routes, flags."""
NONE = "none"

OF = re.compile(r"\w+(?::(\d+))? (?:/proc/sys/net/ipv./(?:conf|neigh)/|/sys/.*?/net/)?([^/]+)")
"""The index and the interface of a section."""

Key = tuple[str, str]
"""A section and a name in it."""
Values = Mapping[Key, str]
Moves = Mapping[Key, tuple[str, str]]
"""Values before and after a change."""


def parse(text: str) -> dict[Key, str]:
    """The values of a text, and "" for the name "" of each section."""
    values: dict[Key, str] = {}
    section = ""
    for line in text.split("\n"):
        if line.startswith(" ") and section:
            name, _, value = line[1:].partition(" ")
            values[section, name] = value
        elif line.strip():
            section = line
            values[section, ""] = ""
    return values


def text_of(keys: Collection[Key], values: Values | None = None) -> str:
    """Keys as `keep` and the target `only` take them; with `values`, as `neighbours` reads them."""
    lines: list[str] = []
    for section, group in groupby(keys, lambda key: key[0]):
        names = [name if values is None else f"{name} {values[section, name]}" for _, name in group]
        lines += [section, *(f" {name}" for name in names)]
    return "".join(f"{line}\n" for line in lines)


def set_by(operation: Operation, links: str) -> set[Key]:
    """What an operation itself changes; `links`: what `index` says of its target."""
    index = links.partition("\n")[0].partition(" ")[0]
    kind = f"{operation.op}:{index or 0}"
    if operation.op == "file":
        folder, _, name = operation.target[0].rpartition("/")
        return {(f"{kind} {folder}", name)}
    section = f"{kind} {operation.target[0]}"
    if operation.op == "link":
        return {(section, operation.target[1])}
    return {(section, line.split()[0]) for line in (operation.value or "").splitlines()}


def difference(before: Values, after: Values) -> dict[Key, tuple[str, str]]:
    """What is another value now, or gone; nothing of an interface that has gone. What is new came
    with something new, but for addresses, routes and flags. An interface is what has its index.
    """
    now = {(_by_index(section)[0], name): value for (section, name), value in after.items()}
    there = {section for section, _ in now}
    new = (key for key in after if key[0].startswith(STATE) and (key[0], "") in before)
    before = {**dict.fromkeys(new, NONE), **before}
    places = {key: _by_index(key[0]) for key in before}
    gone = {name for (of, _), (at, name) in places.items() if of[:4] == "link" and at not in there}
    return {
        key: (before[key], now.get((at, key[1]), NONE))
        for key, (at, interface) in places.items()
        if now.get((at, key[1])) != before[key] and interface not in gone
        if at in there or " /s" in at
    }


@cache
def _by_index(section: str) -> tuple[str, str]:
    """A section without the name of its interface where it has an index, and that name or ""."""
    match = OF.match(section)
    if not match or not int(match[1] or 0):
        return section, match[2] if match else ""
    return section[: match.start(2)] + section[match.end(2) :], match[2]


def name_of(key: Key, interface: str = "") -> str:
    """A key as users write it: a sysctl, a path below /sys, `INTERFACE.NAME`, a bare NAME."""
    (kind, _, of), name = key[0].partition(" "), key[1]
    if of.startswith("/sys/"):
        return f"{of[5:]}/{name}"
    if kind.startswith("file"):
        of = of.removeprefix("/proc/sys/").replace(".", "\0").replace("/", ".")
        return f"{of}.{name}".replace("\0", "/")
    return name if of == interface else f"{of}.{name}"


def in_words(key: Key, before: str, after: str) -> tuple[str, str]:
    """Two values as reports show them: of an offload without what was requested, and none of what
    was empty (a mask of a queue) and has gone.
    """
    if key[0].startswith("features"):
        return before.partition(" ")[0], after.partition(" ")[0]
    if after == NONE and not before.strip("0,"):
        return NONE, NONE
    return before, after


def writable(values: Collection[Key]) -> list[Key]:
    """What can be given its value again."""
    return [key for key in values if key[1] and not key[0].startswith((STATE, "qdisc"))]
