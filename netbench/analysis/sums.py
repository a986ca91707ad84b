"""Running sums of values that come one at a time: the interval of their mean at a cost that does
not grow with their number.

The sums agree with the mean and deviation of the whole list to about nine digits. A decision that
lies nearer to its limit than that is made from the list itself (`is_close`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from netbench.analysis.intervals import Interval, mean_interval, t_quantile

_RELATIVE, _ABSOLUTE = 1e-6, 1e-12


def is_close(value: float, limit: float, scale: float = 1.0) -> bool:
    """Whether rounding could put a value, computed from numbers of size `scale`, on the other side
    of a limit; True for a value that is no number.
    """
    return not abs(value - limit) > _RELATIVE * abs(limit) + _ABSOLUTE * scale


class Sums:
    """Number, mean and squared deviations of values (Welford 1962, doi:10.2307/1266577), and the
    mean of each boot.
    """

    __slots__ = ("_boots", "lowest", "mean", "n", "squares")

    def __init__(self, values: Iterable[tuple[float, int]] = ()) -> None:
        """values: each with its boot."""
        self.n = 0
        self.mean = 0.0
        self.squares = 0.0
        self.lowest = math.inf
        self._boots: dict[int, tuple[int, float]] = {}  # number and sum
        for value, boot in values:
            self.add(value, boot)

    def add(self, value: float, boot: int) -> None:
        """Take in a value."""
        self.n += 1
        difference = value - self.mean
        self.mean += difference / self.n
        self.squares += difference * (value - self.mean)
        self.lowest = min(self.lowest, value)
        number, total = self._boots.get(boot, (0, 0.0))
        self._boots[boot] = number + 1, total + value

    @property
    def boots(self) -> Iterable[int]:
        """The boots of the values."""
        return self._boots.keys()

    def interval(self, confidence: float) -> Interval:
        """Of the mean of all values, as intervals.mean_interval has it."""
        n, mean = self.n, self.mean
        if n < 2:
            return Interval(n, mean) if n else Interval(0)
        sd = math.sqrt(self.squares / (n - 1))
        half = t_quantile(n, confidence) / math.sqrt(n) * sd
        return Interval(n, mean, mean - half, mean + half, sd, half)

    def interval_of_boots(self, confidence: float) -> Interval:
        """Of the mean of the boots' means."""
        means = [total / number for _, (number, total) in sorted(self._boots.items())]
        return mean_interval(means, confidence)
