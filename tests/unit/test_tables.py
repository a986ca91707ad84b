"""Results as tables: what is in them is what records and frames say, whoever reads it."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from netbench import api, load
from netbench.base.errors import ReportError, RequestError
from netbench.read.cells import metric_order
from netbench.report.source import Source
from netbench.tables.database import TABLES, Database
from netbench.tables.exports import benchstat, ministat, otava
from netbench.tables.table_files import write_table
from tests.support.paths import SAMPLE
from tests.support.running import stored_records
from tests.support.synthetic import Synth

CONTROL = {"factor": "send", "baseline": "readwrite", "control": True}


FAILED = ("send=sendfile,pin=none", "b>a", 2)


def fails_once(record: dict[str, Any]) -> dict[str, Any]:
    if (record["cell"], record["pair"], record["block"]) != FAILED:
        return record
    kept = {"run", "cell", "pair", "block", "boot", "factors", "started", "schema", "control"}
    return {k: v for k, v in record.items() if k in kept} | {
        "status": "failed",
        "reason": "=cut \x1b]52;c\x07",
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result with controls, two pairs and a failed run."""
    synth = Synth(compare=CONTROL, pairs=("a>b", "b>a"), edit=fails_once)
    return synth.write(tmp_path_factory.mktemp("made") / "bulk" / "20260301T000000Z-abc123")


def tables_of(*paths: Path) -> dict[str, pd.DataFrame]:
    with Database(map(Source.of, paths)) as database:
        return {table: database.frame(table) for table in TABLES}


def same(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Equal to the last bit, whatever types carry the values."""
    assert list(found.columns) == list(expected.columns)
    for column in found:
        mine, theirs = found[column].tolist(), expected[column].tolist()
        assert [None if pd.isna(x) else x for x in mine] == [
            None if pd.isna(x) else x for x in theirs
        ], column


def test_the_table_of_runs_has_every_record_and_the_frame_s_values(made: Path) -> None:
    runs, results = tables_of(made)["runs"], load(made)
    records = stored_records(made)
    assert runs["run"].tolist() == [record["run"] for record in records]
    assert runs["control"].tolist() == [record.get("control", False) for record in records]
    assert Counter(runs["control"]).keys() == {True, False}
    assert runs["status"].tolist() == [record["status"] for record in records]
    for control, frame in ((False, results.runs), (True, results.control_runs)):
        mine = runs[runs["control"] == control].reset_index(drop=True)
        expected = frame.assign(started=frame["started"].dt.tz_localize(None))
        same(mine[list(frame.columns)], expected)
    assert set(runs["campaign"]) == {"synthetic"}
    assert set(runs["result"]) == {made.name}


def test_cells_and_facts_are_those_of_the_frames(made: Path) -> None:
    tables, results = tables_of(made), load(made)
    cells = results.cells
    same(tables["cells"][list(cells.columns)], cells)
    facts = tables["facts"]
    assert [None if pd.isna(x) else x for x in facts["value"]] == [
        None if pd.isna(value) else value if isinstance(value, str) else json.dumps(value)
        for value in results.facts["value"]
    ]


def test_rounds_are_a_column_where_pairs_have_some(made: Path, tmp_path: Path) -> None:
    def in_rounds(record: dict[str, Any]) -> dict[str, Any]:
        beside = {"round": 1 if record["pair"] == "a>b" else 2, "concurrent": []}
        return record | (beside if record["block"] else {})

    pairs = Synth(pairs=("a>b", "b>a"), edit=in_rounds).write(tmp_path / "bulk" / "R")
    runs = tables_of(made, pairs)["runs"]
    first = (runs["result"] != "R") | (runs["block"] == 0)
    assert runs.loc[first, "round"].isna().all()
    of_pair = runs.loc[~first, "pair"].map({"a>b": 1, "b>a": 2})
    assert runs.loc[~first, "round"].tolist() == of_pair.tolist()
    assert "round" not in load(made).runs


def test_samples_are_as_they_were_written(tmp_path: Path) -> None:
    """A value a stream is a row a stream; a file's counters may be its own; a value has 64 bits."""
    folder, written = Synth(runs=2).write(tmp_path / "glob[1]*" / "r"), []
    for run in range(1, 101):
        rtt, late = run / 2 if run == 3 else run, 2**64 - 1 if run > 99 else None
        tcp = {"rtt_us": [rtt, rtt]} | ({"late": [late, late]} if late else {})
        lines: list[dict[str, Any]] = [{"side": "sender", "edge": "open", "ns": 1, "tcp": tcp}]
        for s in (5, 7):
            flow = {"bytes": [s, s + 1]}
            lines.append(
                {"side": "sender", "ns": run * s, "flow": flow, "tcp": tcp, "cpu": {"n": 4}}
            )
            lines.append({"side": "receiver", "ns": run * s + 7, "flow": {"bytes": [s]}})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "samples" / f"{run:06}.jsonl").write_text(text)
        written += [("sender", run, s, s + i, rtt, late, 4) for s in (5, 7) for i in (0, 1)]
        written += [("receiver", run, s, s, None, None, None) for s in (5, 7)]
    with Database([Source.of(folder)]) as database:
        found = database.query(
            'SELECT side, run, 5 + seconds * 1e9 / run, "flow.bytes", "tcp.rtt_us", "tcp.late",'
            ' "cpu.n" FROM samples ORDER BY run, side DESC, seconds, stream'
        )
    assert found.rows == [(*each[:2], pytest.approx(each[2]), *each[3:]) for each in written]


