"""Reports: the same numbers in every form, no text line over the width, one HTML file that fetches
nothing.
"""

from __future__ import annotations

import csv as csv_module
import inspect
import io
import json as json_module
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbench.read.pivot import COPIES
from netbench.report import csv, html, json, markdown, text
from netbench.report.blocks import Column, Table, Value
from netbench.report.build import Report, build
from netbench.report.numbers import column_parts, number, parts
from netbench.report.sections import sections
from netbench.stats.intervals import Interval
from netbench.tools.adaptors import TOOLS
from tests.support.paths import SAMPLE
from tests.support.synthetic import Record, Synth, failed

LONG = {
    "send": ("readwrite", "sendfile"),
    "sysctl.net.ipv4.tcp_limit_output_bytes": ("262144", "1048576"),
    "sender.tso": ("on", "off"),
}
COMPARE = {"factor": "send", "baseline": "readwrite", "margin": 0.01}


def messy(record: Record) -> Record:
    """A bit of everything that goes wrong."""
    if record["run"] % 17 == 3:
        return failed(
            record,
            "failed",
            "connect: no route to host 10.0.0.2, and a reason <b>that</b> is so long that it needs | several lines",
        )
    if record["factors"]["send"] == "sendfile":
        record["proof"]["sender"]["sendfile_calls"] = [[0], [0], [0]]
    return record


def toggled(record: Record) -> Record | None:
    """TSO as a factor: one cell refused, one run in which something else changes it, and features
    that move along.
    """
    tso, after = (
        record["factors"]["tso"],
        "sender: tso read on before the run and off after it; something else changes it",
    )
    if tso == "on" and record["factors"]["socket_buffer"] == "32K":
        return (
            failed(record, "refused", "snd: tso: on: tx-tcp-segmentation is fixed")
            if record["block"] == 0
            else None
        )
    if tso == "off":
        record["settings"]["moved"] = {
            "snd.tx-tcp-mangleid-segmentation": ["on", "off"],
            "snd.tx-gso-partial": ["on", "off"],
        }
    elif record["block"] == 3 and record["factors"]["socket_buffer"] == "64K":
        record["settings"]["sender"]["tso"]["after"] = "off"
        record["sender"]["rusage"]["minor_faults"] = [0, 10**6]
        record |= {"status": "failed", "reason": after}
    return record


def idle(record: Record) -> Record:
    """A method that moves no data: steps and nothing else."""
    for side in ("sender", "receiver"):
        del record[side]["flow"]["bytes"], record[side]["tcp"]
    return record | {"settings": {"sender": {}, "receiver": {}, "moved": {}}}


