"""Synthetic result folders, exact per docs/records.md, with known means, spreads and faults."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from netbench.result.codec import SCHEMA

Record = dict[str, Any]
HEAD: Record = {
    **{"schema": SCHEMA, "run": 1, "cell": "all", "pair": "a>b", "block": 0, "boot": 0},
    **{"factors": {}, "status": "ok", "reason": "", "started": "2026-03-01T12:00:00.000000Z"},
}
"""The keys that each record of an ok run has."""
TICKS = 100
CPUS = 4
SECOND = 10**9
SECONDS = 10.0  # of a window
BUFFERS = ("send_buffer", "receive_buffer")
HOST_SETTINGS = ("tso", "gso", "gro", "sg", "mtu")
STEPS = {
    "readwrite": (18.0, 0.80, 0.70),
    "sendfile": (33.0, 0.45, 0.90),
    "splice": (30.0, 0.55, 0.85),
    "zerocopy": (24.0, 0.70, 0.75),
}


def moves(factors: Mapping[str, str]) -> tuple[float, float, float]:
    """True mean of a cell: goodput in Gb/s, CPUs of sender and of receiver."""
    rate, out, into = STEPS.get(factors.get("send", "readwrite"), (20.0, 0.6, 0.7))
    scale = {"same": 0.55, "apart": 1.1}.get(factors.get("pin", ""), 1.0)
    scale *= {"32K": 0.8, "128K": 1.05}.get(factors.get("socket_buffer", ""), 1.0)
    return rate * scale, out, into


def row(kind: str, owner: str, name: str, unit: str, flag: str, about: str) -> dict[str, Any]:
    per = "stream" if kind == "proof" else "run"
    told = {"kind": kind, "owner": owner, "name": name, "unit": unit, "per": per}
    return told | {"flags": [flag], "about": about}


PROOFS = (
    ("sendfile", "sendfile_calls", "must_move"),
    ("splice", "splice_calls", "must_move"),
    ("readwrite", "write_calls", "must_move"),
    ("zerocopy", "copied", "must_not_move"),
    ("read", "read_calls", "must_move"),
)
ROWS: list[dict[str, Any]] = [
    row("meter", "", "rusage", "", "always", "CPU time of the worker"),
    row("meter", "", "procstat", "", "host_wide", "/proc/stat"),
    row("counter", "rusage", "cpu_ns", "ns", "cpu_time", "CPU time"),
    *(row("proof", owner, name, "calls", flag, name) for owner, name, flag in PROOFS),
]


@dataclass
class Synth:
    """What to make. `edit` may change a record, or leave it out (None); `drift`: relative, over the
    campaign. `boots`: of each level of `kernel`, in random rounds; `between`: how far they lie
    apart; `kernels`: facts of a level's. `builds`: of each level, in turns; `apart`: how far they
    lie apart.
    """

    factors: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: {"send": ("readwrite", "sendfile"), "pin": ("none", "apart")}
    )
    runs: int = 10
    repeat: Mapping[str, Any] = field(default_factory=dict)
    pairs: Sequence[str] = ("here>here",)
    compare: Mapping[str, Any] | None = None
    spread: float = 0.01
    seed: int = 7
    drift: float = 0.0
    truth: Callable[[Mapping[str, str]], tuple[float, float, float]] = moves
    edit: Callable[[Record], Record | None] | None = None
    boots: int = 1
    between: float = 0.0
    builds: int = 1
    apart: float = 0.0
    kernels: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def cells(self) -> list[dict[str, Any]]:
        crossed = (
            dict(zip(self.factors, levels, strict=True))
            for levels in itertools.product(*self.factors.values())
        )
        cells: list[dict[str, Any]] = [
            {"cell": ",".join(f"{k}={v}" for k, v in c.items()) or "all", "factors": c}
            for c in crossed
        ]
        asked = self.compare or {}
        return cells + [
            {"cell": f"{cell['cell']},control", "factors": cell["factors"], "control": True}
            for cell in cells
            if asked.get("control") and cell["factors"][asked["factor"]] == asked["baseline"]
        ]

    def hosts(self) -> list[str]:
        return sorted({host for pair in self.pairs for host in pair.split(">")})

    def booted(self) -> list[tuple[int, str]]:
        """Each boot's number, from 1 where netbench boots, and its kernel, as executed."""
        rng = np.random.default_rng(self.seed + 1)
        levels = self.factors.get("kernel", ("",))
        kernels = [str(level) for _ in range(self.boots) for level in rng.permutation(levels)]
        return list(enumerate(kernels, 1 if self.boots > 1 or "kernel" in self.factors else 0))

    def build_of(self, place: int) -> int:
        """Which build a boot has, from 1; 0 where kernels have one. place: how many boots precede."""
        round_ = place // len(self.factors.get("kernel", ("",)))
        return round_ % self.builds + 1 if self.builds > 1 else 0

    def records(self) -> Iterator[Record]:
        """All records as executed: boot by boot, and per block cells and pairs, shuffled."""
        rng = np.random.default_rng(self.seed)
        count, block, clock = 0, 0, dict.fromkeys(self.hosts(), 81_000)
        apart = np.random.default_rng(self.seed + 2)
        of_build: dict[tuple[str, int], float] = {}
        for place, (boot, kernel) in enumerate(self.booted()):
            shift = 1 + self.between * apart.standard_normal()
            if build := self.build_of(place):
                known = of_build.setdefault((kernel, build), apart.standard_normal())
                shift *= 1 + self.apart * known
            cells = [cell for cell in self.cells() if cell["factors"].get("kernel", "") == kernel]
            jobs = [(cell, pair) for cell in cells for pair in self.pairs]
            visit = place // len(self.factors.get("kernel", ("",)))
            for _ in range((visit + 1) * self.runs // self.boots - visit * self.runs // self.boots):
                for at in rng.permutation(len(jobs)):
                    count += 1
                    at_place, job = (count, block, boot), jobs[at]
                    made = self._record(at_place, *job, shift=shift, rng=rng, clock=clock)
                    kept = self.edit(made) if self.edit else made
                    if kept is not None:
                        yield kept
                block += 1

    def _record(
        self,
        place: tuple[int, int, int],
        cell: dict[str, Any],
        pair: str,
        *,
        shift: float,
        rng: np.random.Generator,
        clock: dict[str, int],
    ) -> Record:
        run, block, boot = place
        factors = cell["factors"]
        rate, *cpus = self.truth(factors)
        trend = 1 + self.drift * (block / max(self.runs - 1, 1) - 0.5)
        moved = rate * shift * trend * (1 + self.spread * rng.standard_normal())
        moved = moved * 1e9 / 8 * SECONDS
        busy = [cpu * (1 + 2 * self.spread * rng.standard_normal()) for cpu in cpus]
        names = pair.split(">")
        sides = [
            self._side(host, clock, moved, cpu, rng) for host, cpu in zip(names, busy, strict=True)
        ]
        self._procstat(sides, busy, shared=names[0] == names[1])
        apart = timedelta(seconds=11 * run, microseconds=self.seed - 7)  # of other campaigns
        started = datetime(2026, 3, 1, microsecond=123456) + apart
        return {
            **{"schema": SCHEMA, "run": run, "cell": cell["cell"], "pair": pair, "block": block},
            **{"boot": boot, "factors": factors, "status": "ok", "reason": ""},
            "started": f"{started.isoformat()}Z",
            "sender": sides[0],
            "receiver": sides[1],
            "settings": self._settings(factors),
            "proof": self._proof(factors, moved),
        } | ({"control": True} if cell.get("control") else {})

    def _side(
        self, host: str, clock: dict[str, int], moved: float, cpu: float, rng: np.random.Generator
    ) -> Record:
        opened = clock[host] = clock[host] + SECOND
        length = int(SECONDS * SECOND) + int(rng.integers(0, 90_000))
        cpu_us = int(cpu * SECONDS * 1e6)
        start = int(rng.integers(1, 10**9))
        return {
            "host": host,
            "time_ns": [opened, opened + length],
            "flow": {
                "bytes": [[1048576], [1048576 + int(moved * length / (SECONDS * SECOND))]],
                "steps": [[16], [16 + int(moved / 65536)]],
            },
            "tcp": {"retransmits": [[0], [0]], "rtt_us": [[44], [51]], "cwnd": [[10], [42]]},
            "rusage": {
                "cpu_ns": [start, start + int(cpu * length)],
                "user_us": [40, 40 + cpu_us // 12],
                "system_us": [90, 90 + cpu_us - cpu_us // 12],
                **{"minor_faults": [5, 5], "major_faults": [0, 0]},
                **{"voluntary_switches": [1, 90], "involuntary_switches": [0, 12]},
            },
        }

    def _procstat(self, sides: list[Record], busy: list[float], shared: bool) -> None:
        """Counters of the kernel: softirq time on top; on one kernel the sender's alone."""
        groups = [(sides[0], sum(busy))] if shared else list(zip(sides, busy, strict=True))
        for side, cpus in groups:
            ticks = math.ceil((cpus + 0.1) * SECONDS * TICKS)
            user, softirq = ticks // 12, ticks // 5
            parts = {"user": user, "nice": 0, "system": ticks - user - softirq, "irq": 0}
            parts["softirq"] = softirq
            idle = round(CPUS * SECONDS * TICKS) - sum(parts.values())
            side["procstat"] = {name: [1000, 1000 + n] for name, n in parts.items()} | {
                "idle": [50_000, 50_000 + max(0, idle)],
                "iowait": [10, 10],
                "steal": [0, 0],
            }

    def _settings(self, factors: Mapping[str, str]) -> Record:
        """Buffers and congestion control, and settings that are swept, of both hosts or a side."""
        size = {"32K": 32768, "64K": 65536, "128K": 131072}.get(factors.get("socket_buffer", ""))
        buffer = {"asked": size, "read": 2 * size if size else 131072}
        cubic = {"asked": "cubic", "read": "cubic"}
        sender, receiver = ({key: buffer, "congestion": cubic} for key in BUFFERS)
        found: Record = {"sender": sender, "receiver": receiver, "moved": {}}
        for key, level in factors.items():
            side, dot, name = key.partition(".")
            if dot and side in found:
                found[side][name] = {"asked": level, "read": level}
            elif key in HOST_SETTINGS or key.startswith(("sysctl.", "feature.")):
                for held in (found["sender"], found["receiver"]):
                    held[key] = {"asked": level, "read": level}
        return found

    def _proof(self, factors: Mapping[str, str], moved: float) -> Record:
        calls = int(moved / 65536)
        names = {"sendfile": "sendfile_calls", "splice": "splice_calls", "zerocopy": "copied"}
        name = names.get(factors.get("send", ""), "write_calls")
        sent = [[0], [0], [0]] if name == "copied" else [[12], [12 + calls], [13 + calls]]
        received = {"read_calls": [[90], [90 + calls], [94 + calls]]}
        return {"sender": {name: sent}, "receiver": received}

    def plan(self) -> Record:
        cells = self.cells()
        repeat: Record = {"min": self.runs, "max": self.runs, "boots": self.boots}
        repeat |= {"confidence": 0.95, "precision": 0.025, "metrics": ["throughput"]}
        order = [cell["cell"] for _ in range(self.runs) for cell in cells]
        return {
            **{"schema": SCHEMA, "name": "synthetic", "seed": self.seed, "seconds": 96.0},
            **{"pairs": list(self.pairs), "cells": cells, "order": order},
            "repeat": repeat | dict(self.repeat),
            "compare": self.compare,
            "boots": [
                {"boot": boot, "kernel": kernel, "blocks": self.runs // self.boots}
                | ({"build": build} if (build := self.build_of(place)) else {})
                for place, (boot, kernel) in enumerate(self.booted())
                if boot
            ],
            "rows": ROWS,
        }

    def facts_of(self, host: str, boot: int, kernel: str) -> Record:
        facts: dict[str, Any] = {"kernel": "6.18.1", "cpu_model": "Imaginary 3000"}
        facts |= {"clock_source": "tsc", "congestion": "cubic"}
        if kernel:
            facts |= {"kernel": f"{kernel}.99-made-up", "kernel_build": f"#1 SMP {kernel}"}
        facts |= self.kernels.get(kernel, {}) | self.facts.get(host, {})
        return {
            **{"boot": boot, "boot_id": f"{host}-{boot}", "clock_ticks": TICKS, "cpus": CPUS},
            **{"engine": "0.1.0", "layout": "9f00aa", "facts": facts},
            "missing": {"governor": "no cpufreq on this machine"},
        } | ({"on": kernel} if boot else {})

    def write(self, folder: Path) -> Path:
        """Make the folder and return it."""
        (folder / "samples").mkdir(parents=True)
        (folder / "campaign.yaml").write_text(
            "netbench: 1\nname: synthetic\nabout: Numbers that were made up, to judge the report by.\n"
        )
        (folder / "plan.json").write_text(json.dumps(self.plan()))
        hosts = {
            host: [
                self.facts_of(host, *booted)
                | ({"build": build} if (build := self.build_of(place)) else {})
                for place, booted in enumerate(self.booted())
            ]
            for host in self.hosts()
        }
        (folder / "facts.json").write_text(json.dumps({"schema": SCHEMA, "hosts": hosts}))
        (folder / "journal.jsonl").touch()
        with (folder / "records.jsonl").open("w") as out:
            for record in self.records():
                out.write(json.dumps(record, separators=(",", ":")) + "\n")
        self._samples(folder / "samples" / "000001.jsonl")
        return folder

    def _samples(self, file: Path) -> None:
        with file.open("w") as out:
            for i in range(10):
                for side in ("sender", "receiver"):
                    sample: Record = {"side": side, "ns": 81_000 + i * SECOND // 10}
                    sample |= {"flow": {"bytes": [i * 2**20]}, "tcp": {"rtt_us": [44 + i]}}
                    out.write(json.dumps(sample) + "\n")


def scaled(record: Record, factor: float) -> Record:
    """The record of a run that moved so many times as much."""
    counted = record["receiver"]["flow"]["bytes"]
    counted[1][0] = counted[0][0] + int((counted[1][0] - counted[0][0]) * factor)
    return record


def failed(record: Record, status: str, reason: str) -> Record:
    """The record of a run that did not get so far."""
    keys = "schema run cell pair block boot factors started".split()
    return {key: record[key] for key in keys} | {"status": status, "reason": reason}


def copying(record: Record) -> Record:
    """What a kernel copied although it should not, and what could not run."""
    factors = record["factors"]
    if factors["send"] == "zerocopy" and factors["receive"] == "read":
        record["proof"]["sender"]["copied"] = [[0], [5], [5]]
    if factors["receive"] == "vmsplice" and factors["send"] == "splice":
        return record | {"status": "unsupported", "reason": "no", "sender": None, "receiver": None}
    return record
