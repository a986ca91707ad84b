"""The campaigns that come with netbench: each plans as it stands, and sosend is Oppermann's sweep."""

from __future__ import annotations

import re

from netbench.campaign import load
from netbench.model import Campaign, Lab
from tests.support.hand_catalogue import catalogue
from tests.support.paths import ROOT

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
    sets = re.findall(r"--set '([^']+)'", SOSEND.read_text())
    campaign = load(SOSEND, sets, catalogue())
    assert campaign.compare is not None
    assert campaign.compare.factor == "kernel"
    assert factors(campaign, "kernel", "tso") == {
        (k, t) for k in ("6.1", "6.12") for t in ("on", "off")
    }
    assert len(campaign.cells) == 12