TSO = {"socket_buffer": ("32K", "64K", "128K"), "tso": ("on", "off")}
CASES = {
    "one kernel": Synth(),
    "two kernels": Synth(pairs=("snd>rcv",), compare=COMPARE),
    "long factors": Synth(
        LONG, pairs=("sender-with-a-long-name>receiver-with-a-long-name",), compare=COMPARE, runs=6
    ),
    "two pairs": Synth(pairs=("a>b", "b>a"), runs=4),
    "messy": Synth(pairs=("a>b",), edit=messy, spread=0.1, repeat={"min": 4, "max": 30}),
    "one run": Synth({"send": ("sendfile",)}, runs=1),
    "nothing swept": Synth({}, runs=5),
    "no run": Synth(runs=3, edit=lambda record: None),
    "all refused": Synth(runs=1, edit=lambda record: failed(record, "refused", "no")),
    "settings": Synth(
        TSO, pairs=("snd>rcv",), edit=toggled, compare={"factor": "tso", "baseline": "off"}
    ),
    "no data": Synth({"send": ("null",)}, edit=idle),
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    return {
        name: build(synth.write(tmp_path_factory.mktemp("r") / "r"))
        for name, synth in CASES.items()
    }


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("width", [80, 60, 120])
def test_no_line_is_too_long(reports: dict[str, Report], case: str, width: int) -> None:
    lines = text.render(reports[case], width).split("\n")
    assert [line for line in lines if len(line) > width] == []
    assert [line for line in lines if line != line.rstrip()] == []


def test_summary_answers_first(reports: dict[str, Report]) -> None:
    lines = text.render(reports["two kernels"]).split("\n")
    said = " ".join(" ".join(lines[:14]).split())
    assert re.search(
        r"pin=none: send=sendfile moves \d\d\.\d% more than send=readwrite, 95% interval [\d.]+ to [\d.]+% \(better\)\.",
        said,
    )
    said = " ".join(text.render(reports["two kernels"]).split())
    assert re.search(
        r"send=sendfile uses \d\d\.\d% less CPU per KB on the sender than send=readwrite, 95% interval",
        said,
    )


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


def test_without_a_question_highest_and_lowest_are_told(reports: dict[str, Report]) -> None:
    said = " ".join(text.render(reports["one kernel"]).split())
    assert re.search(
        r"throughput: most 36\.\d+ ±[\d.]+ Gb/s with send=sendfile,pin=apart; least 17\.\d+ ±[\d.]+ with send=readwrite,pin=none",
        said,
    )


def test_tools_that_send_nothing_are_not_ranked(tmp_path: Path) -> None:
    """A copy on one host is faster than any transfer."""
    assert {name for name, tool in TOOLS.items() if "copies" in inspect.getsource(type(tool))} == {
        *COPIES
    }
    made = Synth({"tool": ("none", "iperf3", "cat")})
    made.truth = lambda f: ({"none": 20.0, "iperf3": 15.0, "cat": 60.0}[f["tool"]], 0.5, 0.5)
    said = " ".join(text.render(build(made.write(tmp_path / "r"))).split())
    assert re.search(r"throughput: most 2\d\.\d+ ±[\d.]+ Gb/s with tool=none; least 1", said)
    assert "Not ranked: 1 cell of tools that copy on one host." in said


def test_text_table_holds_the_numbers(reports: dict[str, Report]) -> None:
    lines = text.render(reports["one kernel"]).split("\n")
    row = next(line for line in lines if re.match(r"sendfile +apart", line))
    i = next(
        c for c in reports["one kernel"].source.cells if c.cell == "send=sendfile,pin=apart"
    ).intervals
    values = re.findall(r"([\d.]+) ±([\d.]+)", row)
    for (mean, half), name in zip(
        values, ("throughput", "system_cpu", "system_demand"), strict=True
    ):
        assert float(mean) == pytest.approx(
            i[name].mean, abs=0.6 * 10 ** -len(mean.partition(".")[2])
        )
        assert float(half) == pytest.approx(
            i[name].half_width, abs=0.6 * 10 ** -len(half.partition(".")[2])
        )
    assert row.endswith("10  converged")


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


@pytest.mark.parametrize("case", CASES)
def test_json_is_strict_and_complete(reports: dict[str, Report], case: str) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    found = json_module.loads(json.render(reports[case]), parse_constant=refuse)
    assert [s["key"] for s in found["sections"]] == [s.key for s in reports[case].sections]
    assert len(found["cells"]) == len(reports[case].source.cells)
    assert [c["kind"] for c in found["cautions"]] == [c.kind for c in reports[case].source.cautions]


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


def mean_of(value: Value) -> float:
    assert isinstance(value, Interval)
    return value.mean


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
        busy = np.mean(np.array(used("cpu_ns")) / 1e7 / seconds)
        assert mean_of(row["CPU"]) == pytest.approx(busy)
        assert (row["minor faults"], row["major faults"]) == (0, 0)
        assert (row["vol. switches"], row["invol. switches"]) == (89, 12)


def test_a_failed_run_is_in_no_mean_of_the_processes(reports: dict[str, Report]) -> None:
    rows = rows_of(reports["settings"], "processes")
    assert len(rows) == 10
    assert {row["minor faults"] for row in rows} == {0}


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


def test_settings_are_told_as_asked_read_and_read_again(reports: dict[str, Report]) -> None:
    rows = {
        (r["setting"], r["side"], r["asked"]): r for r in rows_of(reports["settings"], "settings")
    }
    asked = [asked for name, side, asked in rows if (name, side) == ("send_buffer", "sender")]
    assert asked == ["32768", "65536", "131072"]
    assert rows["send_buffer", "sender", "32768"]["read"] == "65536"
    assert rows["tso", "receiver", "on"]["read"] == "on"
    assert rows["tso", "sender", "off"]["read"] == "off"
    assert rows["tso", "sender", "on"]["read"] == "on; after 1 run: off"
    assert (rows["tso", "sender", "on"]["cells"], rows["tso", "sender", "on"]["runs"]) == (2, 20)


def test_what_moved_along_is_told_with_its_level(reports: dict[str, Report]) -> None:
    (row,) = rows_of(reports["settings"], "settings", 1)
    assert (row["with"], row["cells"], row["runs"]) == ("tso=off", 3, 30)
    assert (
        row["moved along"]
        == "snd.tx-gso-partial from on to off; snd.tx-tcp-mangleid-segmentation from on to off"
    )
    assert (
        len([b for b in reports["one kernel"].section("settings").blocks if isinstance(b, Table)])
        == 1
    )


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


@pytest.mark.parametrize("form", [text, html, markdown, json])
def test_a_refused_cell_is_there_with_its_reason(
    reports: dict[str, Report], form: ModuleType
) -> None:
    said = " ".join(
        re.sub(r"<[^>]*>", " ", form.render(reports["settings"])).replace("\\", "").split()
    )
    assert "1 run was refused: snd: tso: on: tx-tcp-segmentation is fixed" in said
    assert re.search(r"1 refused, 51 runs|1 refused.{1,40}51 runs", said)
    assert "refused" in {
        row["status"] for row in rows_of(reports["settings"], "cells") if row["tso"] == "on"
    }


class Page(HTMLParser):
    """Gathers tags that stay open, addresses, and text."""

    VOID = ("meta", "img", "br", "path", "use", "rect")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.said = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [
            v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "action", "srcset")
        ]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


