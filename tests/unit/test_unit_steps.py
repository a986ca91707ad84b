"""What the executor of a unit's steps tells the pool of workers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from netbench import campaign
from netbench.conductor.unit_steps import UnitSteps
from netbench.errors import SettingRefused, WorkerLost
from netbench.plan import Apply, Plan

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
