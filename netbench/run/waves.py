"""Steps that are executed at the same time, one thread a pair; pairs that break are given up while
the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from netbench.base.cancel import side_by_side
from netbench.base.errors import HostGone, Lost
from netbench.model import Pair
from netbench.plan.plan import Plan, Run, Step
from netbench.run.ledger import LOST
from netbench.run.recorder import Recorder
from netbench.run.retry import ATTEMPTS
from netbench.run.start_gate import StartGate
from netbench.run.unit_steps import UnitSteps


class Waves:
    """Executes groups of steps side by side.

    A pair whose host is gone, or which loses a worker in so many runs in a row, takes no further
    part. Its open units have failed as soon as another pair has completed a run since: what all
    pairs lose is the controller's own network, and the campaign ends as lost, so that `resume` goes
    on with all of them.
    """

    def __init__(
        self,
        plan: Plan,
        steps: UnitSteps,
        recorder: Recorder,
        interrupt: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        """`interrupt`: makes all threads return that wait for a worker."""
        self._steps = steps
        self._recorder = recorder
        self._interrupt = interrupt
        self._say = say
        self._units = plan.units
        self._ends_with_pair = len(plan.campaign.pairs) == 1 or plan.boots
        self._losses: dict[Pair, int] = {}  # runs in a row in which a worker was lost
        self._broken: dict[Pair, str] = {}
        self._unsaid: list[Pair] = []  # of those, the ones whose units have no record of it yet

    def execute(self, steps: Sequence[Step]) -> None:
        """Steps of different pairs, of one kind, at the same time. Errors: the first one of a step;
        Lost where the campaign cannot go on without the pair.
        """
        there = [step for step in steps if step.unit.pair not in self._broken]
        runs = [step for step in there if isinstance(step, Run)]
        lost = self._run(runs) if len(runs) > 1 else self._lost_of(there, self._steps.execute)
        for pair, error in lost.items():
            self._losses[pair] = self._losses.get(pair, 0) + 1
            if len(runs) < 2 or isinstance(error, HostGone) or self._losses[pair] == ATTEMPTS:
                self._give_up(pair, error)
        done = [step.unit.pair for step in runs if step.unit.pair not in lost]
        for pair in done:
            self._losses.pop(pair, None)
        if done:
            self._keep_given_up()

    def end_block(self) -> None:
        """See that a pair is left that goes on. Errors: Lost."""
        if self._unsaid:
            raise Lost("; ".join(dict.fromkeys(self._broken[pair] for pair in self._unsaid)))

    def _run(self, runs: Sequence[Run]) -> dict[Pair, Lost]:
        """Runs that begin together, once the workers of all are there."""
        lost = self._lost_of(runs, self._steps.prepare)
        ready = [run for run in runs if run.unit.pair not in lost]
        gate = StartGate([run.unit.pair.name for run in ready])
        self._steps.number(ready)
        return lost | self._lost_of(ready, lambda run: self._steps.execute(run, gate))

    def _lost_of(self, steps: Sequence[Step], act: Callable[[Step], None]) -> dict[Pair, Lost]:
        """The pairs that lose a worker or a host in their steps, with what they lose."""
        lost: dict[Pair, Lost] = {}

        def guarded(step: Step) -> None:
            try:
                act(step)
            except Lost as error:
                if self._ends_with_pair:
                    raise
                lost[step.unit.pair] = error

        if len(steps) == 1:
            guarded(steps[0])
        elif steps:
            side_by_side([partial(guarded, step) for step in steps], self._interrupt)
        return lost

    def _give_up(self, pair: Pair, error: Lost) -> None:
        self._broken[pair] = str(error)
        self._unsaid.append(pair)
        self._say(f"{pair.name} is given up: {error}")

    def _keep_given_up(self) -> None:
        """Records of what the pairs that broke have not done: another has gone on since."""
        for unit in self._units if self._unsaid else ():
            if unit.pair in self._unsaid and self._recorder.ledger.is_open(unit.key):
                self._recorder.keep_unmeasured(unit, "failed", LOST + self._broken[unit.pair])
        self._unsaid = []
