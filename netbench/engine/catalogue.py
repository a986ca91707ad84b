"""The names that an engine offers, from its descriptors: methods, meters, options, counters and
proofs.

Pure data over rows; nothing here runs the engine except `local()`, which asks the library loaded in
this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Row(NamedTuple):
    """One descriptor (struct nb_row in netbench.h). `owner` is the owning row's name, "" for none;
    `why`: why not, or "".

    kind: send receive meter op option counter proof readback. type: count size time rate flag word
    text. per: run stream cpu. `minimum` and `maximum` bound an option, in base units.
    """

    id: int
    owner_id: int
    owner: str
    kind: str
    type: str
    unit: str
    per: str
    flags: frozenset[str]
    name: str
    about: str
    words: tuple[str, ...] = ()
    why: str = ""
    minimum: int = 0
    maximum: int = 2**64 - 1


class Named(NamedTuple):
    """A method or a meter with the rows that belong to it."""

    row: Row
    options: tuple[Row, ...]
    counters: tuple[Row, ...]  # counters of a meter, proofs of a method

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def unread(self) -> dict[str, str]:
        """Why it, or one of its counters, cannot be read: by `NAME`, or `NAME.COUNTER`."""
        if self.row.why:
            return {self.name: self.row.why}
        return {f"{self.name}.{row.name}": row.why for row in self.counters if row.why}

    @property
    def accounts(self) -> bool:
        """Whether it is a meter that accounts CPU time."""
        return any(row.flags & {"cpu_time", "idle_time"} for row in self.counters)

    def has(self, flag: str) -> bool:
        """Whether the descriptor carries a flag: delivers, no_data, from_file, to_file, ..."""
        return flag in self.row.flags


class Catalogue(NamedTuple):
    """Everything one engine offers, by kind and name."""

    rows: tuple[Row, ...]
    send: Mapping[str, Named]
    receive: Mapping[str, Named]
    meters: Mapping[str, Named]
    options: Mapping[str, Row]  # options of every run
    readbacks: Mapping[str, Row]
    ops: Mapping[str, Row]

    def explaining(self, meter: str, unread: Mapping[str, str]) -> Catalogue:
        """The same, but why a meter or counter cannot be read: by `METER`, `METER.COUNTER`."""
        return Catalogue.of(
            row._replace(why=unread.get(name, ""))
            if (name := f"{row.owner}.{row.name}".lstrip(".")).partition(".")[0] == meter
            and row.kind in ("meter", "counter")
            else row
            for row in self.rows
        )

    @staticmethod
    def of(rows: Iterable[Row]) -> Catalogue:
        """Index rows by kind and name."""
        table = tuple(rows)
        owned: dict[int, list[Row]] = {}
        for row in table:
            owned.setdefault(row.owner_id, []).append(row)

        def named(kind: str) -> dict[str, Named]:
            owners: dict[str, Named] = {}
            for row in table:
                if row.kind == kind:
                    rows = owned.get(row.id, [])
                    options = tuple(r for r in rows if r.kind == "option")
                    owners[row.name] = Named(
                        row, options, tuple(r for r in rows if r.kind in ("counter", "proof"))
                    )
            return owners

        return Catalogue(
            rows=table,
            send=named("send"),
            receive=named("receive"),
            meters=named("meter"),
            options={r.name: r for r in table if r.kind == "option" and not r.owner},
            readbacks={r.name: r for r in table if r.kind == "readback"},
            ops={r.name: r for r in table if r.kind == "op"},
        )
