"""Campaigns of made-up runs: the plan orders them, the conductor's ledger closes cells by their
records, and the report is read from the folder that they leave. Nothing is transferred, and nothing
of netbench is written a second time.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from netbench import campaign
from netbench.analysis.accounts import ACCOUNTS
from netbench.analysis.intervals import Numbers
from netbench.codec import SCHEMA
from netbench.conductor.ledger import Ledger
from netbench.plan import Plan, Unit
from netbench.plan_json import plan_json
from netbench.record import Record, SideCounters
from netbench.report.source import Source

HOSTS = ("a", "b")
PAIR = ">".join(HOSTS)
TICKS = 100
SECOND = 10**9
TRUTH = 8.0
"""Gb/s: the throughput of a run whose value is 1."""
HEAD = "netbench: 1\nname: made-up\nhosts: {a: {address: 192.0.2.1}, b: {address: 192.0.2.2}}\n"
STARTED = "2026-03-01T12:00:00.000000Z"
Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Drawn:
    """What the runs of a campaign are to give: `values`, a row a cell and a column a block, are
    throughput over TRUTH. Runs may be `failed`; blocks from `reboot` on are in another boot;
    `retransmits` are those of each run.
    """

    values: Numbers
    failed: Flags | None = None
    reboot: int | None = None
    retransmits: Counts | None = None

    def boot(self, block: int) -> int:
        """The boot of a block."""
        return int(self.reboot is not None and block >= self.reboot)


@dataclass(frozen=True)
class Simulated:
    """A campaign, given by what its file says below the hosts."""

    text: str
    _folders: list[tempfile.TemporaryDirectory[str]] = field(default_factory=list, compare=False)

    @cached_property
    def plan(self) -> Plan:
        return Plan(campaign.parse(HEAD + self.text, "made-up.yaml"))

    @cached_property
    def places(self) -> Mapping[tuple[str, str], int]:
        """Of each unit its row of the values."""
        return {unit.key: row for row, unit in enumerate(self.plan.units)}

    @cached_property
    def folder(self) -> Path:
        """Where the result is written; the next one takes its place."""
        self._folders.append(tempfile.TemporaryDirectory())
        folder = Path(self._folders[0].name)
        (folder / "plan.json").write_text(json.dumps({"schema": SCHEMA, **plan_json(self.plan)}))
        return folder

    def run(self, drawn: Drawn) -> Source:
        """The campaign from its first to its last block, as the report reads it."""
        return self.reported(self.records(drawn), drawn)

    def records(self, drawn: Drawn) -> list[Record]:
        """Its records; it also ends where the drawn values do."""
        ledger = Ledger(self.plan, dict.fromkeys(HOSTS, TICKS), {PAIR: False}, ACCOUNTS)
        records: list[Record] = []
        while not ledger.finished and ledger.block < drawn.values.shape[1]:
            for unit in self.plan.wanted(ledger.block, ledger.is_open, ledger.done):
                record = self._record(len(records) + 1, unit, ledger.block, drawn)
                ledger.add(record)
                records.append(record)
            ledger.next_block()
        return records

    def _record(self, run: int, unit: Unit, block: int, drawn: Drawn) -> Record:
        row = self.places[unit.key]
        head = run, *unit.key, block, drawn.boot(block), unit.cell.factors
        control = unit.cell.control
        if drawn.failed is not None and drawn.failed[row, block]:
            return Record(*head, "failed", "connection reset", STARTED, control=control)
        moved = round(SECOND * float(drawn.values[row, block]))
        meters: dict[str, dict[str, Any]] = {"flow": {"bytes": [[0], [moved]]}}
        if drawn.retransmits is not None:
            meters["tcp"] = {"retransmits": [[0], [int(drawn.retransmits[row, block])]]}
        sender, receiver = (SideCounters(host, (0, SECOND), meters=meters) for host in HOSTS)
        return Record(*head, "ok", "", STARTED, sender, receiver, control=control)

    def reported(self, records: Iterable[Record], drawn: Drawn) -> Source:
        """The report's view of these records."""
        boots = [0] if drawn.reboot is None else [0, 1]
        entries = {host: [_entry(host, boot) for boot in boots] for host in HOSTS}
        facts = {"schema": SCHEMA, "hosts": entries}
        (self.folder / "facts.json").write_text(json.dumps(facts))
        with (self.folder / "records.jsonl").open("w") as file:
            file.writelines(f"{json.dumps(_line(record))}\n" for record in records)
        return Source.of(self.folder)


def memory() -> str | None:
    """A folder in memory, where there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _entry(host: str, boot: int) -> dict[str, Any]:
    return {
        "boot": boot,
        "boot_id": f"{host}-{boot}",
        "clock_ticks": TICKS,
        "facts": {},
    }


def _line(record: Record) -> dict[str, Any]:
    """As record.to_json, which looks at every field."""
    line: dict[str, Any] = {
        "schema": SCHEMA,
        "run": record.run,
        "cell": record.cell,
        "pair": record.pair,
        "block": record.block,
        "boot": record.boot,
        "factors": dict(record.factors),
        "status": record.status,
        "reason": record.reason,
        "started": record.started,
    }
    line |= {"control": True} if record.control else {}
    for name in ("sender", "receiver"):
        side = getattr(record, name)
        if side is not None:
            line[name] = {"host": side.host, "time_ns": list(side.time_ns), **side.meters}
            line |= {"settings": {"sender": {}, "receiver": {}, "moved": {}}}
            line |= {"proof": {"sender": {}, "receiver": {}}}
    return line
