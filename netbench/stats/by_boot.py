"""Boots as the unit, and builds above them: how far boots lie apart, beside runs within one, and
what so many of them buy.

Runs of one boot share what that start of the machine happened to be (where memory lies, which CPU
took which interrupt), so they are no independent draws of what the kernel does: only boots are.
With k boots of r runs each the mean's variance is (between + within / r) / k, of which more runs a
boot shrink the second part alone. A kernel of the same source is another one to caches and branch
predictors once its code lies elsewhere, so a difference of two kernels that were built once holds
the luck of two layouts: k builds of b boots have (apart + (between + within / r) / b) / k.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from netbench.base.units import count
from netbench.model import Repeat
from netbench.stats.intervals import NAN, Numbers, t_quantile

Places = npt.NDArray[np.int64]
Builds = Mapping[int, int]
"""For each boot of a kernel with several builds, the build's number."""

KERNEL = "kernel"
BOOTED = ("boot", "build")  # units whose number a plan fixes
TOO_FEW = 2  # boots whose interval is so wide that it proves next to nothing
ENOUGH = 4


def in_boots(repeat: Repeat, swept: Iterable[str]) -> bool:
    """Whether netbench boots the hosts: then cells get a fixed number of runs a boot."""
    return repeat.boots > 1 or KERNEL in swept


def runs_a_boot(repeat: Repeat) -> int:
    """Runs of each cell in each of its boots: together `min` at least."""
    return math.ceil(repeat.min / repeat.boots)


def half_width(boots: int, confidence: float = 0.95) -> float:
    """Half-width of the interval of a mean over so many boots, as a multiple of the standard
    deviation of one boot's mean.

    8.98 for 2, 2.48 for 3, 1.59 for 4, 0.84 for 8; NaN for 1, which has no interval.
    """
    return t_quantile(boots - 1, confidence) / math.sqrt(boots) if boots > 1 else NAN


class Split(NamedTuple):
    """Where the variance of a cell's runs comes from: the `mean` of its boots, and standard
    deviations `between` boots and `within` a boot, in the values' unit.
    """

    mean: float
    between: float
    within: float


def split(values: Numbers, boots: Places) -> Split | None:
    """Split the variance of one cell's runs; None with fewer than 2 boots, or no boot with 2 runs.

    Random effects by analysis of variance (Searle, Casella and McCulloch, Variance Components,
    1992, section 3.6); no variance is below 0.
    """
    known, at, counts = np.unique(boots, return_inverse=True, return_counts=True)
    number, total = len(known), len(values)
    if number < 2 or total == number:
        return None
    means = np.bincount(at, values) / counts
    within = float(((values - means[at]) ** 2).sum()) / (total - number)
    among = float((counts * (means - values.mean()) ** 2).sum()) / (number - 1)
    runs = (total - float((counts**2).sum()) / total) / (number - 1)
    between = max(0.0, (among - within) / runs)
    return Split(float(means.mean()), math.sqrt(between), math.sqrt(within))


def without_boots(values: Numbers, boots: Places) -> Numbers:
    """The values with each boot moved to the common mean: what is left says whether runs within a
    boot are independent draws.
    """
    if not len(boots) or (boots == boots[0]).all():
        return values
    _, at, counts = np.unique(boots, return_inverse=True, return_counts=True)
    means = np.bincount(at, values) / counts
    return values - means[at] + float(values.mean())


def what_boots_buy(
    boots: int, runs_a_boot: int, *, kernels: int = 1, builds: int = 1
) -> tuple[str, str]:
    """So many boots of each kernel with so many runs of each cell a boot, in words; and a warning
    where it proves too little ("" else).

    kernels: how many are compared. builds: how many each of them has, which share its boots; with
    more than one, builds are what an interval is over.
    """
    noun, units = ("build", builds) if builds > 1 else ("boot", boots)
    each = [f"{count(units, noun)}{f' of each of {kernels} kernels' if kernels > 1 else ''}"]
    share = f"{boots / builds:.3g}"
    each += [f"{share} boot{'s' * (share != '1')} of each build"] if builds > 1 else []
    text = ", ".join((*each, f"{count(runs_a_boot, 'run')} of each cell a boot"))
    enough = f"take {ENOUGH} or more"
    if units == 1 and kernels > 1:
        return text, f"one boot of each kernel has no interval: {enough} (repeat.boots)"
    return text, f"two {noun}s prove next to nothing: {enough}" if units == TOO_FEW else ""
