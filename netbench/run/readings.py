"""What a worker's vectors say: a record's raw counters and proofs, lines of samples, read-backs.
Pure. Groups and counters follow the engine's descriptors, so their mappings are raw JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from netbench.engine.binding import Edge, Vector
from netbench.engine.catalogue import Catalogue, Row

Line = dict[str, Any]
"""A line of samples: `side`, `ns`, perhaps `edge`, and by group its counters."""
MANY = ("stream", "bucket")
Number = int | list[int] | None
"""A counter at one edge, or for each stream; None where it could not be read."""


def _value(row: Row, numbers: tuple[int | None, ...]) -> Number:
    """A counter's number, or numbers; None where one of them could not be read."""
    if not numbers or None in numbers:
        return None
    return [n for n in numbers if n is not None] if row.per in MANY else numbers[0]


def _edges(
    vectors: Iterable[Vector], kind: str, catalogue: Catalogue
) -> Iterator[tuple[Row, dict[int, Vector]]]:
    """Each row of that kind with its vectors by edge."""
    by_row: dict[int, dict[int, Vector]] = {}
    for vector in vectors:
        if catalogue.rows[vector.row].kind == kind:
            by_row.setdefault(vector.row, {})[vector.edge] = vector
    return ((catalogue.rows[row], edges) for row, edges in by_row.items())


def counters(vectors: Iterable[Vector], catalogue: Catalogue) -> dict[str, Any]:
    """`{meter: {counter: [opening, closing]}, time_ns: [opening, closing]}`; a counter that is
    missing at an edge is left out.
    """
    side: dict[str, Any] = {}
    for row, edges in _edges(vectors, "counter", catalogue):
        if beside(row) or not {Edge.OPEN, Edge.CLOSE} <= edges.keys():
            continue
        side.setdefault("time_ns", [edges[Edge.OPEN].ns, edges[Edge.CLOSE].ns])
        values = [_value(row, edges[edge].numbers) for edge in (Edge.OPEN, Edge.CLOSE)]
        if None not in values:
            side.setdefault(row.owner, {})[row.name] = values
    return side


def proofs(vectors: Iterable[Vector], catalogue: Catalogue) -> dict[str, list[Number]]:
    """`{proof: [opening, closing, drained]}`, each with one number a stream."""
    values_by_name: dict[str, list[Number]] = {}
    for row, edges in _edges(vectors, "proof", catalogue):
        values = [_value(row, edges[edge].numbers) for edge in sorted(edges)]
        if None not in values:
            values_by_name[row.name] = values
    return values_by_name


def beside(row: Row) -> bool:
    """Counters that go to samples/, not into the record: per CPU (too many), and gauges."""
    return row.per == "cpu" or "gauge" in row.flags


def edge_lines(side: str, vectors: Iterable[Vector], catalogue: Catalogue) -> Iterator[Line]:
    """Lines of samples with what `beside` names, one an edge; of an offline CPU null."""
    lines: dict[int, Line] = {}
    for row, edges in _edges(vectors, "counter", catalogue):
        for edge, vector in edges.items():
            if beside(row) and edge in (Edge.OPEN, Edge.CLOSE):
                line = lines.setdefault(
                    edge, {"side": side, "edge": Edge(edge).name.lower(), "ns": vector.ns}
                )
                line.setdefault(row.owner, {})[row.name] = list(vector.numbers)
    yield from lines.values()


def sample_lines(side: str, vectors: Iterable[Vector], catalogue: Catalogue) -> Iterator[Line]:
    """Lines of samples in time order."""
    line: Line = {}
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
    """Read-backs by name: a text, a number, or a number for each stream; of what is read before and
    after a run, both. None for what could not be read.
    """
    by_name: dict[str, Any] = {}
    for row, edges in _edges(vectors, "readback", catalogue):
        values = [
            vector.text if vector.text is not None else _value(row, vector.numbers)
            for vector in edges.values()
        ]
        both = None if None in values else tuple(values)
        by_name[row.name] = both if len(values) > 1 else values[0]
    return by_name
