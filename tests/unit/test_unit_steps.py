"""The executor of steps: what it tells the pool of workers, and other runs of a wave."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from netbench import campaign
from netbench.base.errors import SettingRefused, WorkerLost
from netbench.plan.plan import Apply, Plan, Run, Unit
from netbench.result.record import Record
from netbench.run.ends import Measurement
from netbench.run.runner import Runner

ONE = "netbench: 1\nname: u\nhosts: {here: local}\nsettings: {mtu: 1400}\n"


def made(plan: Plan, pool: dict[str, Any], settings: Any, kept: dict[str, Record]) -> Runner:
    """A runner on such a pool; `kept` gets what it records."""

    def keep(unit: Unit, record: Record, *beside: object) -> None:
        kept[unit.pair.name] = record

    numbers = itertools.count(1)
    recorder: Any = SimpleNamespace(
        keep=keep,
        keep_unmeasured=lambda *what: None,
        next_number=lambda: next(numbers),
        store=SimpleNamespace(note=lambda line: None),
    )
    workers: Any = SimpleNamespace(dismiss_pair=lambda pair: None, **pool)
    nothing: Any = None
    return Runner(
        plan, plan.campaign, workers, settings, nothing, nothing, recorder, lambda line: None
    )


@pytest.mark.parametrize(
    ("error", "reached"),
    [(None, 1), (SettingRefused("mtu: no"), 1), (WorkerLost("here: killed"), 0)],
)
def test_hosts_that_are_lost_after_a_step_was_done_are_waited_for_anew(
    error: Exception | None, reached: int
) -> None:
    said = list[str]()
    plan = Plan(campaign.parse(ONE, "u.yaml"))

    def enter(unit: object) -> None:
        if error:
            raise error

    settings = SimpleNamespace(enter=enter, wanted=lambda unit: True)
    runner = made(plan, {"reached": lambda: said.append("reached")}, settings, {})
    if isinstance(error, WorkerLost):
        with pytest.raises(WorkerLost, match="3 times in a row"):
            runner.execute([Apply(*plan.units)])
    else:
        runner.execute([Apply(*plan.units)])
    assert said == ["reached"] * reached


@pytest.mark.timeout(20)
@pytest.mark.parametrize("error", [TimeoutError("no answer"), WorkerLost("c: killed")])
def test_no_run_waits_at_the_gate_for_one_that_fails_before_it_is_there(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    hosts = ", ".join(
        f"{name}: {{ssh: {name}, address: 10.0.0.{i}}}" for i, name in enumerate("abcd")
    )
    pairs = "[{sender: a, receiver: b}, {sender: c, receiver: d}]"
    text = f"netbench: 1\nname: u\nverify: off\nhosts: {{{hosts}}}\npairs: {pairs}\n"
    plan = Plan(campaign.parse(text, "u.yaml"))
    kept = dict[str, Record]()

    def measure(unit: Unit, ends: object, number: int, start: Callable[[], None]) -> Measurement:
        if unit.pair.name == "a>b":
            start()
            raise ValueError("it began")
        raise error

    pool = {
        "reached": lambda: None,
        "dismiss_lost": lambda pair: None,
        "pair_workers": lambda pair: (None, None),
        "interrupt": lambda: None,
    }
    settings = SimpleNamespace(renew=lambda unit: None, note=lambda unit, record: record)
    runner = made(plan, pool, settings, kept)
    monkeypatch.setattr(runner, "_measure", measure)
    monkeypatch.setattr(runner, "_ends", SimpleNamespace(ends=lambda unit, beside: ()))
    runner.execute([Run(unit, 0, 0, 0, round=1) for unit in plan.units])
    assert kept["a>b"].concurrent == ()
    assert kept["a>b"].reason == "it began"
    lost = isinstance(error, WorkerLost)
    assert kept["c>d"].status == ("interrupted" if lost else "failed")
