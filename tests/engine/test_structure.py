"""The structure of native/src: no circle between file pairs, one that changes a run's phase."""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support.hooks import objects
from tests.support.local import out
from tests.support.paths import ROOT

SOURCES = ROOT / "native" / "src"
PHASE_OWNER = "phase.c"
PHASE_CHANGE = re.compile(r"(->|\.)phase\s*(=[^=]|\+\+|--|[-+|&^]=)")


def node(path: Path) -> str:
    return str(path.relative_to(SOURCES).with_suffix(""))


def files() -> dict[Path, str]:
    """The text of each C file and header."""
    return {path: path.read_text() for path in sorted(SOURCES.rglob("*.[ch]"))}


def includes(path: Path, text: str) -> set[str]:
    """The nodes whose headers a file includes."""
    names = re.findall(r'^#include "(.+?)"', text, re.MULTILINE)
    places = [(folder / name).resolve() for name in names for folder in (path.parent, SOURCES)]
    return {node(place) for place in places if place.exists()}


def phase_changes(texts: Mapping[Path, str]) -> dict[str, int]:
    """How often each file assigns a phase."""
    counts = {path.name: len(PHASE_CHANGE.findall(text)) for path, text in texts.items()}
    return {name: count for name, count in counts.items() if count}


def test_no_file_depends_on_itself_through_others(tmp_path_factory: pytest.TempPathFactory) -> None:
    texts = files()
    edges: dict[str, set[str]] = {node(path): set() for path in texts}
    for path, text in texts.items():
        edges[node(path)] |= includes(path, text) & edges.keys()
    owners, needed = dict[str, str](), list[tuple[str, str]]()
    for source, compiled in objects(tmp_path_factory).items():
        for line in out("nm", str(compiled)).splitlines():
            *_, kind, name = line.split()
            if kind == "U":
                needed.append((node(ROOT / source), name))
            elif kind.isupper():
                owners[name] = node(ROOT / source)
    for user, name in needed:
        edges[user] |= {owners[name]} if name in owners else set()
    assert edges["serve"] >= {"wire", "ops/request"}, "both kinds of edges are seen"
    assert "methods/send_write" in edges["methods/table"]
    others = {name: needs - {name} for name, needs in edges.items()}
    TopologicalSorter(others).prepare()  # a CycleError names the circle


def test_one_file_changes_the_phase_of_a_run() -> None:
    texts = files()
    assert phase_changes(texts) == {PHASE_OWNER: 1}
    texts[SOURCES / "orders.c"] += "\trun->phase = NB_DONE;\n"
    assert phase_changes(texts) == {PHASE_OWNER: 1, "orders.c": 1}
