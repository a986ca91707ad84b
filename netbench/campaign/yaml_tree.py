"""YAML text -> a located tree.

The tree is built from the parser's events rather than composed: only events tell an explicit tag
from a guessed one, and parsing can stop at a nesting bomb (YAML 1.1, https://yaml.org/spec/1.1/).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

import yaml

from netbench.base.errors import CampaignError, Problem
from netbench.campaign.tree import Listing, Loc, Node, Table, Word, describe, path_of, plain

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
BYTES_MAX = 1024 * 1024
DEPTH_MAX = 32
# Besides control characters those that hide text or turn its direction (Unicode TR 36, 2.10.2).
UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f]"
)


class TreeBuilder:
    """Builds one tree. Problems that leave a tree are gathered; others raise CampaignError."""

    def __init__(self, text: str, source: str, origin: str = "") -> None:
        self.source = source
        self.origin = origin
        self.problems: list[Problem] = []
        self._events: Iterator[Any] = yaml.parse(text, Loader=LOADER)

    def root(self) -> Node:
        """The document's root node. Errors: CampaignError for what is not one document of YAML."""
        try:
            self._next(yaml.StreamStartEvent)
            if isinstance(next(self._events), yaml.StreamEndEvent):
                return Word(None, 1)
            root = self._node(next(self._events), ())
            self._next(yaml.DocumentEndEvent)
            end = next(self._events)
            if not isinstance(end, yaml.StreamEndEvent):
                self._stop(self._line(end), (), "expected one YAML document, got a second one")
        except yaml.MarkedYAMLError as error:
            self._stop_at(error)
        except yaml.YAMLError as error:
            self._stop(0, (), f"this is not YAML: {error}")
        return root

    def _next(self, kind: type[Any]) -> None:
        event = next(self._events)
        assert isinstance(event, kind), event

    def _line(self, event: Any) -> int:
        return 0 if self.origin else event.start_mark.line + 1

    def _stop(self, line: int, loc: Loc, message: str) -> NoReturn:
        where = f" (from {self.origin})" if self.origin else ""
        raise CampaignError(
            self.source, [*self.problems, Problem(line, path_of(loc), message + where)]
        )

    def _stop_at(self, error: yaml.MarkedYAMLError) -> NoReturn:
        mark, began = error.problem_mark, error.context_mark
        if began and "simple key" in str(error.context):
            mark = began
        line = mark.line + 1 if mark else 0
        since = (
            f", which began on line {began.line + 1}"
            if began and began.line + 1 != line and not self.origin
            else ""
        )
        context = f" {error.context}{since}" if error.context else ""
        if "cannot start any token" in str(error.problem):
            context = ", such as a tab, @ or `: indent by spaces, and quote such a text"
        begin = "; `init` writes a campaign" if "<document start>" in str(error.problem) else ""
        fault = f"this is not YAML: {error.problem}{context}{begin}"
        self._stop(0 if self.origin else line, (), fault)

    def _note(self, event: Any, loc: Loc, message: str) -> None:
        where = f" (from {self.origin})" if self.origin else ""
        self.problems.append(Problem(self._line(event), path_of(loc), message + where))

    def _node(self, event: Any, loc: Loc) -> Node:
        if isinstance(event, yaml.AliasEvent):
            message = f"expected a value, got the alias *{event.anchor}; write its value instead"
            self._stop(self._line(event), loc, message)
        if len(loc) > DEPTH_MAX:
            self._stop(
                self._line(event),
                loc[:3],
                f"expected at most {DEPTH_MAX} levels of nesting, got more",
            )
        if event.tag is not None:
            self._note(event, loc, f"expected a word without a tag, got the tag {_tag(event.tag)}")
        if isinstance(event, yaml.ScalarEvent):
            nothing = not event.style and event.value in ("", "~")
            bad = UNPRINTABLE.search(event.value)
            if bad:
                self._note(
                    event, loc, f"expected text, got the control character U+{ord(bad[0]):04X}"
                )
            style = event.style if event.style in ("'", '"', "|") else '"' if event.style else ""
            return Word(None if nothing else event.value, self._line(event), self.origin, style)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._listing(event, loc)
        return self._table(event, loc)

    def _listing(self, start: Any, loc: Loc) -> Listing:
        listing = Listing([], self._line(start), self.origin, bool(start.flow_style))
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            listing.items.append(self._node(event, (*loc, len(listing.items))))
        return listing

    def _table(self, start: Any, loc: Loc) -> Table:
        table = Table({}, {}, self._line(start), self.origin, bool(start.flow_style))
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._key(event, loc)
            value = self._node(next(self._events), loc if key is None else (*loc, key))
            if key is None:
                continue
            if key in table.entries:
                first = f" on line {table.lines[key]}" if table.lines[key] else ""
                self._note(
                    event,
                    (*loc, key),
                    f"expected each key once, got {key!r} again; it is first written{first}",
                )
                continue
            table.entries[key], table.lines[key] = value, self._line(event)
        return table

    def _key(self, event: Any, loc: Loc) -> str | None:
        node = self._node(event, loc)
        if isinstance(node, Word) and node.text == "<<" and not node.style:
            self._note(event, loc, "expected a key, got the merge key <<; write each key instead")
        elif isinstance(node, Word) and node.text is not None:
            return node.text
        else:
            self._note(event, loc, f"expected a word as key, got {describe(plain(node))}")
        return None


def _tag(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")


def decode(data: bytes, source: str) -> str:
    """UTF-8 text of a file. Errors: CampaignError when it is too long or not text."""
    if len(data) > BYTES_MAX:
        raise CampaignError(source, [Problem(0, "", "expected at most 1 MiB of YAML, got more")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start]
        raise CampaignError(
            source, [Problem(line, "", f"expected UTF-8 text, got the byte 0x{byte:02x}")]
        ) from error


def refuse_unprintable(text: str, source: str) -> None:
    """Errors: CampaignError for a character that hides what a text says."""
    bad = UNPRINTABLE.search(text)
    if bad:
        line = text.count("\n", 0, bad.start()) + 1
        message = f"expected text, got the control character U+{ord(bad[0]):04X}"
        raise CampaignError(source, [Problem(line, "", message)])


def parse_tree(text: str, source: str) -> tuple[Table, list[Problem]]:
    """The tree of a campaign file, and problems that leave one. Errors: CampaignError."""
    refuse_unprintable(text, source)
    if len(text) > BYTES_MAX:
        raise CampaignError(
            source, [Problem(0, "", f"expected at most 1 MiB of YAML, got {len(text)} characters")]
        )
    builder = TreeBuilder(text.removeprefix("\ufeff"), source)
    root = builder.root()
    if not isinstance(root, Table):
        got = "an empty file" if plain(root) is None else describe(plain(root))
        message = f"expected a mapping that begins with `netbench: 1`, got {got}"
        raise CampaignError(source, [*builder.problems, Problem(root.line, "", message)])
    return root, builder.problems


def parse_value(text: str, source: str, origin: str) -> Node:
    """The tree of a value given outside a file (line 0). Errors: CampaignError with origin."""
    builder = TreeBuilder(text, source, origin)
    root = builder.root()
    if builder.problems:
        raise CampaignError(source, builder.problems)
    root.origin = origin
    return root
