"""What a run hands to the next is named by the two levels; shuffled blocks alone show nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from netbench.read.carry_over import carried_over
from netbench.read.load import load
from netbench.report.build import build
from netbench.report.source import Source
from netbench.stats.comparison import CARRIED
from tests.support.synthetic import Record, Synth, scaled

SEND = {"send": ("readwrite", "sendfile", "splice")}


def carrying(loss: float, before: str, after: Sequence[str]) -> Callable[[Record], Record]:
    """Levels lose that share in each run that comes after another one."""
    last = {"send": ""}

    def edit(record: Record) -> Record:
        send = record["factors"]["send"]
        if last["send"] == before and send in after:
            scaled(record, 1 - loss)
        last["send"] = send
        return record

    return edit


@pytest.mark.parametrize(("loss", "spread"), [(0.03, 0.005), (0.1, 0.02)])
def test_the_pair_of_levels_that_carries_is_named(
    tmp_path: Path, loss: float, spread: float
) -> None:
    folder = Synth(SEND, 24, spread=spread, edit=carrying(loss, "splice", ["sendfile"])).write(
        tmp_path / "r"
    )
    (found,) = (c for c in carried_over(load(folder)) if c.metric == "throughput")
    assert (found.factor, found.before, found.level) == ("send", "splice", "sendfile")
    assert found.low < 1 - loss < found.high < 1
    (caution,) = (c for c in build(folder).source.cautions if c.kind == "carry_over")
    assert "send=sendfile" in caution.what
    assert "after send=splice" in caution.what


def test_shuffled_blocks_carry_nothing(tmp_path: Path) -> None:
    findings = 0
    for seed in range(12):
        synth = Synth(SEND, 20, spread=0.02, drift=0.1 * (seed % 2), seed=seed)
        findings += len(list(carried_over(load(synth.write(tmp_path / str(seed))))))
    assert findings <= 1


@pytest.mark.parametrize("runs", [1, 3])
def test_few_runs_tell_nothing(tmp_path: Path, runs: int) -> None:
    assert not list(carried_over(load(Synth(SEND, runs).write(tmp_path / "r"))))


TWO = {"send": ("readwrite", "sendfile")}


@pytest.mark.parametrize("loss", [0.05, 0.0])
def test_a_verdict_that_stands_on_what_is_carried_over_is_flagged(
    tmp_path: Path, loss: float
) -> None:
    """Two levels that are equal but for what the second of a block loses after the first: sendfile
    comes after readwrite three times as often as after itself. And levels that differ.
    """

    def truth(factors: Mapping[str, str]) -> tuple[float, float, float]:
        return 20.0 if loss or factors["send"] == "readwrite" else 21.0, 0.5, 0.6

    flagged = []
    for seed in range(4):
        edit = carrying(loss, "readwrite", TWO["send"])
        made = Synth(TWO, 30, spread=0.02, seed=seed, edit=edit, truth=truth, pairs=("a>b",))
        source = Source.of(made.write(tmp_path / str(seed)))
        (c,) = source.compare("send", "readwrite", "throughput")
        flagged += [CARRIED in c.flags] if c.verdict != "inconclusive" else []
    assert len(flagged) >= 2
    assert all(flagged) if loss else not any(flagged)
