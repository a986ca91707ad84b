"""Boots as the unit, and builds above them: how far they lie apart, beside runs within a boot, and
what more of each would buy.

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
from dataclasses import dataclass

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
    """Whether netbench boots the hosts: then each cell gets a fixed number of runs a boot, and
    nothing stops early.
    """
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


@dataclass(frozen=True)
class Split:
    """Where the variance of a cell's runs comes from: standard deviations `between` boots (of one
    build, where there are several), `within` a boot, and `apart` of builds, in the values' unit.

    Of `builds` builds with `boots` boots of `runs` runs, means where they differ. With one build
    `apart` is NaN. `between` is NaN where each of several builds has one boot: `apart` then holds
    both.
    """

    boots: float
    runs: float
    mean: float
    between: float
    within: float
    builds: int = 1
    apart: float = NAN

    def deviation(self, unit: str, runs: float = 1, boots: float = 1) -> float:
        """The deviation of a run within a boot, of a `boot` of so many runs, or of a `build` of so
        many such boots.
        """
        if unit not in BOOTED:
            return self.within
        between = 0.0 if math.isnan(self.between) else self.between
        of_boot = math.hypot(between, self.within / math.sqrt(runs))
        return of_boot if unit == "boot" else math.hypot(self.apart, of_boot / math.sqrt(boots))


def split(values: Numbers, boots: Places, builds: Builds | None = None) -> Split | None:
    """Split the variance of one cell's runs; None with fewer than 2 boots, or no boot with 2 runs;
    with `builds` also where a boot has none, or all have the same.

    Random effects by analysis of variance (Searle, Casella and McCulloch, Variance Components,
    1992, sections 3.6 and 5.6; of unequal numbers Sahai and Ojeda, Analysis of Variance for Random
    Models II, 2005, chapter 15); no variance is below 0.
    """
    known, at, counts = np.unique(boots, return_inverse=True, return_counts=True)
    numbers = [1 if builds is None else builds.get(boot, 0) for boot in known.tolist()]
    groups, of = np.unique(numbers, return_inverse=True)
    a, b, total = len(groups), len(known), len(values)
    if 0 in numbers or total == b or b < 2 or (builds is not None and a < 2):
        return None
    means, sizes = np.bincount(at, values) / counts, np.bincount(of, counts)
    centres = np.bincount(of, counts * means) / sizes
    within = float(((values - means[at]) ** 2).sum()) / (total - b)
    shares = float((np.bincount(of, counts**2) / sizes).sum())
    between = NAN
    if b > a:
        among = float((counts * (means - centres[of]) ** 2).sum()) / (b - a)
        between = max(0.0, (among - within) / ((total - shares) / (b - a)))
    mean = float((np.bincount(of, means) / np.bincount(of)).mean())
    if a == 1:
        runs = (total - shares) / (b - 1)
        return Split(b, runs, mean, math.sqrt(between), math.sqrt(within))
    whole = float((sizes * (centres - float(values.mean())) ** 2).sum()) / (a - 1)
    if b > a:
        whole -= (shares - float((counts**2).sum()) / total) / (a - 1) * between
    apart = (whole - within) / ((total - float((sizes**2).sum()) / total) / (a - 1))
    deviations = math.sqrt(between), math.sqrt(within), a, math.sqrt(max(0.0, apart))
    return Split(b / a, total / b, mean, *deviations)


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
    boots: int, runs_a_boot: int, *, kernels: int = 1, builds: int = 1, confidence: float = 0.95
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
    told = ", ".join((*each, f"{count(runs_a_boot, 'run')} of each cell a boot"))
    few = ""
    if units == 1 and kernels > 1:
        few = (
            "with one boot of each kernel no difference between kernels has an interval: it cannot"
            " be told from what any two boots differ by"
        )
    elif units == TOO_FEW:
        width = half_width(TOO_FEW, confidence)
        few = f"two {noun}s prove next to nothing: ± {width:.1f} standard deviations"
    if not few:
        return told, ""
    key = {"boot": "repeat.boots", "build": "kernels.NAME.builds"}[noun]
    enough = half_width(ENOUGH, confidence)
    return told, f"{few}; {key}: {ENOUGH} gives ± {enough:.1f} standard deviations"
