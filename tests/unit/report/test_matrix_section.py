"""The matrix of two methods: Schutt's table, with intervals, marks, and what stands beside it."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import Any

import pytest

from netbench.read.shown_levels import shown
from netbench.report import csv, json, text
from netbench.report.blocks import Prose, Table
from netbench.report.build import Report, build
from tests.support.synthetic import Synth, copying

SENDS, RECEIVES = ("readwrite", "splice", "zerocopy"), ("read", "mmap", "vmsplice")


def written(folder: Path, **more: Any) -> Report:
    factors = {"send": SENDS, "receive": RECEIVES, **more.pop("factors", {})}
    return build(
        Synth(factors=factors, runs=5, pairs=("snd>rcv",), edit=copying, **more).write(folder)
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return written(tmp_path_factory.mktemp("matrix"))


def test_files_are_shown_by_their_paths_and_each_matrix_has_its_answer(tmp_path: Path) -> None:
    """CSV and the cells of JSON have the level as it was written."""
    sinks = ("discard", "{file: /srv/out, overwrite: on}")
    report = written(tmp_path, factors={"sink": sinks})
    blocks = report.section("matrix").blocks
    assert [b.title for b in blocks if isinstance(b, Table)][:2] == [
        "throughput [Gb/s], sink=discard",
        "throughput [Gb/s], sink=/srv/out",
    ]
    plain = text.render(report, 80)
    for sink in ("discard", "/srv/out"):
        assert f"- throughput, sink={sink}: most " in plain
    assert "overwrite" not in plain
    assert all(sinks[1] in made for made in (csv.render(report), json.render(report)))
    found = loads(json.render(report))
    places = {place for caution in found["cautions"] for place in caution["where"]}
    assert places, "the copied runs are a caution"
    assert places <= {cell["cell"] for cell in found["cells"]}, "they join with the cells"


def test_cells_of_equal_shown_names_are_all_in_the_summary(tmp_path: Path) -> None:
    sinks = ("{file: /a}", "{file: /a, overwrite: on}")
    found = build(Synth(factors={"sink": sinks}, runs=5).write(tmp_path))
    (line,) = [x for x in text.render(found, 400).splitlines() if "throughput: most" in x]
    assert line.count("sink=/a") == 3, "most, overlapped by, least"


@pytest.mark.parametrize(
    ("level", "short"),
    [
        ("{file: /a b/c}", "/a b/c"),
        ("send=splice,sink={file:/a;overwrite:on},tool=none", "send=splice,sink=/a,tool=none"),
        ("{files: 60, size: 300K}", "{files: 60, size: 300K}"),
        ("{file: relative}", "{file: relative}"),
    ],
)
def test_a_level_that_names_a_file_is_its_path(level: str, short: str) -> None:
    assert shown(level) == short


def test_a_long_name_of_a_cell_is_broken_at_its_commas() -> None:
    cell = "send=readwrite,receive=vmsplice,source=/var/tmp/splice.in,sink=/var/tmp/splice.out"
    lines = list(text.block_lines(Prose((f"least 2 with {cell} (1 other).",)), 60))
    assert lines == [
        "least 2 with send=readwrite,receive=vmsplice,",
        "source=/var/tmp/splice.in,sink=/var/tmp/splice.out (1",
        "other).",
    ]