@pytest.mark.parametrize("case", CASES)
def test_html_is_one_file(reports: dict[str, Report], case: str) -> None:
    page = Page()
    made = html.render(reports[case])
    page.feed(made)
    assert page.open == []
    assert [a for a in page.addresses if not a.startswith(("#", "data:"))] == []
    assert not {"link", "iframe", "object", "embed", "form"} & set(page.tags)
    assert "http" not in made.replace("http-equiv", "")
    assert re.findall(r"<script([^>]*)>", made) == [""]
    assert "@import" not in made
    ids = re.findall(r'\bid="([^"]+)"', made)
    assert len(ids) == len(set(ids))


def test_html_escapes_what_records_say(reports: dict[str, Report]) -> None:
    assert "<b>that</b>" not in html.render(reports["messy"])
    assert "&lt;b&gt;that&lt;/b&gt;" in html.render(reports["messy"])


def test_html_has_drawings_and_every_cell(reports: dict[str, Report]) -> None:
    page = Page()
    page.feed(html.render(reports["two kernels"]))
    assert (
        page.tags.count("figure") == 10
    )  # three of means, one of order, five of ratios, one of effects
    assert "converged" in page.said


def test_reports_are_reproducible(reports: dict[str, Report]) -> None:
    again = build(reports["two kernels"].source.result.path)
    assert html.render(again) == html.render(reports["two kernels"])


def test_marked_cells_carry_the_mark(reports: dict[str, Report]) -> None:
    made = text.render(reports["messy"])
    assert re.search(r"send=sendfile pin=none †", made)
    assert not re.search(r"send=readwrite pin=none †", made)
    assert "† the mechanism did not engage" in made


@pytest.mark.parametrize("case", CASES)
def test_markdown_tables_are_square(reports: dict[str, Report], case: str) -> None:
    widths: list[int] = []
    for line in [*markdown.render(reports[case]).split("\n"), ""]:
        if line.startswith("|"):
            widths.append(len(re.findall(r"(?<!\\)\|", line)))
        else:
            assert len(set(widths)) <= 1
            widths = []


def test_each_section_has_a_docstring() -> None:
    assert all(section.__doc__ for section in sections())


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


def test_a_column_has_equally_many_digits() -> None:
    values = [Interval(5, 1.0, 0, 0, 0, h) for h in (0.01, 0.013, 0.5)]
    assert column_parts(values) == [("1.000", "0.010"), ("1.000", "0.013"), ("1.000", "0.500")]


def test_no_half_width_is_told_as_0_that_is_not() -> None:
    values = [Interval(5, 17.0, 0, 0, 0, h) for h in (0.03, 20.0, 24.0)]
    assert column_parts(values) == [("17.00", "0.03"), ("17.00", "20.00"), ("17.00", "24.00")]


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
