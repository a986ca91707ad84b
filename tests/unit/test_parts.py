"""Parts of a campaign: which pairs go together, and that each closes its cells as the whole does."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from netbench import api, campaign
from netbench.base.errors import PlaceError, RequestError
from netbench.fleet.parts import parse_part, part_of, split
from netbench.model import Campaign
from netbench.plan.plan import Plan, Run
from netbench.read.accounts import ACCOUNTS
from netbench.result.record import Record, SideCounters
from netbench.run.ledger import Ledger

PAIRS = ("a>b", "c>d", "e>f", "g>h", "i>j", "k>l")
TEXT = """\
netbench: 1
name: fleet
hosts: {{{hosts}}}
pairs: [{pairs}]
sweep: {{send: [write, sendfile, splice], tso: [on, off]}}
repeat: {{min: 4, max: 40, precision: 4%}}
"""
COMPARE = "compare: {factor: send, baseline: write, control: true}\n"


def fleet(pairs: tuple[str, ...] = PAIRS, more: str = "") -> Campaign:
    ends = [pair.split(">") for pair in pairs]
    names = dict.fromkeys(name for pair in ends for name in pair)
    hosts = ", ".join(
        f"{name}: {{ssh: {name}, address: 10.0.0.{n}}}" for n, name in enumerate(names, 1)
    )
    listed = ", ".join(f"{{sender: {a}, receiver: {b}}}" for a, b in ends)
    return campaign.parse(TEXT.format(hosts=hosts, pairs=listed) + more, "/lab/fleet.yaml")


def planned(campaign: Campaign) -> Plan:
    """Of hosts on one kernel: pairs take turns."""
    return Plan(campaign, dict.fromkeys(campaign.hosts, "one kernel"))


def played(plan: Plan) -> list[tuple[Any, ...]]:
    """Runs whose values are a function of unit and block: each pair has a spread and drift."""
    pairs = plan.campaign.pairs
    ledger = Ledger(plan, {}, {pair.name: False for pair in pairs}, ACCOUNTS)
    runs: list[tuple[Any, ...]] = []
    while not ledger.finished and ledger.block < 100:
        keys = [key for key in ledger.open_keys if key not in ledger.done]
        for step in (s for wave in plan.block(ledger.block, ledger.is_open, keys) for s in wave):
            if isinstance(step, Run):
                cell, pair = step.unit.cell, step.unit.pair
                draw = random.Random(f"{cell.id} {pair.name} {step.block}")
                spread = 1 + PAIRS.index(pair.name)
                drift = spread * (step.block % 7) / 2
                count = int(1e9 * (100 + drift + draw.gauss(0, spread)))
                runs.append((step.block, cell.id, pair.name))
                sides = (
                    SideCounters(host, (0, 10**9), meters={"flow": {"bytes": [[0], [count]]}})
                    for host in (pair.sender, pair.receiver)
                )
                ledger.add(
                    Record(len(runs), cell.id, pair.name, step.block, 0, cell.factors, "ok", "",
                           "2026-01-01T00:00:00Z", *sides, control=cell.control)
                )  # fmt: skip
        ledger.next_block()
    return runs


@pytest.mark.parametrize("more", ["", COMPARE], ids=["alone", "compared"])
def test_parts_run_what_the_whole_campaign_runs(more: str) -> None:
    whole = fleet(more=more)
    expected = played(planned(whole))
    lengths = {pair: max(r[0] for r in expected if r[2] == pair) for pair in PAIRS}
    assert len(set(lengths.values())) > 3, "cells of some pairs close long before those of others"
    for number in range(1, 5):
        part = part_of(whole, number, 4)
        names = {pair.name for pair in part.pairs}
        assert played(planned(part)) == [run for run in expected if run[2] in names]


def test_a_family_is_that_of_the_whole_campaign() -> None:
    whole = Plan(fleet(more=COMPARE))
    part = Plan(part_of(whole.campaign, 2, 6))
    assert len(part.units) * 6 == len(whole.units)
    assert part.compared == whole.compared


def test_pairs_that_share_hosts_are_in_one_part_and_parts_are_of_like_size() -> None:
    pairs = ("a>b", "c>d", "e>f", "b>e", "g>h", "i>j", "j>i")
    whole = fleet(pairs)
    shares = [[pair.name for pair in share] for share in split(whole, 3)]
    assert shares == [["a>b", "e>f", "b>e"], ["i>j", "j>i"], ["c>d", "g>h"]]
    part = part_of(whole, 3, 3)
    assert list(part.hosts) == ["c", "d", "g", "h"]
    assert part.all_pairs == whole.all_pairs == pairs
    assert (part.text, str(part.part)) == (whole.text, "3/3")


def test_a_part_holds_from_any_folder(tmp_path: Path) -> None:
    part = part_of(fleet(more="ssh_config: ssh_config\n"), 2, 3)
    with contextlib.chdir(tmp_path):
        begun = api._pinned(part)
    assert (begun.part, begun.pairs, [*begun.hosts]) == (part.part, part.pairs, [*part.hosts])
    assert {host.ssh_config for host in begun.hosts.values()} == {"/lab/ssh_config"}


def test_a_transfer_holds_from_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    started = Mock(side_effect=PlaceError("enough"))
    monkeypatch.setattr("netbench.run.conductor.start", started)
    for word, taken in (("./sc", f"{tmp_path}/sc"), ("none", "none")):  # OpenSSH's word
        with pytest.raises(PlaceError):
            api.transfer("hosts={here: {ssh: h, address: 127.0.0.1}}", f"ssh_config={word}")
        assert started.call_args.args[0].hosts["here"].ssh_config == taken


def test_pairs_that_share_a_link_are_in_one_part() -> None:
    whole = fleet(more="links: {uplink: {hosts: [a, d], capacity: 2}, inner: [e, f]}\n")
    shares = [[pair.name for pair in share] for share in split(whole, 5)]
    assert shares == [["a>b", "c>d"], ["e>f"], ["g>h"], ["i>j"], ["k>l"]]
    for parts, said in (
        (6, "5 at most: pairs that share a host or a link"),
        (0, "expected 1 part"),
    ):
        with pytest.raises(RequestError, match=said):
            split(whole, parts)


def test_pairs_that_are_to_run_alone_are_in_no_parts() -> None:
    whole = fleet(more="overlap: none\n")
    with pytest.raises(RequestError, match="one pair at a time, and parts do not wait"):
        part_of(whole, 1, 2)
    assert len(part_of(whole, 1, 1).pairs) == 6


@pytest.mark.parametrize("word", ["1", "0/4", "5/4", "a/b", "½/4"])
def test_a_part_is_a_number_of_so_many(word: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_part(word)
    assert parse_part("4/4") == (4, 4)