def test_results_with_other_factors_lie_in_one_table(made: Path) -> None:
    runs = tables_of(made, SAMPLE)["runs"]
    both = {path.name: load(path) for path in (made, SAMPLE)}
    numbers = {name: len(each.runs) + len(each.control_runs) for name, each in both.items()}
    assert Counter(runs["result"]) == numbers
    assert runs[runs["result"] == made.name]["chunk"].isna().all()
    assert runs[runs["result"] == SAMPLE.name]["chunk"].notna().all()


def test_a_notebook_gets_a_table_as_pandas_or_arrow(made: Path) -> None:
    results = load(made)
    frame, table = results.table("runs"), results.table("runs", arrow=True)
    assert isinstance(table, pa.Table)
    assert table.column("throughput").to_pylist() == [
        None if pd.isna(x) else x for x in frame["throughput"]
    ]
    with pytest.raises(ReportError, match="tables: runs, cells, facts, samples"):
        results.table("run")


def test_parquet_holds_the_table_and_its_units(made: Path, tmp_path: Path) -> None:
    for table, expected in tables_of(made).items():
        file = tmp_path / f"{table}.parquet"
        assert write_table([made], table, file) == []
        read = pyarrow.parquet.read_table(file)
        same(read.to_pandas(), expected)
        units = json.loads((read.schema.metadata or {})[b"netbench.base.units"])
        assert units["throughput"] == "Gb/s"
        assert units.keys() == set(metric_order(load(made).source.result.metrics))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{table}.parquet" for table in TABLES
    )


