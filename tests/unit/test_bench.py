"""The bench's arithmetic: netperf's rule by hand, gaps between runs by hand, and the table."""

from __future__ import annotations

import math
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import netbench
from netbench.stats.intervals import Interval
from tests.support.paths import SAMPLE
from tools.bench import comparisons, lab, orchestration
from tools.bench.__main__ import stolen
from tools.bench.table import Part, Row, markdown


def record(run: int, opened: int, closed: int, status: str = "ok") -> dict[str, Any]:
    return {
        "run": run,
        "status": status,
        "reason": "" if status == "ok" else "no",
        "sender": {"time_ns": [opened, closed]},
    }


def test_overhead_is_from_a_window_s_closing_to_the_next_one_s_opening_less_the_warm_up() -> None:
    records = [
        record(1, 0, 50_000_000),
        record(2, 68_000_000, 118_500_000),
        record(3, 135_500_000, 185_500_000),
    ]
    assert orchestration.overheads(records, 10_000_000) == [8.0, 7.0]


def test_a_failed_run_is_no_measurement() -> None:
    with pytest.raises(RuntimeError, match="run 2 is failed: no"):
        orchestration.overheads([record(1, 0, 1), record(2, 2, 3, "failed")], 0)


def test_ratio_of_means() -> None:
    found = orchestration.ratio(
        Interval(5, 40.0, half_width=1.2), Interval(20, 10.0, half_width=0.4)
    )
    assert found == "4.00 (3.80 to 4.21)"  # the widths, 3% and 4%, make 5%


def toggled(run: int, level: str, opened: int, read: str = "") -> dict[str, Any]:
    told = {"tso": {"asked": level, "read": read or level}}
    more = {
        "factors": {"tso": level},
        "settings": {"sender": told, "receiver": {"tso": {"asked": level, "read": level}}},
    }
    return record(run, opened * 1_000_000, (opened + 50) * 1_000_000) | more


def test_only_gaps_between_different_levels_are_toggled() -> None:
    records = [
        toggled(1, "on", 0),
        toggled(2, "off", 90),
        toggled(3, "off", 170),
        toggled(4, "on", 265),
    ]
    assert lab.apart(records) == ([30.0, 35.0], [20.0])


def test_a_level_that_was_not_read_back_is_no_toggle() -> None:
    with pytest.raises(RuntimeError, match="run 2 does not show tso: off on both hosts"):
        lab.apart([toggled(1, "on", 0), toggled(2, "off", 90, read="on")])


def test_ratios_of_rounds_are_paired() -> None:
    assert lab.ratio([80.0, 160.0, 40.0], [10.0, 20.0, 5.0]) == pytest.approx((8.0, 8.0, 8.0))
    times, low, high = lab.ratio([4.0, 16.0], [1.0, 1.0])
    assert times == pytest.approx(8.0)
    assert math.log(high / low) == pytest.approx(
        2 * 12.706 * math.log(4) / math.sqrt(2) / math.sqrt(2), rel=1e-4
    )


def script(folder: Path, text: str) -> None:
    (folder / "flent").write_text("#!/bin/sh\n" + text)
    (folder / "flent").chmod(0o755)


