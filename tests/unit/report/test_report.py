"""Reports: the same numbers in every form, no line over the width, one HTML file alone."""

from __future__ import annotations

import csv as csv_module
import inspect
import io
import json as json_module
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbench.read.pivot import COPIES
from netbench.report import csv, html, json, markdown, text
from netbench.report.blocks import Column, Table, Value
from netbench.report.build import Report, build
from netbench.report.numbers import column_parts, number, parts
from netbench.stats.intervals import Interval
from netbench.tools.adaptors import TOOLS
from tests.support.paths import SAMPLE
from tests.support.synthetic import Record, Synth, failed
from tests.unit.report.test_snapshots import COMPARE, messy

CASES = {
    "one kernel": Synth(),
    "two kernels": Synth(pairs=("snd>rcv",), compare=COMPARE),
    "messy": Synth(pairs=("a>b",), edit=messy, spread=0.1, repeat={"min": 4, "max": 30}),
    "all refused": Synth(runs=1, edit=lambda record: failed(record, "refused", "no")),
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    return {
        name: build(synth.write(tmp_path_factory.mktemp("r") / "r"))
        for name, synth in CASES.items()
    }


def test_a_result_without_facts_has_a_report(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "r")
    (tmp_path / "r" / "facts.json").unlink()
    report = build(tmp_path / "r")
    for form in (text, json, html, markdown, csv):
        assert form.render(report)


def test_cells_that_lack_a_factor(tmp_path: Path) -> None:
    """`include` may add cells without a level of every factor."""
    folder = Synth(
        {"send": ("readwrite", "sendfile"), "pin": ("none", "apart")}, runs=5, compare=COMPARE
    ).write(tmp_path / "r")
    for name in ("plan.json", "records.jsonl"):
        words = (folder / name).read_text()
        (folder / name).write_text(
            re.sub(r"""("factors": ?{"send": ?"\w+"), ?"pin": ?"apart"}""", r"\1}", words)
        )
    report = build(folder)
    assert {tuple(c.factors) for c in report.source.cells} == {("send", "pin"), ("send",)}
    assert all(form.render(report) for form in (text, html, markdown, csv, json))
    assert [dict(c.context) for c in report.source.comparisons["throughput"]] == [
        {"pin": ""},
        {"pin": "none"},
    ]


def test_tools_that_send_nothing_are_not_ranked(tmp_path: Path) -> None:
    """A copy on one host is faster than any transfer."""
    copies = {name for name, tool in TOOLS.items() if "copies" in inspect.getsource(type(tool))}
    assert copies <= {*COPIES}
    made = Synth({"tool": ("none", "iperf3", "cat")})
    made.truth = lambda f: ({"none": 20.0, "iperf3": 15.0, "cat": 60.0}[f["tool"]], 0.5, 0.5)
    said = " ".join(text.render(build(made.write(tmp_path / "r"))).split())
    assert re.search(r"throughput: most 2\d\.\d+ ±[\d.]+ Gb/s with tool=none; least 1", said)
    assert "Not ranked: 1 cell of tools that copy on one host." in said


def test_csv_is_the_contracts(reports: dict[str, Report]) -> None:
    rows = list(csv_module.DictReader(io.StringIO(csv.render(reports["two kernels"]))))
    columns = "cell pair send pin metric unit n mean low high precision status"
    assert list(rows[0]) == columns.split()
    by = {(r["cell"], r["metric"]): r for r in rows}
    for cell in reports["two kernels"].source.cells:
        for name, i in cell.intervals.items():
            row = by[cell.cell, name]
            assert float(row["mean"]) == i.mean
            assert float(row["precision"]) == pytest.approx(i.precision)
            assert (row["status"], row["n"]) == (cell.status, str(i.n))
    metrics = "throughput sender_cpu sender_cpu.rusage sender_cpu.procstat system_demand"
    assert {*metrics.split()} <= {r["metric"] for r in rows}


def test_csv_says_refused_with_empty_numbers(reports: dict[str, Report]) -> None:
    rows = list(csv_module.DictReader(io.StringIO(csv.render(reports["all refused"]))))
    assert len(rows) == 4
    assert {(r["status"], r["n"], r["mean"], r["metric"]) for r in rows} == {
        ("refused", "0", "", "throughput")
    }


def rows_of(report: Report, section: str, table: int = 0) -> list[dict[str, Value]]:
    """A section's table, each row by the names of its columns."""
    found = report.section(section).blocks[table]
    assert isinstance(found, Table)
    return [dict(zip([c.name for c in found.columns], row, strict=True)) for row in found.rows]


def records_of(report: Report, cell: str) -> list[Record]:
    lines = (report.source.result.path / "records.jsonl").read_text().splitlines()
    return [r for r in map(json_module.loads, lines) if r["cell"] == cell and r["status"] == "ok"]


def moved(record: Record, side: str, group: str, name: str) -> float:
    opening, closing = record[side][group][name]
    return float(closing[0] - opening[0] if isinstance(opening, list) else closing - opening)


def spent(record: Record, side: str) -> float:
    """Seconds of a side's window."""
    opening, closing = record[side]["time_ns"]
    return float(closing - opening) / 1e9


def test_processes_are_means_of_what_rusage_counted(reports: dict[str, Report]) -> None:
    rows = rows_of(reports["messy"], "processes")
    assert len(rows) == 8
    for row in rows:
        side = str(row["side"])
        runs = records_of(reports["messy"], f"send={row['send']},pin={row['pin']}")

        def used(name: str, side: str = side, runs: list[Record] = runs) -> list[float]:
            return [moved(r, side, "rusage", name) for r in runs]

        seconds = [spent(r, side) for r in runs]
        assert row["user"] == pytest.approx(np.mean(used("user_us")) / 1e6)
        assert row["system"] == pytest.approx(np.mean(used("system_us")) / 1e6)
        assert row["elapsed"] == pytest.approx(np.mean(seconds))
        assert row["CPU"].mean == pytest.approx(np.mean(np.array(used("cpu_ns")) / 1e7 / seconds))
        assert (row["minor faults"], row["major faults"]) == (0, 0)
        assert (row["vol. switches"], row["invol. switches"]) == (89, 12)


def test_what_rusage_did_not_give_is_missing_and_not_0(tmp_path: Path) -> None:
    def tool(record: Record) -> Record:
        for name in ("voluntary_switches", "involuntary_switches"):
            del record["sender"]["rusage"][name]
        del record["receiver"]["rusage"]
        if record["run"] % 2:
            del record["sender"]["rusage"]["user_us"]
        else:
            record["sender"]["rusage"]["user_us"] = [1_000_000, 3_000_000]
        return record

    rows = rows_of(
        build(Synth({"send": ("write",)}, runs=4, edit=tool).write(tmp_path / "r")), "processes"
    )
    assert [row["side"] for row in rows] == ["sender"]
    assert rows[0]["user"] == 2  # of the runs that have it
    assert (rows[0]["vol. switches"], rows[0]["invol. switches"]) == (None, None)
    assert rows[0]["minor faults"] == 0


def test_what_moved_everywhere_or_in_some_cells_is_told_so(tmp_path: Path) -> None:
    def held(record: Record) -> Record:
        record["settings"]["moved"] = {"a>b.mtu": ["1500", "9000"]}
        if record["factors"] != {"send": "sendfile", "pin": "none"}:
            record["settings"]["moved"]["a.gro"] = ["on", "off"]
        return record

    rows = rows_of(build(Synth(runs=2, edit=held).write(tmp_path / "r")), "settings", 1)
    assert [(row["with"], row["cells"]) for row in rows] == [("some cells", 3), ("every cell", 4)]
    one_pin = {"send": ("readwrite", "sendfile"), "pin": ("none",)}

    def sent(record: Record) -> Record:
        record["settings"]["moved"] = (
            {"a.gro": ["on", "off"]} if record["factors"]["send"] == "sendfile" else {}
        )
        return record

    rows = rows_of(build(Synth(one_pin, runs=2, edit=sent).write(tmp_path / "s")), "settings", 1)
    assert [row["with"] for row in rows] == ["send=sendfile"]  # pin=none has every cell


def test_no_ssh_name_reaches_a_report(tmp_path: Path) -> None:
    folder = Synth(runs=2).write(tmp_path / "r")
    (folder / "campaign.yaml").write_text(
        "netbench: 1\nname: x\nabout: a word\nhosts: {here: {ssh: secretuser@machine}}\n"
    )
    report = build(folder)
    assert all(
        "secretuser" not in form.render(report) for form in (text, html, markdown, csv, json)
    )


@given(st.floats(1e-9, 1e9), st.floats(1e-6, 0.5))
def test_numbers_keep_their_value(mean: float, share: float) -> None:
    i = Interval(5, mean, mean * (1 - share), mean * (1 + share), mean * share, mean * share)
    shown, half = parts(i)
    digits = len(half.partition(".")[2])
    assert float(shown) == pytest.approx(mean, abs=0.51 * 10**-digits)
    assert float(half) == pytest.approx(i.half_width, abs=0.51 * 10**-digits)
    assert float(number(mean)) == pytest.approx(mean, rel=0.001)


@pytest.mark.parametrize(
    ("mean", "halves", "told"),
    [
        (1.0, (0.01, 0.013, 0.5), [("1.000", "0.010"), ("1.000", "0.013"), ("1.000", "0.500")]),
        (17.0, (0.03, 20.0, 24.0), [("17.00", "0.03"), ("17.00", "20.00"), ("17.00", "24.00")]),
        (5.0, (1e-15, 1e-16), [("5.000", "0"), ("5.000", "0")]),
    ],
)
def test_a_column_has_equally_many_digits_and_no_half_width_of_0(
    mean: float, halves: tuple[float, ...], told: list[tuple[str, str]]
) -> None:
    assert column_parts([Interval(5, mean, 0, 0, 0, half) for half in halves]) == told


def test_what_doubles_round_is_no_half_width() -> None:
    assert parts(Interval(5, 0.8, 0.8, 0.8, 3e-16, 3e-16)) == ("0.8000", "0")


names = st.text("abcdefgh._ ", min_size=1, max_size=40).map(str.strip).filter(bool)


def test_a_table_of_keys_alone_that_is_too_wide_is_folded() -> None:
    columns = tuple(Column(f"key{i}", kind="key") for i in range(9))
    lines = list(text.table_lines(Table("", columns, (("level",) * 9,)), 40))
    assert all(len(line) <= 40 for line in lines)
    assert "key8=level" in "\n".join(lines)


@given(st.data(), st.integers(40, 100))
def test_any_table_fits_any_width(data: st.DataObject, width: int) -> None:
    columns = data.draw(
        st.lists(
            st.builds(Column, names, names, st.sampled_from(["key", "value"])),
            min_size=2,
            max_size=9,
        )
    )
    cell = st.one_of(
        names.map(lambda n: n[: width // 3]), st.integers(0, 10**6), st.floats(0.001, 1e5)
    )
    rows = data.draw(st.lists(st.tuples(*[cell] * len(columns)), min_size=1, max_size=4))
    folded = [Column(c.name[:20].strip() or "x", c.unit[:8].strip(), c.kind) for c in columns]
    lines = list(text.table_lines(Table("", tuple(folded), tuple(rows)), width))
    assert max(map(len, lines)) <= width
