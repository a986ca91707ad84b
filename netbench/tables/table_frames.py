"""The tables of a result as frames. Each begins with the columns `campaign` and `result`, so that
the rows of several results can lie in one table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from netbench.base.control_characters import in_utf8
from netbench.read.cells import metric_order, tidy
from netbench.read.load import ROUND
from netbench.read.result import Result, in_one_unit
from netbench.report.label import label_of
from netbench.report.source import Source

RUN = ("run", "cell", "pair", "block", "boot")
OUTCOME = ("status", "reason", "engaged", "started", "excluded", "noise")
FACTS = ("host", "boot", "fact", "value", "why")


def result_id(result: Result) -> tuple[str, str]:
    """What tells a result from others: its campaign, and the name of its folder."""
    return result.name, in_utf8(result.path.name)


def kernels(result: Result) -> str:
    """The releases of the kernels that ran, joined by `+`."""
    releases = [
        str(entry.facts["kernel"])
        for entries in result.hosts.values()
        for entry in entries
        if entry.facts.get("kernel") is not None
    ]
    return "+".join(dict.fromkeys(releases))


def run_columns(result: Result) -> list[str]:
    """The columns of a run: RUN, ROUND where there are several pairs, factors, OUTCOME, metrics."""
    rounds = [ROUND] if ROUND in result.runs else []
    return [*RUN, *rounds, *result.factors, *OUTCOME, *metric_order(result.metrics)]


def units_of(result: Result) -> dict[str, str]:
    """The unit of each metric."""
    return {name: result.describe(name).unit for name in metric_order(result.metrics)}


def alike(sources: Sequence[Source]) -> tuple[list[Source], list[str]]:
    """Sources whose metrics have one unit each, and what was left out."""
    results, notes = in_one_unit([source.result for source in sources])
    both = zip(sources, results, strict=True)
    return [replace(source, result=result) for source, result in both], notes


def runs(source: Source) -> pd.DataFrame:
    """One row a record, whatever its status: campaign result label run cell pair block boot round
    FACTORS status reason engaged started excluded noise METRICS build control.

    `round` is there in campaigns of several pairs. `started` is UTC, without a zone. `build`: which
    build of its kernel, 0 where it has one. `control`: a comparison's baseline, a second time.
    `label`: what must stand beside the row's numbers, such as that it was emulated.
    """
    result = source.result
    parts = [result.runs.assign(control=False), result.control_runs.assign(control=True)]
    every = pd.concat([part for part in parts if len(part)] or parts[:1])
    every = every.sort_values("run", ignore_index=True)
    every["started"] = every["started"].dt.tz_localize(None)  # DuckDB needs pytz for zones
    return _named(result, every[[*run_columns(result), "build", "control"]], label_of(result))


def cells(source: Source) -> pd.DataFrame:
    """A row a metric: campaign result label cell pair FACTORS metric unit n mean low high ..."""
    result = source.result
    return _named(result, tidy(result, source.cells), label_of(result))


def facts(source: Source) -> pd.DataFrame:
    """What was read of each host: campaign result host boot fact value why. A value is text, JSON
    where it is none; `why` says why it could not be read.
    """
    frame = host_facts(source.result)
    frame["value"] = pd.Series(map(_text, frame["value"]), frame.index, object)
    return _named(source.result, frame)


def host_facts(result: Result) -> pd.DataFrame:
    """Facts as they were read: FACTS."""
    rows = [
        (host, entry.boot, name, value, entry.missing.get(name, ""))
        for host, entries in result.hosts.items()
        for entry in entries
        for name, value in {**dict.fromkeys(entry.missing), **entry.facts}.items()
    ]
    return pd.DataFrame(rows, columns=list(FACTS))


def _text(value: Any) -> str | None:
    known = None if pd.isna(value) else value  # pandas has no None among texts
    return known if known is None or isinstance(known, str) else json.dumps(known)


def _named(result: Result, frame: pd.DataFrame, label: str | None = None) -> pd.DataFrame:
    """A frame with the columns that all tables begin with."""
    campaign, name = result_id(result)
    if label is not None:
        frame.insert(0, "label", label)
    frame.insert(0, "result", name)
    frame.insert(0, "campaign", campaign)
    frame.attrs = {"units": units_of(result)}
    return frame


FRAMES: Mapping[str, Callable[[Source], pd.DataFrame]] = {
    "runs": runs,
    "cells": cells,
    "facts": facts,
}
