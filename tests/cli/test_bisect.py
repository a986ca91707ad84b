"""The search for the first bad commit, in real histories; what campaigns say is made up here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from netbench import api
from netbench.base.errors import RequestError
from netbench.kernels.bisection import Answer, Says, Step, search
from netbench.kernels.compile import BuildFailed
from netbench.model import Campaign, Kernel
from tests.support.kernel_repository import Repository
from tests.support.local import call
from tests.support.synthetic import Record, Synth, failed

TEXT = """\
netbench: 1
name: series
hosts: {{here: local}}
kernels:
  base: {{git: {0}, rev: c0}}
  patched: {{git: {0}, rev: master}}
sweep: {{kernel: [base, patched]}}
compare: {{factor: kernel, baseline: base}}
repeat: {{min: 8, boots: 4}}
"""
GATE = "throughput<-10%"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Nine commits, c0 to c8."""
    made = Repository(tmp_path / "linux")
    for number in range(9):
        made.commit(f"int c = {number};\n", f"c{number}")
    return made


def tagged(repository: Repository, name: str) -> None:
    """A commit that adds a file, with a tag."""
    (repository.place / name).write_text("")
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", name)
    repository.git("tag", name)


def searched(
    repository: Repository, says: Callable[[str], Says], bad: str = "master"
) -> tuple[list[str], list[Step]]:
    """The suspects and the steps, where `says` tells of a tag."""
    steps: list[Step] = []
    tags = {repository.git("rev-parse", f"{t}^{{}}"): t for t in repository.git("tag").split()}

    def ask(good: str, tried: str) -> Answer:
        assert tags[good] == "c0"
        return Answer(says(tags[tried]), "as it was made up")

    kernel = Kernel("patched", git=str(repository.place), rev="master")
    suspects = search(kernel, "c0", bad, ask, steps.append)
    return [tags[each] for each in suspects], steps


@pytest.mark.parametrize("culprit", [1, 8])
def test_the_first_bad_commit_is_found_by_halving(repository: Repository, culprit: int) -> None:
    bad = {f"c{number}" for number in range(culprit, 9)}
    found, steps = searched(repository, lambda tag: Says.BAD if tag in bad else Says.GOOD)
    assert found == [f"c{culprit}"]
    assert len(steps) <= 1 + math.ceil(math.log2(8))
    assert steps[0].line.endswith("bad: as it was made up [c8]")


def test_a_merged_branch_is_searched_too(repository: Repository) -> None:
    """And a revision of another history is refused."""
    repository.git("checkout", "-q", "-b", "side", "c4")
    for number in (1, 2, 3):
        tagged(repository, f"s{number}")
    repository.git("checkout", "-q", "master")
    repository.git("merge", "-q", "--no-edit", "side")
    repository.git("tag", "merge")
    bad = {"s2", "s3", "merge"}
    found, _ = searched(repository, lambda tag: Says.BAD if tag in bad else Says.GOOD)
    assert found == ["s2"]
    kernel = Kernel("k", git=str(repository.place), rev="s1")
    with pytest.raises(RequestError, match=r"is no ancestor of .*; give revisions of one history"):
        search(kernel, "s1", "c8", lambda *_: Answer(Says.BAD, ""), lambda _: None)


def test_what_cannot_be_told_is_skipped_and_named_at_the_end(repository: Repository) -> None:
    """But for the bad revision itself, which ends the search where it is not seen to be bad."""

    def says(tag: str) -> Says:
        return Says.SKIP if tag in ("c4", "c5") else Says.BAD if tag >= "c5" else Says.GOOD

    found, steps = searched(repository, says)
    assert sorted(found) == ["c4", "c5", "c6"]
    assert len({step.commit for step in steps}) == len(steps)
    for said in (Says.GOOD, Says.SKIP):
        with pytest.raises(RequestError, match="master is not seen to be worse than c0: as it was"):
            searched(repository, lambda tag, said=said: said)


@dataclass
class Conclusion:
    """What of a conclusion is looked at."""

    path: Path
    why: str = "done"
    reason: str = ""


def result(folder: Path, ratio: float, spread: float, dies: str = "") -> Conclusion:
    """A result in which the patched kernel moves `ratio` of what the base does, or `dies` of."""

    def edit(record: Record) -> Record:
        is_dead = dies and record["factors"]["kernel"] == "patched"
        return failed(record, "failed", dies) if is_dead else record

    made = Synth(
        factors={"kernel": ("base", "patched")},
        boots=4,
        runs=8,
        spread=spread,
        truth=lambda f: (20.0 * (ratio if f["kernel"] == "patched" else 1), 0.5, 0.5),
        compare={"factor": "kernel", "baseline": "base"},
        edit=edit,
    )
    return Conclusion(made.write(folder))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda at: result(at, 1.0, 0.005), "master is not seen to be worse than c0: throughput"),
        (lambda at: result(at, 0.9, 0.05), "master is not seen to be worse than c0: throughput"),
        (
            lambda at: result(at, 1.0, 0.005, "boot: patched: snd: it was rebooted"),
            "master is not seen to be worse than c0: nothing could be compared (`report",
        ),
        (BuildFailed("kernel patched: the build failed"), "kernel patched: the build failed"),
        (lambda at: Conclusion(at, "lost", "snd is gone"), "bisect: snd is gone; run it again"),
    ],
    ids=["good", "too wide", "dies under load", "no build", "lost at the end"],
)
def test_a_bad_revision_that_is_not_seen_to_be_bad_and_a_lost_host_end_the_search(
    repository: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    made: Callable[[Path], Conclusion] | Exception,
    said: str,
) -> None:
    def start(wanted: Campaign, results: Path, jobs: int | None = None) -> Conclusion:
        if isinstance(made, Exception):
            raise made
        return made(tmp_path / "result")

    monkeypatch.setattr(api, "start", start)
    file = tmp_path / "series.yaml"
    file.write_text(TEXT.format(repository.place))
    done = call("bisect", file, "--good", "c0", "--bad", "master", "--fail-if", GATE)
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())
    assert "the first bad commit" not in done.stdout


def test_the_whole_search_prints_its_steps_with_their_intervals(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = {repository.git("rev-parse", f"c{number}") for number in (6, 7, 8)}
    steps = 0

    def start(wanted: Campaign, results: Path, jobs: int | None = None) -> Conclusion:
        nonlocal steps
        steps += 1
        is_bad = repository.git("rev-parse", f"{wanted.kernels['patched'].rev}^{{}}") in bad
        return result(tmp_path / f"step{steps}", 0.8 if is_bad else 1.0, 0.005)

    monkeypatch.setattr(api, "start", start)
    file = tmp_path / "series.yaml"
    file.write_text(TEXT.format(repository.place))
    words = ("bisect", file, "--good", "c0", "--bad", "master")
    done = call(*words, "--fail-if", GATE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == (
        f"the first bad commit is {repository.git('rev-parse', 'c6')}"
    )
    assert done.stdout.count("95% interval") + done.stdout.count("95%\n    interval") == steps
    assert max(map(len, done.stdout.splitlines())) <= 80
    for wrong, why in (
        (("--fail-if", "speed<1%"), "no metric 'speed'"),
        (("--fail-if", GATE, "--set", "compare.factor=send"), "compare"),
    ):
        refused = call(*words, *wrong)
        assert refused.returncode == 2
        assert why in refused.stderr
