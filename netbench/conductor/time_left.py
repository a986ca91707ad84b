"""The estimated time that is left of a campaign."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from netbench.analysis.stopping import Assessment
from netbench.plan import Key, Plan, run_seconds


class TimeLeft:
    """Seconds of the runs and boots to come, if intervals shrink with the square root of the number
    of runs.

    Each unit's share is kept until the unit is measured again: adding up all units after every run
    would take longer than the run.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._repeat = plan.repeat
        self._units = {unit.key: unit for unit in plan.units}
        self._seconds: dict[Key, float] = {}

    def measured(self, key: Key, assessment: Assessment) -> None:
        """A unit has one more run."""
        self._seconds[key] = self._runs_left(assessment) * run_seconds(self._units[key])

    def seconds(
        self, block: int, open_keys: Iterable[Key], assess: Callable[[Key], Assessment]
    ) -> float:
        """Of the runs of all open units, and of the boots after that of `block`."""
        runs = 0.0
        for key in open_keys:
            if key not in self._seconds:
                self.measured(key, assess(key))
            runs += self._seconds[key]
        return runs + self._plan.seconds_of_boots(block)

    def _runs_left(self, assessment: Assessment) -> int:
        """Runs of a unit until its least precise metric is as precise as the campaign wants it."""
        repeat = self._repeat
        intervals = (assessment.intervals.get(name) for name in repeat.metrics)
        widths = [interval.precision for interval in intervals if interval and interval.known]
        ratio = max(widths, default=1.0) / repeat.precision
        wanted = math.ceil(assessment.n * ratio**2) if assessment.n else repeat.min
        return max(min(max(wanted, repeat.min), repeat.max) - assessment.n, 0)
