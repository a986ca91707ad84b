"""Quantiles of log-linear histograms, as the engine counts them (native/src/histogram.h): 128
buckets of each power of two, of ns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

BITS = 7
"""Buckets of a power of two, as a power of two: a bucket is at most 1/128 of its values wide."""
BUCKETS = 36 << BITS
LEAST = 10
"""Requests above a quantile without which it is not told: one of fewer is of chance alone."""
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}


@dataclass(frozen=True)
class Histogram:
    """Times in ns: their number, sum and longest, exactly; and the counts of buckets."""

    count: int
    sum: int
    most: int
    buckets: Sequence[tuple[int, int]]

    @staticmethod
    def of(numbers: Sequence[int]) -> Histogram:
        """Of a worker's numbers: count, sum, most, then each bucket and its count. Errors:
        ValueError where they are none of a histogram.
        """
        count, total, most, *rest = numbers
        buckets = list(zip(rest[::2], rest[1::2], strict=True))
        places = [bucket for bucket, number in buckets if number > 0 <= bucket < BUCKETS]
        if places != sorted(set(places)) or len(places) < len(buckets):
            raise ValueError("buckets of a histogram are out of order, or are none")
        if sum(number for _, number in buckets) != count:
            raise ValueError("a histogram's buckets hold another number than it counted")
        return Histogram(count, total, most, buckets)

    @staticmethod
    def merged(parts: Sequence[Histogram]) -> Histogram:
        """All times of several, at least one, in one."""
        buckets = Counter[int]()
        for part in parts:
            buckets.update(dict(part.buckets))
        counts = sum(part.count for part in parts), sum(part.sum for part in parts)
        return Histogram(*counts, max(part.most for part in parts), sorted(buckets.items()))

    def quantile(self, share: float) -> float | None:
        """In ns, between the two values next to the share * (count + 1/3) + 1/3-th, those of a
        bucket spread over it evenly; None where fewer than LEAST are above. Source: Hyndman and
        Fan, "Sample quantiles in statistical packages" (1996), type 8: its median is the
        quantile's, whatever the distribution, so means over runs of few requests are not too low.
        """
        if self.count * (1 - share) < LEAST * (1 - 1e-9):
            return None
        part, rank = math.modf(share * (self.count + 1 / 3) + 1 / 3)
        return self._ranked(int(rank)) * (1 - part) + self._ranked(int(rank) + 1) * part

    def _ranked(self, rank: int) -> float:
        below = 0
        for bucket, number in self.buckets:
            if below + number >= rank:
                low, width = bounds(bucket)
                return min(low + width * (rank - below - 0.5) / number, self.most)
            below += number
        return self.most

    def eighths(self) -> Counter[int]:
        """Counts by the longest time in ns of eighths of powers of two, each of whole buckets."""
        counts = Counter[int]()
        for bucket, number in self.buckets:
            counts[int(bounds((bucket >> BITS - 3) + 1 << BITS - 3)[0])] += number
        return counts

    def deviation(self) -> float:
        """The standard deviation in ns, as if each time were in the middle of its bucket."""
        mean = self.sum / self.count
        middles = ((low + width / 2, n) for b, n in self.buckets for low, width in [bounds(b)])
        return math.sqrt(sum(n * (at - mean) ** 2 for at, n in middles) / self.count)

    def numbers(self) -> dict[str, float]:
        """Mean, quantiles that there are, and the longest, in µs, by the names of metrics."""
        if not self.count:
            return {}
        quantiles = {name: self.quantile(share) for name, share in QUANTILES.items()}
        known = {name: value for name, value in quantiles.items() if value is not None}
        return {
            name: value / 1e3
            for name, value in {"latency": self.sum / self.count, **known, "max": self.most}.items()
        }


def bounds(bucket: int) -> tuple[float, int]:
    """Where a bucket begins and how wide it is, in ns: of whole numbers, so half a one lower."""
    power = max(0, (bucket >> BITS) - 1)
    return (bucket - (power << BITS) << power) - 0.5, 1 << power
