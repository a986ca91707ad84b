"""Segments: series of several lengths that lie one after the other in one array, so that all of
them are computed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
_Kind = TypeVar("_Kind", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments of `lengths`; what is computed of values has one number a segment, 0 for one without
    values.
    """

    lengths: Counts

    @classmethod
    def of(cls, series: Sequence[npt.NDArray[np.generic]]) -> Segments:
        """Those of series that are concatenated."""
        return cls(np.array([len(each) for each in series], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def at(self) -> Counts:
        """The segment of each value."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @cached_property
    def filled(self) -> Counts:
        """Segments that have values."""
        return np.flatnonzero(self.lengths)

    @cached_property
    def starts(self) -> Counts:
        """The place of the first value of each of those."""
        return (np.cumsum(self.lengths) - self.lengths)[self.filled]

    def where(self, which: npt.NDArray[np.bool_]) -> Segments:
        """The segments of those values at which `which` is true."""
        return Segments(np.bincount(self.at[which], minlength=len(self)))

    def only(self, which: npt.NDArray[np.bool_]) -> Segments:
        """Some of the segments, whole."""
        return Segments(self.lengths[which])

    def sums(self, values: Numbers) -> Numbers:
        """The sums of the values."""
        return self._reduced(np.add, values)

    def means(self, values: Numbers) -> Numbers:
        """Sums over lengths."""
        return self.sums(values) / np.maximum(self.lengths, 1)

    def residuals(self, values: Numbers) -> Numbers:
        """Of each value: less the mean of its segment."""
        return values - self.means(values)[self.at]

    def lowest(self, values: Numbers) -> Numbers:
        """The least values."""
        return self._reduced(np.minimum, values)

    def highest(self, values: Numbers) -> Numbers:
        """The greatest values."""
        return self._reduced(np.maximum, values)

    def _reduced(self, function: np.ufunc, values: Numbers) -> Numbers:
        found = np.zeros(len(self))
        if len(values):
            found[self.filled] = function.reduceat(values, self.starts)
        return found


def joined(series: Sequence[npt.NDArray[_Kind]]) -> tuple[npt.NDArray[_Kind], Segments]:
    """Series as one array."""
    nothing: npt.NDArray[Any] = np.empty(0, dtype=np.int64)
    return np.concatenate(series) if len(series) else nothing, Segments.of(series)
