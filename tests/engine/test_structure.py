"""The structure of native/src: no circle between files, one file that changes a run's phase.

A file pair (`flow.c` and `flow.h`) is one node, named without its suffix. It depends on the pairs
whose headers it includes and on those that define the symbols that its object file needs.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from netbench.engine.build_native import CFLAGS, compiler
from tests.support.paths import ROOT

SOURCES = ROOT / "native" / "src"
PHASE_OWNER = "phase.c"
PHASE_CHANGE = re.compile(r"(->|\.)phase\s*(=[^=]|\+\+|--|[-+|&^]=)")


@dataclass(frozen=True)
class Symbols:
    """What an object file defines for others, and what it needs of them."""

    defined: frozenset[str]
    needed: frozenset[str]


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


def symbols(source: Path, text: str, folder: Path) -> Symbols:
    """Compile a text as if it were that source, and list the symbols of its object file."""
    target = folder / node(source).replace("/", "-")
    places = ["-I", str(SOURCES.parent / "include"), "-I", str(SOURCES), "-I", str(source.parent)]
    subprocess.run(
        [*compiler(), *CFLAGS, "-O0", "-g0", *places, "-x", "c", "-", "-c", "-o", str(target)],
        input=text,
        text=True,
        check=True,
    )
    listed = subprocess.run(["nm", str(target)], capture_output=True, text=True, check=True)
    entries = [line.split()[-2:] for line in listed.stdout.splitlines()]
    return Symbols(
        frozenset(name for kind, name in entries if kind.isupper() and kind != "U"),
        frozenset(name for kind, name in entries if kind == "U"),
    )


def graph(texts: Mapping[Path, str], objects: Mapping[str, Symbols]) -> dict[str, set[str]]:
    """The nodes that each node depends on."""
    edges: dict[str, set[str]] = {node(path): set() for path in texts}
    owners = {name: owner for owner, listed in objects.items() for name in listed.defined}
    for path, text in texts.items():
        edges[node(path)] |= includes(path, text) & edges.keys()
    for user, listed in objects.items():
        edges[user] |= {owners[name] for name in listed.needed if name in owners}
    return {name: others - {name} for name, others in edges.items()}


def phase_changes(texts: Mapping[Path, str]) -> dict[str, int]:
    """How often each file assigns a phase."""
    counts = {path.name: len(PHASE_CHANGE.findall(text)) for path, text in texts.items()}
    return {name: count for name, count in counts.items() if count}


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Symbols]:
    """The symbols of every node that has a C file."""
    folder = tmp_path_factory.mktemp("objects")
    sources = {path: text for path, text in files().items() if path.suffix == ".c"}
    with ThreadPoolExecutor(2) as pool:
        listed: Iterable[Symbols] = pool.map(
            lambda item: symbols(item[0], item[1], folder), sources.items()
        )
        return {node(path): one for path, one in zip(sources, listed, strict=True)}


def test_no_file_depends_on_itself_through_others(objects: dict[str, Symbols]) -> None:
    edges = graph(files(), objects)
    assert edges["serve"] >= {"wire", "ops/request"}, "both kinds of edges are seen"
    assert "methods/send_write" in edges["methods/table"]
    TopologicalSorter(edges).prepare()  # a CycleError names the circle


def test_one_file_changes_the_phase_of_a_run() -> None:
    texts = files()
    assert phase_changes(texts) == {PHASE_OWNER: 1}
    texts[SOURCES / "orders.c"] += "\trun->phase = NB_DONE;\n"
    assert phase_changes(texts) == {PHASE_OWNER: 1, "orders.c": 1}
