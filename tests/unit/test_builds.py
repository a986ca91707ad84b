"""Builds of a kernel: their keys, the plan's turns, and what the conductor boots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from netbench import campaign
from netbench.base.errors import CampaignError
from netbench.kernels.boot.acceptance import why_not_ready
from netbench.kernels.built import pinned, with_built_kernels
from netbench.kernels.compile import build
from netbench.model import Kernel, build_name
from netbench.plan.plan import Boot, Plan
from netbench.plan.plan_json import plan_json
from netbench.result.files import HostEntry
from netbench.run.progress import Progress
from netbench.run.worker_pool import WorkerPool
from tests.support.kernel_repository import Lines, Repository
from tests.unit.test_boots import UP, Simulated, booted

TEXT = """\
netbench: 1
name: builds
hosts: {{snd: {{ssh: snd}}, rcv: {{ssh: rcv}}}}
kernels: {{a: {}, b: {}}}
sweep: {{kernel: [a, b]}}
repeat: {{min: 8, max: 8, boots: {}}}
"""
GIT = "{git: /x, rev: v1, builds: 2}"
DEBS = "{builds: [{deb: a1.deb}, {deb: a2.deb}], append: quiet}"


def parsed(one: str, other: str, boots: int = 4) -> campaign.Campaign:
    return campaign.parse(TEXT.format(one, other, boots), "builds.yaml")


# Keys


def test_a_number_links_a_kernel_from_git_as_often() -> None:
    each = parsed(GIT, "{git: /x, rev: v2, builds: 2}").kernels["a"].each
    assert [(k.name, k.layout, k.rev, k.builds) for k in each] == [
        ("a#1", 0, "v1", ()), ("a#2", 1, "v1", ())
    ]  # fmt: skip
    alone = parsed("{git: /x, rev: v1, builds: 1}", "{release: '6.1'}").kernels["a"]
    assert alone.each == (alone,)


def test_a_layout_is_one_build_of_a_name_of_its_own(repository: Repository) -> None:
    """It is the one that builds have: two kernels of a commit can be compared by nothing else."""
    git = f"git: {repository.place}, rev: master, config: tinyconfig"
    kernels = parsed(f"{{{git}, builds: 2}}", f"{{{git}, layout: 1}}", boots=2).kernels
    assert [(k.name, k.layout) for k in kernels["b"].each] == [("b", 1)]
    first, second, again = (build(k, Lines().told) for name in "ab" for k in kernels[name].each)
    assert again == second != first


def test_listed_builds_take_the_place_of_a_source() -> None:
    found = parsed(DEBS, "{builds: [{release: '6.1'}, {image: /i, initrd: /r}]}")
    debs = (Kernel(f"a#{n}", deb=f"a{n}.deb", append="quiet") for n in (1, 2))
    assert found.kernels["a"].each == (*debs,)
    assert found.kernels["b"].each[1] == Kernel("b#2", image="/i", initrd="/r")
    assert [kernel.name for kernel in found.builds] == ["a#1", "a#2", "b#1", "b#2"]


def test_boots_that_builds_do_not_fit_are_refused() -> None:
    with pytest.raises(CampaignError, match=r"repeat\.boots: expected 2 or more, a boot of each b"):
        parsed(GIT, GIT, boots=1)
    with pytest.raises(CampaignError, match=r"kernels\.b\.builds: expected as many builds as a"):
        parsed(GIT, "{git: /x, rev: v1, builds: 3}")
    assert parsed(GIT, "{release: '6.1'}", boots=2).warnings == ()
    assert "3 boots are no multiple of 2 builds" in parsed(GIT, GIT, boots=3).warnings[0]


# The plan


def several(boots: int, builds: Sequence[int]) -> Plan:
    plan = booted(boots, boots, ("k1", "k2"))
    kernels = {
        name: replace(kernel, git="/x", layouts=number)
        for (name, kernel), number in zip(plan.campaign.kernels.items(), builds, strict=True)
    }
    return Plan(replace(plan.campaign, kernels=kernels))


def test_builds_of_a_kernel_take_turns_from_round_to_round() -> None:
    plan = several(5, (2, 1))
    boots = plan.all_boots()
    assert [boot.build for boot in boots if boot.kernel == "k1"] == [1, 2, 1, 2, 1]
    assert {boot.build for boot in boots if boot.kernel == "k2"} == {None}
    assert [boot.kernel for boot in boots] == [b.kernel for b in several(5, (1, 1)).all_boots()]
    told = plan_json(plan)["boots"]
    assert isinstance(told, list)
    assert [each.get("build") for each in told] == [boot.build for boot in boots]
    assert plan.boot_on("k1") == Boot(0, "k1", 1)


# What is booted


def test_the_build_of_the_round_is_booted(tmp_path: Path) -> None:
    """Hosts are stand-ins, which a program boots: it is told the name of the build."""
    lab = Simulated(tmp_path, 'a#1|a#2) up 6.12 "quiet a";; ' + UP)
    builds = tuple(Kernel(build_name("a", at), release="6.12", append="a") for at in (1, 2))
    other = Kernel("b", release="6.12", append="b")
    lab.boots._kernels = {"a": Kernel("a", builds=builds), "b": other}
    for turn in (1, 2, None):
        lab.boots.bring_up("b" if turn is None else "a", lambda number: "", turn)
    assert lab.told("h") == ["a#1", "a#2", "b"]


def test_a_campaign_has_each_build_built_of_the_commit_that_it_keeps(
    repository: Repository,
) -> None:
    git = f"{{git: {repository.place}, rev: master, config: tinyconfig, builds: 2}}"
    wanted = pinned(parsed(git, git, boots=2))
    assert "builds: 2" in wanted.text
    built = with_built_kernels(wanted, Progress().say)
    trees = [build.tree for build in built.kernels["a"].each]
    assert len(set(trees)) == 2
    assert [build.tree for build in built.kernels["b"].each] == trees
    assert [build.name for build in built.builds][:2] == ["a#1", "a#2"]


class Answering:
    """A pool of workers that find every address."""

    def host_worker(self, host: str) -> Answering:
        return self

    def operate(self, op: str, address: str) -> str:
        return "eth0"


def test_a_boot_is_accepted_by_what_earlier_boots_of_its_build_were() -> None:
    def entry(build: int | None, release: str) -> HostEntry:
        return HostEntry(1, "id", 100, {"kernel": release}, on="a", build=build)

    wanted = parsed(DEBS, DEBS)
    stored = {"snd": [entry(1, "6.1"), entry(2, "6.2")]}
    pool = cast(WorkerPool, Answering())
    assert why_not_ready(wanted, pool, stored, {"snd": entry(2, "6.2")}) == ""
    why = why_not_ready(wanted, pool, stored, {"snd": entry(1, "6.2")})
    assert "kernel was 6.1, then 6.2" in why
