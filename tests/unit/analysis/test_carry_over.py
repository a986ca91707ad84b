"""What a run hands to the next is named by the two levels; shuffled blocks alone show nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from netbench.analysis.carry_over import carried_over
from netbench.analysis.load import load
from netbench.report.build import build
from tests.support.synthetic import Record, Synth

SEND = {"send": ("readwrite", "sendfile", "splice")}


def carrying(loss: float) -> Callable[[Record], Record]:
    """sendfile loses that share in each run that comes after splice."""
    last = {"send": ""}

    def edit(record: Record) -> Record:
        if last["send"] == "splice" and record["factors"]["send"] == "sendfile":
            counted = record["receiver"]["flow"]["bytes"]
            counted[1][0] = counted[0][0] + int((counted[1][0] - counted[0][0]) * (1 - loss))
        last["send"] = record["factors"]["send"]
        return record

    return edit


@pytest.mark.parametrize(("loss", "spread"), [(0.03, 0.005), (0.1, 0.02)])
def test_the_pair_of_levels_that_carries_is_named(
    tmp_path: Path, loss: float, spread: float
) -> None:
    folder = Synth(SEND, 24, spread=spread, edit=carrying(loss)).write(tmp_path / "r")
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
