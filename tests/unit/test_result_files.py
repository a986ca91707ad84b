"""plan.json, facts.json and noise.jsonl: whatever is wrong in them is an error that names the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netbench.result.codec import SCHEMA
from netbench.result.files import read_facts, read_noise, read_plan
from tests.support import damage

PLAN: dict[str, Any] = {
    "schema": SCHEMA,
    "name": "loopback",
    "seed": 7,
    "pairs": ["here>here"],
    "seconds": 96.0,
    "swept": ["send"],
    "held": {"mtu": "1500"},
    "cells": [{"cell": "send=sendfile", "factors": {"send": "sendfile"}}],
    "order": ["send=sendfile"],
    "boots": [{"boot": 1, "kernel": "6.12", "blocks": 3}],
    "repeat": {"min": 3, "max": 3, "confidence": 0.95, "precision": 0.025, "metrics": ["x"]},
    "compare": {"factor": "send", "baseline": "sendfile", "margin": None},
    "rows": [{"kind": "counter", "owner": "rusage", "name": "cpu_ns", "flags": ["cpu_time"]}],
}
ENTRY = {
    **{"boot": 0, "boot_id": "b", "clock_ticks": 100, "cpus": 2, "from_run": 1},
    "facts": {"kernel": "6.18.1", "turbo": None},
    "missing": {"turbo": "No such file or directory"},
}
FACTS: dict[str, Any] = {"schema": SCHEMA, "hosts": {"here": [ENTRY]}}
NOISE: dict[str, Any] = {
    "time": "2026-03-01T12:00:07.1Z",
    "block": 3,
    "host": "snd",
    "ns": [16, 17],
    "counters": {"Tcp.RetransSegs": [0, 741]},
    "kernel": ["snd"],
    "cpu": {"user": [1, 2]},
    "own": [113, 251],
    "gauges": {"load": [0.5, 0.9], "mhz": [[3600], [3590]]},
    "missing": {"x": "y"},
}
FILES: Mapping[str, tuple[Callable[[Path], object], dict[str, Any]]] = {
    "plan.json": (read_plan, PLAN),
    "facts.json": (read_facts, FACTS),
    "noise.jsonl": (read_noise, NOISE),
}


def written(file: Path, data: bytes) -> Path:
    file.write_bytes(data)
    return file


@pytest.mark.parametrize("name", FILES)
def test_what_docs_records_md_says_is_read(tmp_path: Path, name: str) -> None:
    read, whole = FILES[name]
    assert read(written(tmp_path / name, json.dumps(whole).encode() + b"\n"))


def check(file: Path, data: bytes) -> None:
    read, _ = FILES[file.name]
    refused = damage.refusal(lambda data, where: read(written(file, data)), data, str(file))
    assert not refused or (refused.startswith(f"{file}:") and "; " in refused)


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_damaged_is_an_error_that_names_the_file_or_is_read_still(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    check(tmp_path / name, data.draw(damage.damaged(FILES[name][1])))
