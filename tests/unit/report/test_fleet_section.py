"""What a report says of a fleet, in every form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netbench.fleet.section import spread
from netbench.report import json as as_json
from netbench.report.build import Report, build
from netbench.report.sections import SECTIONS
from tests.support.fleets import MadeFleet, bisection, names, ring

HOSTS = names(60)
SPEEDS = {host: {"speed": "10000" if host == "n017" else "25000"} for host in HOSTS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = MadeFleet(
        pairs=bisection(HOSTS, 8),
        runs=2,
        sends={"n017": -0.3},
        receives={"n017": -0.3},
        facts=SPEEDS,
        groups={"rack1": HOSTS[:30]},
    )
    return made.write(tmp_path_factory.mktemp("fleet") / "result")


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    return build(folder)


def test_tables_of_cells_are_there_on_demand_alone(folder: Path, report: Report) -> None:
    keys = {section.key for section in report.sections}
    assert "fleet" in keys
    assert not keys & {row.name for row in SECTIONS if row.of_cells}
    demanded = build(folder, with_cells=True)
    assert {"fleet", "cells"} <= {section.key for section in demanded.sections}
    rows = [len(block.rows) for block in demanded.section("fleet").blocks if hasattr(block, "rows")]
    assert len(demanded.source.result.plan.pairs) in rows


def test_eight_pairs_are_no_fleet(tmp_path: Path) -> None:
    small = build(MadeFleet(pairs=ring(names(8))).write(tmp_path / "result"))
    keys = {section.key for section in small.sections}
    assert "fleet" not in keys
    assert "cells" in keys
    assert as_json.to_json(small)["fleet"] is None


def test_json_has_every_host_pair_and_fact(report: Report) -> None:
    fleet = json.loads(as_json.render(report))["fleet"]
    (analysis,) = fleet["analyses"]
    (outlying,) = analysis["outlying"]
    assert (outlying["kind"], outlying["name"]) == ("host", "n017")
    assert [fact["fact"] for fact in outlying["facts"]["n017"]] == ["speed"]
    pairs = [shift for shift in analysis["shifts"] if shift["kind"] == "pair"]
    assert len(pairs) == len(report.source.result.plan.pairs)
    assert fleet["facts"]["speed"] == {h: "10000" if h == "n017" else "25000" for h in HOSTS}


@pytest.mark.parametrize("hosts", [30, 150])
def test_the_spread_is_drawn_with_the_slow_host_named(hosts: int, tmp_path: Path) -> None:
    made = MadeFleet(
        pairs=ring(names(hosts)), runs=4, receives={"n007": -0.7}, sends={"n007": -0.7}
    )
    (fleet,) = build(made.write(tmp_path / "result")).source.fleets["throughput"]
    labels = spread(fleet).texts
    bold = {label.get_text() for label in labels if label.get_fontweight() == "bold"}
    assert bold == {"n006>n007", "n007>n008"}
    assert len(labels) <= 4
