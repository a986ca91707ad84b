"""What there is to choose from: methods, meters, settings and results, as rows of `list`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from netbench.conductor.worker_pool import open_channel
from netbench.engine.catalogue import Named
from netbench.engine.local import local
from netbench.engine.worker import Worker
from netbench.model import Host
from netbench.settings.base import SettingContext
from netbench.settings.catalogue import known
from netbench.store import count_records

Row = dict[str, object]
"""One row, as `list --json` prints it."""


def methods() -> list[Row]:
    """Every send and receive method, with the reason where one cannot run here."""
    catalogue = local()
    return [
        *_rows("send", catalogue.send.values()),
        *_rows("receive", catalogue.receive.values()),
    ]


def meters() -> list[Row]:
    """Every meter, with the reason where one cannot run here."""
    return _rows("meter", local().meters.values())


def _rows(kind: str, table: Iterable[Named]) -> list[Row]:
    return [
        {
            "kind": kind,
            "name": named.name,
            "about": named.row.about,
            "flags": sorted(named.row.flags),
            "options": [row.name for row in named.options],
            "counters": [row.name for row in named.counters],
            "why_not": named.row.why,
        }
        for named in table
    ]


def settings() -> list[Row]:
    """Every setting, with the reason where this machine lacks it. A family of settings (a name that
    ends in a dot) has no reason.
    """
    worker = Worker(open_channel(Host("here")).start_mover(), "here")
    try:
        context = SettingContext("here", worker, "127.0.0.1")
        return [
            {
                "kind": "setting",
                "name": name + ("NAME" if name.endswith(".") else ""),
                "about": setting.about,
                "levels": setting.levels,
                "cost": setting.cost,
                "flags": [],
                "why_not": "" if name.endswith(".") else setting.absent(context),
            }
            for name, setting in known().items()
        ]
    finally:
        worker.close()


def folders(results: Path) -> list[Path]:
    """The result folders below `results`, newest first: their names begin with UTC."""
    paths = [path.parent for path in results.glob("*/*/plan.json")]
    return sorted(paths, key=lambda path: (path.name, path.parent.name), reverse=True)


def results(folder: Path) -> list[Row]:
    """Every result below a folder, newest first; `runs` is None where its records cannot be
    read.
    """
    paths = folders(folder)
    return [
        {"name": path.parent.name, "folder": str(path), "runs": count_records(path)}
        for path in paths
    ]
