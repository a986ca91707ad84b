"""The tree of a campaign file: scalars as they were written, and the line of every node."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

Plain = str | None | list["Plain"] | dict[str, "Plain"]
"""A value as the reader of a key gets it: scalars are the words that were written."""
Loc = tuple[str | int, ...]
"""Where a value is: keys and indices from the root."""


@dataclass
class Word:
    """A scalar as it was written; `text` None: nothing was written (`key:` or `~`).

    `style` is "" for a plain word, or its quote or block mark.
    """

    text: str | None
    line: int = 0
    origin: str = ""  # what put it here when it was not the file: `--set a=b`
    style: str = ""


@dataclass
class Listing:
    """A sequence."""

    items: list[Node] = field(default_factory=list)
    line: int = 0
    origin: str = ""
    flow: bool = True


@dataclass
class Table:
    """A mapping; `lines`: of each key; `written`: how keys were that stand for several."""

    entries: dict[str, Node] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    line: int = 0
    origin: str = ""
    flow: bool = True
    written: dict[str, str] = field(default_factory=dict)


Node = Word | Listing | Table


def tables(node: Node | None) -> Iterator[Table]:
    """All mappings at a node and below it."""
    if isinstance(node, Table):
        yield node
    below = node.items if isinstance(node, Listing) else getattr(node, "entries", {}).values()
    for each in below:
        yield from tables(each)


def path_of(loc: Loc) -> str:
    """The dotted path of a place: `("sweep", "send", 2)` -> `sweep.send[2]`."""
    path = ""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def plain(node: Node) -> Plain:
    """The tree as dicts, lists and words (str, or None where nothing was written)."""
    if isinstance(node, Word):
        return node.text
    if isinstance(node, Listing):
        return [plain(item) for item in node.items]
    return {key: plain(value) for key, value in node.entries.items()}


def find(root: Node, loc: Loc) -> tuple[int, str]:
    """Line and origin of the deepest node on the way to `loc` that exists."""
    node, line, origin = root, root.line, root.origin
    for part in loc:
        if isinstance(node, Table) and isinstance(part, str) and part in node.entries:
            line, node = node.lines[part], node.entries[part]
        elif isinstance(node, Listing) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
            line = node.line
        else:
            break
        origin = node.origin or origin
    return (0, origin) if origin else (line, "")


def _way(root: Node, loc: Loc) -> Iterator[Node | None]:
    """What there is at each part of a place, from the root on."""
    node: Node | None = root
    for part in loc:
        yield node
        if isinstance(node, Table) and isinstance(part, str):
            node = node.entries.get(part)
        elif isinstance(node, Listing) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
        else:
            node = None
    yield node


def as_written(root: Node, loc: Loc) -> Loc:
    """A place with its keys as the file has them."""
    return tuple(
        holder.written.get(str(part), part) if isinstance(holder, Table) else part
        for holder, part in zip(_way(root, loc), loc, strict=False)
    )


def word_at(root: Node, loc: Loc) -> Word | None:
    """The word at a place, if there is one."""
    *_, node = _way(root, loc)
    return node if isinstance(node, Word) else None


def compact(value: Any) -> str:
    """A plain value as one word of flow YAML: `{files: 60, size: 300K}`; a word stays itself."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(k)}: {_quoted(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_quoted(v) for v in value) + "]"
    return "" if value is None else str(value)


def _quoted(value: Any) -> str:
    simple = not isinstance(value, str) or re.fullmatch(
        r"[^\s'\"\[\]{},:#&*!|>%@`?~-]([^\s'\"\[\]{},:#]|:(?=\S))*", value
    )
    return compact(value) if simple else json.dumps(value, ensure_ascii=False)


def describe(value: object) -> str:
    """What was found, in a message: a word in quotes, or what kind of thing it is."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:76]}...{text[-1]}"


def _yaml_node(node: Node) -> yaml.Node:
    if isinstance(node, Word):
        text = node.text or ""
        tag = yaml.resolver.BaseResolver.DEFAULT_SCALAR_TAG
        if not node.style:
            tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        return yaml.ScalarNode(tag, text, style=node.style or None)
    if isinstance(node, Listing):
        items = [_yaml_node(item) for item in node.items]
        return yaml.SequenceNode("tag:yaml.org,2002:seq", items, flow_style=node.flow)
    pairs = [(_yaml_node(Word(key)), _yaml_node(value)) for key, value in node.entries.items()]
    return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=node.flow)


_RESOLVER = yaml.resolver.Resolver()


def dump(root: Table) -> str:
    """The tree as YAML; words keep their spelling, so reading it again gives the same tree."""
    return str(yaml.serialize(_yaml_node(root), Dumper=DUMPER, width=10**6, allow_unicode=True))
