"""The executor of a unit's steps: what it tells the pool of workers, and other runs of a wave."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from netbench import campaign
from netbench.base.cancel import side_by_side
from netbench.base.errors import SettingRefused, WorkerLost
from netbench.plan.plan import Apply, Plan, Run
from netbench.run.runner import RunResult, empty_record
from netbench.run.start_gate import StartGate
from netbench.run.unit_steps import UnitSteps

ONE = "netbench: 1\nname: u\nhosts: {here: local}\nsettings: {mtu: 1400}\n"


@pytest.mark.parametrize(
    ("error", "reached"),
    [(None, 1), (SettingRefused("mtu: no"), 1), (WorkerLost("here: killed"), 0)],
)
def test_hosts_that_are_lost_after_a_step_was_done_are_waited_for_anew(
    error: Exception | None, reached: int
) -> None:
    said = list[str]()
    (unit,) = Plan(campaign.parse(ONE, "u.yaml")).units

    def enter(unit: object) -> None:
        if error:
            raise error

    pool: Any = SimpleNamespace(
        reached=lambda: said.append("reached"), dismiss_pair=lambda pair: None
    )
    settings: Any = SimpleNamespace(enter=enter)
    recorder: Any = SimpleNamespace(keep_unmeasured=lambda *what: None)
    store: Any = SimpleNamespace(note=lambda line: None)
    nothing: Any = None
    steps = UnitSteps(pool, settings, nothing, nothing, recorder, store)
    if isinstance(error, WorkerLost):
        with pytest.raises(WorkerLost):
            steps.execute(Apply(unit))
    else:
        steps.execute(Apply(unit))
    assert said == ["reached"] * reached


@pytest.mark.timeout(20)
@pytest.mark.parametrize("error", [None, WorkerLost("c: killed")])
def test_no_run_waits_at_the_gate_for_one_that_fails_before_it_is_there(
    error: Exception | None,
) -> None:
    hosts = ", ".join(
        f"{name}: {{ssh: {name}, address: 10.0.0.{i}}}" for i, name in enumerate("abcd")
    )
    pairs = "[{sender: a, receiver: b}, {sender: c, receiver: d}]"
    text = f"netbench: 1\nname: u\nhosts: {{{hosts}}}\npairs: {pairs}\n"
    units = Plan(campaign.parse(text, "u.yaml")).units
    beside = dict[str, tuple[str, ...]]()

    def run(step: Run, number: int, gate: StartGate) -> RunResult:
        name = step.unit.pair.name
        if name == "a>b":
            beside[name] = gate.wait(name)
        elif error:
            raise error
        return RunResult(empty_record(step.unit, number, step.block, step.boot))

    pool: Any = SimpleNamespace(
        reached=lambda: None, dismiss_pair=lambda pair: None, dismiss_lost=lambda pair: None
    )
    settings: Any = SimpleNamespace(renew=lambda unit: None, note=lambda unit, record: record)
    runner: Any = SimpleNamespace(run=run, why_unverified=lambda unit: "")
    recorder: Any = SimpleNamespace(next_number=lambda: 1, keep=lambda *what: None)
    store: Any = SimpleNamespace(note=lambda line: None)
    nothing: Any = None
    steps = UnitSteps(pool, settings, runner, nothing, recorder, store)
    gate = StartGate([unit.pair.name for unit in units])
    acts = [partial(steps.execute, Run(unit, 0, 0, 0), gate) for unit in units]
    if error:
        with pytest.raises(WorkerLost):
            side_by_side(acts, lambda: None)
    else:
        side_by_side(acts, lambda: None)
    assert beside == {"a>b": ()}
