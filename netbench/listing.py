"""What there is to choose from, and what a report may name, as rows of `list`."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from netbench.engine.catalogue import Named
from netbench.engine.own_engine import local
from netbench.engine.worker import Worker
from netbench.model import Host
from netbench.run.worker_pool import open_channel
from netbench.settings.named import known
from netbench.settings.setting import SettingContext

Row = dict[str, object]
"""One row, as `list --json` prints it."""


def methods() -> list[Row]:
    """Every send and receive method, with the reason where one cannot run here."""
    catalogue = local()
    return [*_rows("send", catalogue.send.values()), *_rows("receive", catalogue.receive.values())]


def meters() -> list[Row]:
    """Every meter, with the reason where one cannot run here."""
    return _rows("meter", local().meters.values())


def _rows(kind: str, table: Iterable[Named]) -> list[Row]:
    return [
        _row(kind, named.name, named.row.about, named.row.why)
        | {
            "flags": sorted(named.row.flags),
            "options": [row.name for row in named.options],
            "counters": [row.name for row in named.counters],
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
            _row(
                "setting",
                name + ("NAME" if name.endswith(".") else ""),
                setting.about,
                "" if name.endswith(".") else setting.absent(context),
            )
            | {"levels": setting.levels, "cost": setting.cost}
            for name, setting in known().items()
        ]
    finally:
        worker.close()


def tools() -> list[Row]:
    """Programs that a cell may run in place of the engine, with the reason where there is none."""
    from netbench.tools.adaptors import TOOLS

    return [
        _row(
            "tool",
            name,
            " ".join((tool.__doc__ or "").split()),
            "" if shutil.which(tool.program) else f"there is no {tool.program} here",
        )
        for name, tool in TOOLS.items()
    ]


def facts() -> list[Row]:
    """What is read of each host."""
    from netbench.facts.registry import FACTS

    return [_row("fact", fact.name, fact.about) for fact in FACTS]


def metrics() -> list[Row]:
    """What is computed of each run."""
    from netbench.read.metrics import METRICS

    return [
        _row("metric", each.name, f"{each.about} ({each.unit})" if each.unit else each.about)
        | {"unit": each.unit, "formula": each.formula}
        for each in METRICS.values()
    ]


def cautions() -> list[Row]:
    """What a report may doubt, the gravest first, with what to do about it."""
    from netbench.read.cautions.rule import rules

    return [
        _row("caution", kind, rule.about) | {"remedy": rule.remedy}
        for rule in rules()
        for kind in rule.kinds or (rule.name,)
    ]


def _row(kind: str, name: str, about: str, why_not: str = "") -> Row:
    return {"kind": kind, "name": name, "about": about, "flags": [], "why_not": why_not}


def results(folder: Path) -> list[Row]:
    """Every result below a folder, newest first; `why` says what cannot be read of it."""
    from netbench.report.index import entries  # half a second, for this list alone

    return [
        {
            "name": each.overview.campaign,
            "folder": str(each.overview.folder),
            "status": each.status,
            "date": each.overview.date,
            "kernel": each.overview.kernel,
            "runs": each.overview.runs,
            "size": each.overview.size,
            "finding": each.finding,
            "why": each.why,
            "page": None if each.page is None else str(each.page),
        }
        for each in entries(folder)
    ]
