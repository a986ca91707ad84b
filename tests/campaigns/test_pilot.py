"""`duration: auto`: a pilot of the baseline finds the window."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pytest

from netbench import api, campaign
from netbench.base.errors import CampaignError, RequestError
from netbench.base.units import format_time
from netbench.fleet.parts import part_of
from netbench.model import Repeat, Transfer
from netbench.report.text import render
from netbench.run import conductor, pilot, transfer
from tests.support.running import stored_records

TEXT = """\
netbench: 1
name: auto
hosts: {a: local, b: local}
pairs: [{sender: a, receiver: b}, {sender: b, receiver: a}]
transfer: {chunk: 64K, congestion: cubic, sink: {file: SINK}, duration: auto}
sweep: {send: [readwrite, write]}
compare: {factor: send, baseline: write}
repeat: {min: 2, max: 2, precision: 20%}
"""


def parsed(text: str) -> Any:
    return campaign.parse(text, "auto.yaml")


def test_a_campaign_has_the_window_that_its_pilot_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pilot, "RUNS", {50 * pilot.MS: 3, 100 * pilot.MS: 2})
    monkeypatch.setattr(pilot, "LOOK", 100 * pilot.MS)
    seen: list[Transfer] = []
    measure = transfer.measure

    def watched(cell: Transfer, *more: Any) -> Any:
        seen.append(cell)
        return measure(cell, *more)

    with monkeypatch.context() as patch:
        patch.setattr(pilot, "transfer", SimpleNamespace(measure=watched))
        text = TEXT.replace("SINK", str(tmp_path / "sink")).replace(
            ", {sender: b, receiver: a}", ""
        )
        done = conductor.start(parsed(text), tmp_path)
    assert done.exit_code == 0
    assert {(cell.send, cell.sink.kind) for cell in seen} == {("write", "discard")}
    kept = campaign.load(done.path / "campaign.yaml")
    moving = {cell.transfer.duration or 0 for cell in kept.cells}
    assert not kept.auto
    assert len(moving) == 1
    assert moving < set(pilot.LENGTHS)
    assert kept.cells[0].transfer.warmup == seen[-1].warmup
    for record in stored_records(done.path):
        opened, closed = record["receiver"]["time_ns"]
        assert closed - opened >= min(moving)
    why = json.loads((done.path / "plan.json").read_text())["pilot"]
    assert why.startswith(f"duration: auto: {format_time(min(moving))} after a warm-up of ")
    assert why in " ".join(render(api.build_report(done.path)).split())
    assert api.resume(done.path).exit_code == 0  # and its plan is that of the window


@pytest.mark.parametrize("more", ["", ", rate: 2000/s", ", mode: crr"])
def test_requests_have_a_window_by_what_they_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    monkeypatch.setattr(pilot, "RUNS", {50 * pilot.MS: 3, 100 * pilot.MS: 2})
    monkeypatch.setattr(pilot, "LOOK", 100 * pilot.MS)
    asked = f"transfer: {{request: 1, duration: auto, congestion: cubic{more}}}"
    repeat = "repeat: {min: 2, max: 2, precision: 20%, metrics: [transactions, p50]}"
    done = conductor.start(parsed(f"netbench: 1\nname: auto\n{asked}\n{repeat}\n"), tmp_path)
    (cell,) = campaign.load(done.path / "campaign.yaml").cells
    assert (done.exit_code, cell.transfer.duration in pilot.LENGTHS) == (0, True)


def white(rng: random.Random, _: float, seconds: float) -> float:  # what a window averages
    return rng.gauss(0, 0.02 / math.sqrt(seconds))


def slow(rng: random.Random, at: float, seconds: float) -> float:
    """Noise that is slower than any window, of connections beside it: what no window averages."""
    return 0.5 * math.sin(at / 40) + rng.gauss(0, 0.02)


@pytest.mark.parametrize(("noise", "variance"), [(white, lambda w: 1 / w), (slow, lambda w: 1)])
def test_a_comparison_takes_little_longer_than_with_the_best_window(
    monkeypatch: pytest.MonkeyPatch, noise: Any, variance: Any
) -> None:
    """A clock and a host of the test's own: 50 ms of warm-up and 20 ms a run beside its window."""
    price = {each: variance(each / 1e9) * (each / 1e9 + 0.07) for each in pilot.LENGTHS}
    prices = []
    for seed in range(40):
        rng, clock = random.Random(seed), SimpleNamespace(now=0.0)

        def run(unit: Any, cell: Transfer, ends: Any, rng: Any = rng, at: Any = clock) -> Any:
            seconds = (cell.duration or 0) / 1e9
            at.now += seconds + 0.07
            return {"throughput": math.exp(noise(rng, at.now, seconds))}

        monkeypatch.setattr(pilot, "_metrics", run)
        monkeypatch.setattr(pilot, "time", SimpleNamespace(monotonic=lambda at=clock: at.now))
        timed = (Transfer(duration=length) for length in pilot.RUNS)
        bursts = [pilot._burst(None, cell, None) for cell in timed]  # type: ignore[arg-type]
        found = pilot.prices_of(bursts, Repeat(10, 100, precision=0.01))
        prices.append(price[min(found, key=lambda length: found[length])])
    assert fmean(prices) < 1.3 * min(price.values())


def test_what_has_no_window_of_its_own_is_refused() -> None:
    with pytest.raises(CampaignError, match="expected times in sweep and include, got auto"):
        parsed(
            TEXT.replace("duration: auto", "align: 0").replace("{send", "{duration: [auto], send")
        )
    with pytest.raises(RequestError, match="another time in each part; write a time"):
        part_of(parsed(TEXT), 1, 2)
    with pytest.raises(RequestError, match="auto needs a cell without a tool; write a time"):
        pilot._baseline(
            parsed(
                TEXT.replace("{send: [readwrite, write]}", "{tool: [iperf3, dd]}")
                .replace("factor: send, baseline: write", "factor: tool, baseline: iperf3")
                .replace(", sink: {file: SINK}", "")
            )
        )
    nothing = [pilot.Burst(50 * pilot.MS, 0.1, [{"throughput": 1.0}, {"throughput": 0.0}])]
    with pytest.raises(RequestError, match="runs of 50ms have no throughput; write a time"):
        pilot.prices_of(nothing, Repeat())


def test_a_run_without_samples_says_nothing_of_when_it_is_steady(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bare: Any = SimpleNamespace(samples=[])
    monkeypatch.setattr(transfer, "measure", lambda *of: bare)
    ends: Any = None
    assert pilot._warmup(Transfer(), ends) == 2 * pilot.LOOK
