"""A ring of real hosts in namespaces: a link of a lower rate and a host without TSO are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from netbench.report.source import Source
from tests.support.fleet_lab import campaign_of, chosen, faulty, lab_of
from tools.bench import command

HOSTS, BLOCKS = 16, 4


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.netns
@pytest.mark.timeout(600)
def test_the_capped_host_and_the_one_without_tso_are_named_and_no_other(tmp_path: Path) -> None:
    with lab_of(HOSTS) as lab:
        faults = chosen(lab, seed=1)
        with faulty(lab, faults):
            ran = command.run(campaign_of(lab, BLOCKS, seed=1), tmp_path)
    (fleet,) = Source.of(ran.path).fleets["throughput"]
    facts = {cause.name: {odd.fact for odd in cause.facts[cause.name]} for cause in fleet.causes}
    assert facts.keys() == {faults.capped, faults.without_tso}
    assert "qdisc" in facts[faults.capped]
    assert "features" in facts[faults.without_tso]
