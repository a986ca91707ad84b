"""The estimated time that is left of a campaign."""

from __future__ import annotations

import math

from netbench.plan.plan import Key, Plan
from netbench.run.ledger import Ledger
from netbench.stats.closing import Assessment


class TimeLeft:
    """Seconds of the runs and boots to come, if intervals shrink with the square root of the number
    of runs.

    Each unit's share is kept until the unit is measured again, and so is the sum of those that are
    open, until the next block: adding up all units after every run would take longer than the run.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._repeat = plan.repeat
        self._units = {unit.key: unit for unit in plan.units}
        self._seconds: dict[Key, float] = {}
        self._sum = 0.0
        self._counted: set[Key] = set()  # in the sum
        self._block: int | None = None  # that the sum is of

    def measured(self, key: Key, assessment: Assessment, is_open: bool) -> None:
        """A unit has one more run."""
        if key in self._counted:
            self._sum -= self._seconds[key]
            self._counted.discard(key)
        self._seconds[key] = self._seconds_of(key, assessment)
        if is_open:
            self._sum += self._seconds[key]
            self._counted.add(key)

    def seconds(self, block: int, ledger: Ledger) -> float:
        """Of the runs of all open units, and of the boots after that of `block`."""
        if block != self._block:
            self._block = block
            self._add_up(ledger)
        return max(self._sum, 0.0) + self._plan.seconds_of_boots(block)

    def _add_up(self, ledger: Ledger) -> None:
        self._counted = set(ledger.open_keys)
        for key in self._counted - self._seconds.keys():
            self._seconds[key] = self._seconds_of(key, ledger.assessment(key))
        self._sum = math.fsum(self._seconds[key] for key in self._counted)

    def _seconds_of(self, key: Key, assessment: Assessment) -> float:
        return self._runs_left(assessment) * self._plan.run_seconds(self._units[key])

    def _runs_left(self, assessment: Assessment) -> int:
        """Runs of a unit until its least precise metric is as precise as the campaign wants it."""
        repeat = self._repeat
        intervals = (assessment.intervals.get(name) for name in repeat.metrics)
        widths = [interval.precision for interval in intervals if interval and interval.known]
        ratio = max(widths, default=1.0) / repeat.precision
        wanted = math.ceil(assessment.n * ratio**2) if assessment.n else repeat.min
        return max(min(max(wanted, repeat.min), repeat.max) - assessment.n, 0)
