"""The matrix of two methods: Schutt's table, with intervals, marks, and what stands beside it."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import Any

import pytest

from netbench.read.shown_levels import shown
from netbench.read.totals import Total, copied_shares
from netbench.report import csv, json, text
from netbench.report.blocks import Prose, Table
from netbench.report.build import Report, build
from netbench.report.sections import cell_tables as section
from netbench.result.files import EngineRow
from tests.support.synthetic import Synth

SENDS, RECEIVES = ("readwrite", "splice", "zerocopy"), ("read", "mmap", "vmsplice")


def edited(record: dict[str, Any]) -> dict[str, Any]:
    """What a kernel copied although it should not, and what could not run."""
    factors = record["factors"]
    if factors["send"] == "zerocopy" and factors["receive"] == "read":
        record["proof"]["sender"]["copied"] = [[0], [5], [5]]
    if factors["receive"] == "vmsplice" and factors["send"] == "splice":
        return record | {"status": "unsupported", "reason": "no", "sender": None, "receiver": None}
    return record


def written(folder: Path, **more: Any) -> Report:
    factors = {"send": SENDS, "receive": RECEIVES, **more.pop("factors", {})}
    return build(
        Synth(factors=factors, runs=5, pairs=("snd>rcv",), edit=edited, **more).write(folder)
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return written(tmp_path_factory.mktemp("matrix"))


def tables(report: Report) -> list[Table]:
    return [b for b in report.section("matrix").blocks if isinstance(b, Table)]


def test_files_are_shown_by_their_paths_and_each_matrix_has_its_answer(tmp_path: Path) -> None:
    """CSV and the cells of JSON have the level as it was written."""
    sinks = ("discard", "{file: /srv/out, overwrite: on}")
    report = written(tmp_path, factors={"sink": sinks})
    assert [table.title for table in tables(report)][:2] == [
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


def row(kind: str, name: str, owner: str = "", about: str = "", *flags: str) -> EngineRow:
    return EngineRow(kind, name, owner, flags=flags, about=about)


ROWS = (
    row("send", "lends"),
    row("proof", "sends", "lends", "calls"),
    row("proof", "completions", "lends", "sends that the kernel completed", "must_move"),
    row("proof", "copied", "lends", "completions that say so", "must_not_move"),
    row("receive", "maps"),
    row("proof", "mapped_bytes", "maps", "bytes that came as pages", "must_move"),
    row("proof", "copied_bytes", "maps", "bytes that did not", ""),
    row("receive", "read"),
    row("proof", "read_calls", "read", "calls", "must_move"),
)
COUNTED: list[tuple[str, dict[str, float], float | None]] = [
    ("sender", {"sends": 9, "completions": 8, "copied": 2}, 0.25),
    ("sender", {"sends": 9, "completions": 8, "copied": 0}, 0.0),
    ("sender", {"sends": 0, "completions": 0, "copied": 0}, None),
    ("receiver", {"mapped_bytes": 300, "copied_bytes": 100}, 0.25),
    ("receiver", {"mapped_bytes": 0, "copied_bytes": 100}, 1.0),
    ("receiver", {"read_calls": 7}, None),
]


@pytest.mark.parametrize(("side", "counted", "share"), COUNTED)
def test_what_was_copied_is_a_share_of_what_a_method_counts(
    side: str, counted: dict[str, float], share: float | None
) -> None:
    totals = {("c", "p", side, name): Total(1, total) for name, total in counted.items()}
    assert copied_shares(totals, ROWS) == ({} if share is None else {("c", "p", side): share})


def test_what_was_copied_stands_in_a_matrix_of_its_own(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and columns of methods that count it; the others have none."""
    place = "send=zerocopy,receive=read", "snd>rcv", "sender"
    monkeypatch.setattr(section, "copied_shares", lambda *_: {place: 0.125})
    *_, table = (b for b in section.matrix(report.source).blocks if isinstance(b, Table))  # type: ignore[union-attr]
    assert table.title == "copied after all by the sender [%]"
    assert [column.name for column in table.columns] == ["send \\ receive", "read"]
    assert table.rows == (("zerocopy", "12.5"),)