def test_csv_holds_the_table_and_no_formula(made: Path, tmp_path: Path) -> None:
    write_table([made], "runs", tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    expected = tables_of(made)["runs"]
    assert [row["throughput"] for row in rows] == [
        "" if pd.isna(x) else repr(x) for x in expected["throughput"]
    ]
    assert {row["reason"] for row in rows} == {"", "'=cut \ufffd]52;c\ufffd"}


def test_benchstat_s_lines_hold_each_run_that_counts(made: Path) -> None:
    result = load(made).source.result
    lines = list(benchstat([result]))
    assert "Unit throughput:Gb/s assume=nothing better=higher" in lines
    assert f"# synthetic/{made.name}, Linux 6.18.1" in lines
    assert not any(line.startswith("result:") for line in lines)
    assert f"result: {made.name}" in benchstat([result, load(SAMPLE).source.result])
    runs = [line.split() for line in lines if line.startswith("Benchmark")]
    assert Counter(words[0] for words in runs) == {
        f"BenchmarkRun/send={send}/pin={pin}/pair={pair}": 10 - (place == FAILED[:2])
        for send in ("readwrite", "sendfile")
        for pin in ("none", "apart")
        for pair in ("a>b", "b>a")
        for place in [(f"send={send},pin={pin}", pair)]
    }
    throughput = [float(words[words.index("throughput:Gb/s") - 1]) for words in runs]
    assert throughput == result.ok["throughput"].tolist()


def test_ministat_s_files_hold_each_value(made: Path, tmp_path: Path) -> None:
    results = load(made)
    files = dict(ministat([results.source.result]))
    name = "throughput/send=sendfile,pin=none,a_b.txt"
    assert name in files
    head, *values = files[name].splitlines()
    assert head.startswith("# ")
    runs = results.runs.query("send == 'sendfile' and pin == 'none' and pair == 'a>b'")
    assert list(map(float, values)) == runs["throughput"].dropna().tolist()
    several = dict(ministat([results.source.result, load(SAMPLE).source.result]))
    assert len(several) == len(files) + len(dict(ministat([load(SAMPLE).source.result])))


def test_levels_that_other_programs_name_alike_are_told_apart(tmp_path: Path) -> None:
    levels = ("a b", "a_b", "a%20b", "a!b", "a_b-2")
    made = load(Synth(factors={"word": levels}).write(tmp_path / "alike")).source.result
    keys = {line.split()[0] for line in benchstat([made]) if line.startswith("Benchmark")}
    files = [name for name, _ in ministat([made]) if name.startswith("throughput/")]
    assert (len(keys), len(set(files)), len(files)) == (5, 5, 5)


def test_otava_s_table_has_a_row_for_each_result(tmp_path: Path) -> None:
    late = Synth(seed=2).write(tmp_path / "late")
    early = Synth(seed=1).write(tmp_path / "early")
    records = (early / "records.jsonl").read_text().replace('"started":"2026', '"started":"2025')
    (early / "records.jsonl").write_text(records)
    one = Synth(factors={"send": ("readwrite", "sendfile"), "pin": ("none",)}).write(tmp_path / "x")
    text, left_out = otava([Source.of(path) for path in (late, early, one)])
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["result"] for row in rows] == ["early", "late", "x"]
    (cell,) = (each for each in Source.of(late).cells if each.cell == "send=sendfile,pin=none")
    assert float(rows[1]["throughput[send=sendfile,pin=none]"]) == cell.intervals["throughput"].mean
    assert "throughput[send=sendfile,pin=apart]" in left_out
    assert all(word for row in rows for word in row.values())
    with pytest.raises(RequestError, match="no cell and metric in common"):
        otava([Source.of(path) for path in (late, SAMPLE)])


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("selec 1", 'syntax error at or near "selec"'),
        ("SELECT now()", "cast it"),
        ("; -- nothing", "holds no statement"),
        ("INSTALL spatial; LOAD spatial", "spatial"),
    ],
)
def test_what_sql_got_wrong_is_told(made: Path, sql: str, told: str) -> None:
    with Database([Source.of(made)]) as database, pytest.raises(RequestError, match=told):
        database.query(sql)


# Views of hosts over time


HISTORY = """
SELECT result, mean, before, change FROM host_history
WHERE host = 'a' AND role = 'sender' AND cell = 'send=readwrite,pin=none' AND metric = 'throughput'
ORDER BY began
"""
CHANGES = "SELECT host, fact, result, before, value FROM host_changes"
RUNS = "SELECT host, role, peer, count(*) AS runs FROM host_runs GROUP BY ALL ORDER BY ALL"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two results, of which the second has another driver on a host."""
    folder = tmp_path_factory.mktemp("results")
    for number in (1, 2):
        synth = Synth(seed=number, pairs=("a>b", "b>a"))
        made = synth.write(folder / "bulk" / f"2026030{number}T000000Z-abc12{number}")
        facts = json.loads((made / "facts.json").read_text())
        facts["hosts"]["b"][0]["facts"] |= {"driver": f"v{number}", "load": f"{number}"}
        (made / "facts.json").write_text(json.dumps(facts))
        if number == 2:
            records = (made / "records.jsonl").read_text()
            (made / "records.jsonl").write_text(records.replace("2026-03-01T", "2026-03-02T"))
    return folder


def test_a_host_over_time(results: Path) -> None:
    where = results
    first, second = api.query(HISTORY, [where]).rows
    assert (first[0], second[0]) == ("20260301T000000Z-abc121", "20260302T000000Z-abc122")
    assert (first[2], first[3], second[2]) == (None, None, first[1])
    assert second[3] == pytest.approx(second[1] / first[1] - 1)
    assert api.query(CHANGES, [where]).rows == [("b", "driver", second[0], "v1", "v2")]
    rows = api.query(RUNS, [where]).rows
    total = api.query("SELECT count(*) FROM runs WHERE pair = 'a>b'", [where]).rows[0][0]
    roles = ("receiver", "sender")
    assert list(rows) == [(a, role, b, total) for a, b in ("ab", "ba") for role in roles]


def test_a_result_is_given_once(results: Path) -> None:
    with pytest.raises(RequestError, match="synthetic/20260301T000000Z-abc121 is given twice"):
        api.query("SELECT 1 FROM runs", [results, results])
