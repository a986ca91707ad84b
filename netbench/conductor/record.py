"""Vectors of a worker as a record's raw counters and as lines of samples. Pure; docs/records.md
says what becomes of what.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from netbench.engine.binding import Edge, Vector
from netbench.engine.catalogue import Catalogue, Row

Side = dict[str, Any]


def _value(row: Row, numbers: tuple[int | None, ...]) -> int | list[int] | None:
    """A counter's number, or numbers; None where one of them could not be read."""
    if not numbers or None in numbers:
        return None
    return [n for n in numbers if n is not None] if row.per == "stream" else numbers[0]


def _edges(
    vectors: Iterable[Vector], kind: str, catalogue: Catalogue
) -> dict[Row, dict[int, Vector]]:
    found: dict[Row, dict[int, Vector]] = {}
    for vector in vectors:
        row = catalogue.rows[vector.row]
        if row.kind == kind:
            found.setdefault(row, {})[vector.edge] = vector
    return found


def counters(vectors: Iterable[Vector], catalogue: Catalogue) -> Side:
    """`{meter: {counter: [opening, closing]}, time_ns: [opening, closing]}`; a counter that is
    missing at an edge is left out.
    """
    side: Side = {}
    for row, edges in _edges(vectors, "counter", catalogue).items():
        if beside(row) or not {Edge.OPEN, Edge.CLOSE} <= edges.keys():
            continue
        side.setdefault("time_ns", [edges[Edge.OPEN].ns, edges[Edge.CLOSE].ns])
        values = [_value(row, edges[edge].numbers) for edge in (Edge.OPEN, Edge.CLOSE)]
        if None not in values:
            side.setdefault(row.owner, {})[row.name] = values
    return side


def proofs(vectors: Iterable[Vector], catalogue: Catalogue) -> dict[str, Any]:
    """`{proof: [opening, closing, drained]}`, each with one number a stream."""
    found: dict[str, Any] = {}
    for row, edges in _edges(vectors, "proof", catalogue).items():
        values = [_value(row, edges[edge].numbers) for edge in sorted(edges)]
        if None not in values:
            found[row.name] = values
    return found


def beside(row: Row) -> bool:
    """Counters that go to samples/ and not into the record: per CPU (too many), and gauges (their
    difference means nothing).
    """
    return row.per == "cpu" or "gauge" in row.flags


def edge_lines(
    side: str, vectors: Iterable[Vector], catalogue: Catalogue
) -> Iterator[dict[str, Any]]:
    """Lines of samples with what `beside` names, one for each edge of the window; the number of an
    offline CPU is null.
    """
    lines: dict[int, dict[str, Any]] = {}
    for row, edges in _edges(vectors, "counter", catalogue).items():
        for edge, vector in edges.items():
            if beside(row) and edge in (Edge.OPEN, Edge.CLOSE):
                line = lines.setdefault(
                    edge, {"side": side, "edge": Edge(edge).name.lower(), "ns": vector.ns}
                )
                line.setdefault(row.owner, {})[row.name] = list(vector.numbers)
    yield from lines.values()


def sample_lines(
    side: str, vectors: Iterable[Vector], catalogue: Catalogue
) -> Iterator[dict[str, Any]]:
    """Lines of samples in time order."""
    line: dict[str, Any] = {}
    for vector in vectors:
        row = catalogue.rows[vector.row]
        if line and line["ns"] != vector.ns:
            yield line
            line = {}
        if not line:
            line = {"side": side, "ns": vector.ns}
        value = _value(row, vector.numbers)
        if value is not None:
            line.setdefault(row.owner, {})[row.name] = value
    if line:
        yield line


def readbacks(vectors: Iterable[Vector], catalogue: Catalogue) -> dict[str, Any]:
    """Read-backs by name: a text, a number, or a number for each stream."""
    found: dict[str, Any] = {}
    for vector in vectors:
        row = catalogue.rows[vector.row]
        if row.kind == "readback":
            found[row.name] = (
                vector.text if vector.text is not None else _value(row, vector.numbers)
            )
    return found


def asked_and_read(asked: Mapping[str, Any], read: Mapping[str, Any]) -> dict[str, Any]:
    """`{setting: {asked, read}}` for what the kernel has a say in."""
    return {
        name: {"asked": value, "read": read[name]} for name, value in asked.items() if name in read
    }