def test_flent_says_itself_why_it_cannot_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert orchestration.flent(tmp_path).startswith("not installed")
    script(
        tmp_path, 'echo "ERROR: No netperf binary found in PATH." >&2\n'
    )  # and status 0, as flent does
    assert (
        orchestration.flent(tmp_path) == "cannot run here: ERROR: No netperf binary found in PATH."
    )
    script(tmp_path, "exit 3\n")
    assert orchestration.flent(tmp_path) == "cannot run here: it ended with status 3 and no data"
    script(tmp_path, 'echo "$@" > "$7/x.flent.gz"\n')
    assert orchestration.flent(tmp_path).endswith(" ms (one run)")
    assert (tmp_path / "x.flent.gz").read_text().split()[:3] == [
        "tcp_1up_noping",
        "-H",
        "127.0.0.1",
    ]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The bench in an empty folder; `lab` misses its budget there, and the others hold theirs."""
    made = import_module("tools.bench.__main__")
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(made, "ROOT", tmp_path)

    def part(module: str) -> SimpleNamespace:
        holds = module != "tools.bench.lab"
        return SimpleNamespace(
            measure=lambda: Part(
                module, "How.", (Row("a", "1", "2", "0.5", "at most 1", holds),), ()
            )
        )

    monkeypatch.setattr(made, "import_module", part)
    return made


def test_a_bench_of_some_parts_judges_these_alone(bench: ModuleType) -> None:
    assert bench.main(["lab"]) == 1
    assert bench.main(["peers"]) == 0, (
        "though another misses its budget, and others are not measured"
    )
    assert bench.main(["peers", "lab"]) == 1
    written = (bench.ROOT / "docs" / "performance.md").read_text()
    assert written.count("Not measured yet.") == len(bench.PARTS) - 2
    assert (written.count("| holds |"), written.count("| **missed** |")) == (1, 1)


def test_a_word_stands_for_several_parts(bench: ModuleType) -> None:
    assert bench.main(["methods", "lab"]) == 1
    written = (bench.ROOT / "docs" / "performance.md").read_text()
    measured = {*bench.GROUPS["methods"], "lab"}
    assert written.count("Not measured yet.") == len(bench.PARTS) - len(measured)
    for part in measured:
        assert f"<!-- part: {part} -->\n\n## tools.bench.{part}\n" in written


def test_every_part_is_a_module_that_measures() -> None:
    made = import_module("tools.bench.__main__")
    assert {part for parts in made.GROUPS.values() for part in parts} <= set(made.PARTS)
    for part in made.PARTS:
        assert callable(import_module(f"tools.bench.{part}").measure)


def test_a_part_replaces_its_own_section_alone(bench: ModuleType) -> None:
    """Whatever another part measured long ago, elsewhere, stays as it is."""
    page = bench.ROOT / "docs" / "performance.md"
    bench.main(["peers", "lab"])
    mended = page.read_text().replace("| a | 1 |", "| a | of another day |")
    page.write_text(mended)
    bench.main(["lab"])
    before, after = (re.split("(?=<!-- part: )", text) for text in (mended, page.read_text()))
    assert [i for i, text in enumerate(after) if text != before[i]] == [
        1 + bench.PARTS.index("lab")
    ]
    assert page.read_text().count("of another day") == 1


def test_a_bench_measures_nothing_when_a_part_is_unknown(
    bench: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(["peers", "nosuch"]) == 2
    assert "no part 'nosuch'; there are peers, " in capsys.readouterr().err
    assert not (bench.ROOT / "docs" / "performance.md").exists()


def test_comparisons_become_rows() -> None:
    """Those of the sample: each row has the means of its own cells, and is judged by its own
    interval.
    """
    results = netbench.load(SAMPLE)
    found = results.compare("send", "sendfile", "throughput")
    means = results.runs.groupby(["send", "pin"], observed=True)["throughput"].mean()
    least = float(found["ratio"].median())

    def judged(budget: comparisons.Budget | None) -> list[bool | None]:
        rows = comparisons.rows(
            results, "send", "sendfile", "throughput", lambda levels: levels["pin"], budget
        )
        assert [row.what for row in rows] == [*found["pin"]]
        for row in rows:
            assert row.ours == f"{means['readwrite', row.what]:.4g} Gb/s"
            assert row.peer == f"send sendfile: {means['sendfile', row.what]:.4g} Gb/s"
        return [row.holds for row in rows]

    assert judged(None) == [None] * len(found)
    assert judged(comparisons.ratio_at_least(least)) == [*(found["ratio"] >= least)]
    assert judged(comparisons.low_at_least(least)) == [*(found["low"] >= least)]


def test_a_part_becomes_a_table() -> None:
    rows = (
        Row("a", "1", "2", "0.5", "at most 1", True),
        Row("b", "3", "2", "1.5", "at most 1", False),
    )
    part = Part("Title", "How.", (*rows, Row("c", "1", "none", "", "", None)), ("A note.",))
    assert markdown(part).splitlines() == [
        "## Title",
        "",
        "How.",
        "",
        "| | netbench | peer | result | budget | |",
        "|---|---|---|---|---|---|",
        "| a | 1 | 2 | 0.5 | at most 1 | holds |",
        "| b | 3 | 2 | 1.5 | at most 1 | **missed** |",
        "| c | 1 | none |  |  |  |",
        "",
        "- A note.",
    ]


def test_boots_are_timed_by_their_slower_host_and_work_from_there() -> None:
    from tools.bench.kernels import boots

    def at(second: float) -> str:
        return f"2026-01-01T00:00:{second:06.3f}Z"

    journal = [
        {"time": at(1), "kind": "boot", "number": 1, "host": "a"},
        {"time": at(1.5), "kind": "boot", "number": 1, "host": "b"},
        {"time": at(5), "kind": "booted", "number": 1, "host": "b"},
        {"time": at(6), "kind": "booted", "number": 1, "host": "a"},
        {"time": at(20), "kind": "boot", "number": 2, "host": "a"},
        {"time": at(26.5), "kind": "booted", "number": 2, "host": "a"},
    ]
    records = [
        {"boot": 1, "started": at(9)},
        {"boot": 2, "started": at(27.25)},
        {"boot": 2, "started": at(29)},
    ]
    found = boots(journal, records, verified=1)
    assert (found.waits, found.works) == ((5.0, 6.5), (0.75,))


def test_what_a_hypervisor_took_is_said() -> None:
    before = [100] * 8
    assert stolen(before, [100, 100, 100, 290, 100, 100, 100, 110]) == (
        "; 5.0% of the CPUs' time was stolen meanwhile"
    )
    assert stolen(before, [200, *before[1:]]) == ""
    assert stolen(before, before) == ""
