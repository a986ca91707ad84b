"""What must stay; `python -m tests.unit.test_frozen` writes it: each change is one for users."""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import re
from pathlib import Path

import pytest

from netbench import campaign
from netbench.campaign import load
from netbench.cli import parser
from netbench.model import Campaign, Lab
from netbench.plan.plan import Plan
from netbench.plan.plan_json import plan_json
from netbench.report import csv as report_csv
from netbench.report import json as report_json
from netbench.report.build import build
from tests.support.hand_catalogue import catalogue
from tests.support.paths import ROOT

FROZEN = Path(__file__).with_name("frozen.json")
CAMPAIGNS = sorted((ROOT / "campaigns").glob("*.yaml"))
SAMPLES = sorted(path for path in (ROOT / "results" / "sample").iterdir() if path.is_dir())
WORDS = "cell pair metric unit status verdict factor level baseline name".split()
NUMBER = re.compile(r"-?\d+\.\d+(e[-+]\d+)?")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plan_of(file: Path) -> str:
    return digest(json.dumps(plan_json(Plan(campaign.load(file))), sort_keys=True))


def shape(value: object, key: str = "") -> object:
    """JSON without its sentences, and with numbers to nine digits: the last ones are the CPU's."""
    if isinstance(value, dict):
        return {name: shape(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [shape(each, key) for each in value]
    if isinstance(value, float):
        return f"{value:.9g}"
    return value if key in WORDS or not isinstance(value, str) else ""


def report_of(result: Path) -> dict[str, str]:
    """Of a sample: the numbers of its JSON, and its CSV."""
    report = build(result)
    rows = [
        [f"{float(word):.9g}" if NUMBER.fullmatch(word) else word for word in row]
        for row in csv.reader(io.StringIO(report_csv.render(report)))
    ]
    found = json.loads(report_json.render(report))
    return {"json": digest(json.dumps(shape(found), sort_keys=True)), "csv": digest(str(rows))}


def options() -> dict[str, str]:
    """Each verb with its options."""
    (verbs,) = (
        one for one in parser.build(*parser.VERBS)._actions if isinstance(one.choices, dict)
    )
    assert isinstance(verbs.choices, dict)
    return {
        verb: " ".join(
            sorted(
                word
                for one in made._actions
                for word in one.option_strings
                if one.help != argparse.SUPPRESS
            )
        )
        for verb, made in verbs.choices.items()
    }


@pytest.fixture(scope="module")
def frozen() -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(FROZEN.read_text())
    return found


@pytest.mark.parametrize("file", CAMPAIGNS, ids=lambda file: str(file.stem))
def test_the_plan_of_a_shipped_campaign_is_what_it_was(
    file: Path, frozen: dict[str, dict[str, object]]
) -> None:
    shipped = campaign.load(file)
    assert (shipped.name, bool(shipped.about)) == (file.stem, True)
    assert plan_of(file) == frozen["plans"][file.stem]


@pytest.mark.parametrize("result", SAMPLES, ids=lambda result: str(result.name))
def test_the_numbers_of_a_sample_are_what_they_were(
    result: Path, frozen: dict[str, dict[str, object]]
) -> None:
    assert report_of(result) == frozen["reports"][result.name]


def test_verbs_have_the_options_that_they_had(frozen: dict[str, dict[str, object]]) -> None:
    assert options() == frozen["options"]


if __name__ == "__main__":
    values = {
        "plans": {file.stem: plan_of(file) for file in CAMPAIGNS},
        "reports": {result.name: report_of(result) for result in SAMPLES},
        "options": options(),
    }
    FROZEN.write_text(json.dumps(values, indent=1, sort_keys=True) + "\n")


# sosend is Oppermann's sweep


FILES = sorted((ROOT / "campaigns").glob("*.yaml"))
SOSEND = next(file for file in FILES if file.name == "sosend.yaml")


def factors(campaign: Campaign, *names: str) -> set[tuple[str, ...]]:
    return {tuple(cell.factors[name] for name in names) for cell in campaign.cells}


def test_sosend_runs_in_a_lab_with_nothing_but_a_set() -> None:
    campaign = load(SOSEND, ["lab=netns"], catalogue())
    assert campaign.lab == Lab("netns")
    assert campaign.cells == load(SOSEND, catalogue=catalogue()).cells
    assert list(campaign.hosts) == ["snd", "rcv"]


def test_sosends_kernels_are_swept_by_what_its_head_says() -> None:
    campaign = load(SOSEND, re.findall(r"--set '([^']+)'", SOSEND.read_text()), catalogue())
    assert campaign.compare is not None
    assert campaign.compare.factor == "kernel"
    assert factors(campaign, "kernel", "tso") == {
        (k, t) for k in ("6.1", "6.12") for t in ("on", "off")
    }
    assert len(campaign.cells) == 12
