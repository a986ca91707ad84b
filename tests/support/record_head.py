"""The keys that each record of an ok run has."""

from __future__ import annotations

from typing import Any

from netbench.result.codec import SCHEMA

HEAD: dict[str, Any] = {
    "schema": SCHEMA,
    "run": 1,
    "cell": "all",
    "pair": "a>b",
    "block": 0,
    "boot": 0,
    "factors": {},
    "status": "ok",
    "reason": "",
    "started": "2026-03-01T12:00:00.000000Z",
}
