"""What the kernel changes along with a setting: texts of the worker's operation `neighbours`
(native/src/ops/neighbours.c), read and compared.

A text has sections, each begun by what it is of (`file:0 FOLDER`, `link:INDEX INTERFACE`, ...); a
line of one is a space, a name, a space, and its value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby

from netbench.settings.setting import Operation

OP = "neighbours"
ALL = ("all", "")
"""The target that stands for all of a network namespace, and /proc/sys/vm."""
STATE = "state"
"""Sections of what is only read: addresses, routes, flags."""
NONE = "none"

OF = re.compile(r"[\w:]+ (?:/proc/sys/net/ipv./(?:conf|neigh)/|/sys/.*?/net/)?([^/]+)")
"""The interface of a section."""

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
    with something new.
    """
    there = {section for section, _ in after}
    links = {section for section, _ in before if section.startswith("link")}
    gone = {section.partition(" ")[2] for section in links - there}
    return {
        key: (value, after.get(key, NONE))
        for key, value in before.items()
        if after.get(key) != value and interface_of(key) not in gone
        if key[0] in there or " /s" in key[0]
    }


def interface_of(key: Key) -> str:
    """The interface that a key is of, or ""."""
    found = OF.match(key[0])
    return found[1] if found else ""


def name_of(key: Key, interface: str = "") -> str:
    """A key as users write it: a sysctl, a path below /sys, `INTERFACE.NAME`. Names of `interface`
    stand alone.
    """
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


def lost(keys: Iterable[Key]) -> list[str]:
    """Names of addresses and routes among these, which nothing brings back."""
    return [name_of(key) for key in keys if key[0].startswith(STATE)]
