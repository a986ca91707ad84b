"""Boots as the unit: how far boots of one kernel lie apart, beside runs within one, and what more
of either would buy.

Runs of one boot share what that start of the machine happened to be (where memory lies, which CPU
took which interrupt), so they are no independent draws of what the kernel does: only boots are.
With k boots of r runs each the mean's variance is (between + within / r) / k, of which more runs a
boot shrink the second part alone. Needs numpy and scipy.special only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import fdtri

from netbench.base.units import count
from netbench.model import Repeat
from netbench.stats.intervals import NAN, Numbers, t_quantile

KERNEL = "kernel"
BOOTED = ("boot", "build")  # units whose number a plan fixes
TOO_FEW = 2  # boots whose interval is so wide that it proves next to nothing
ENOUGH = 4
SHOWN = (2, 3, 4, 8)  # numbers of boots that a plan tells the worth of


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
    return t_quantile(boots, confidence) / math.sqrt(boots) if boots > 1 else NAN


@dataclass(frozen=True)
class Split:
    """Where the variance of a cell's runs comes from: standard deviations `between` boots and
    `within` them, in the values' unit.

    `share` is that of the variance between boots in the whole, with its interval `low..high`, which
    a few boots leave wide.
    """

    boots: int
    runs: float  # a boot; between the least and the most where they differ
    mean: float  # of the means of boots
    between: float
    within: float
    share: float = NAN
    low: float = NAN
    high: float = NAN

    def half_width(self, boots: int, runs: float, confidence: float) -> float:
        """Half-width of the mean's interval with so many boots of so many runs each, were both
        deviations as estimated.
        """
        return half_width(boots, confidence) * math.sqrt(self.between**2 + self.within**2 / runs)


def split(values: Numbers, boots: npt.NDArray[np.int64], confidence: float = 0.95) -> Split | None:
    """Split the variance of one cell's runs; None with fewer than 2 boots, or no boot with 2 runs.

    One-way random effects by analysis of variance (Searle, Casella and McCulloch, Variance
    Components, 1992, section 3.6): with mean squares B between and W within boots, between^2 = (B -
    W) / n, never below 0; the share's interval is from that of B / W (there, 3.8; exact for normal
    runs and equally many a boot).
    """
    _, at, counts = np.unique(boots, return_inverse=True, return_counts=True)
    k, total = len(counts), len(values)
    if k < 2 or total == k:
        return None
    means = np.bincount(at, values) / counts
    squares = float(((values - means[at]) ** 2).sum()) / (total - k)
    middle = float(values.mean())
    among = float((counts * (means - middle) ** 2).sum()) / (k - 1)
    runs = float(total - (counts**2).sum() / total) / (k - 1)
    between = max(0.0, (among - squares) / runs)
    low, high = _share(among, squares, (k, total), runs, confidence)
    whole = between + squares
    share = between / whole if whole > 0 else NAN
    return Split(
        k, runs, float(means.mean()), math.sqrt(between), math.sqrt(squares), share, low, high
    )


def _share(
    among: float, within: float, size: tuple[int, int], runs: float, confidence: float
) -> tuple[float, float]:
    """Interval of the share of the variance that is between boots; size: boots, runs in all."""
    if within <= 0:
        return NAN, NAN
    free = size[0] - 1, size[1] - size[0]
    ends = (float(fdtri(*free, (1 + sign * confidence) / 2)) for sign in (1, -1))
    parts = [max(0.0, (among / within / end - 1) / runs) for end in ends]
    return parts[0] / (1 + parts[0]), parts[1] / (1 + parts[1])


def pooled(splits: Sequence[Split]) -> Split | None:
    """The mean split of several cells, relative to their means: `mean` is 1, deviations are
    fractions. None without any.

    Variances are averaged, not deviations. Its share has no interval: boots are common to the
    cells.
    """
    known = [s for s in splits if s.mean]
    if not known:
        return None
    between = float(np.mean([(s.between / s.mean) ** 2 for s in known]))
    within = float(np.mean([(s.within / s.mean) ** 2 for s in known]))
    boots, runs = (
        round(float(np.mean([s.boots for s in known]))),
        float(np.mean([s.runs for s in known])),
    )
    whole = between + within
    return Split(
        boots,
        runs,
        1.0,
        math.sqrt(between),
        math.sqrt(within),
        between / whole if whole > 0 else NAN,
    )


def without_boots(values: Numbers, boots: npt.NDArray[np.int64]) -> Numbers:
    """The values with each boot moved to the common mean: what is left says whether runs within a
    boot are independent draws.
    """
    if not len(boots) or (boots == boots[0]).all():
        return values
    _, at, counts = np.unique(boots, return_inverse=True, return_counts=True)
    means = np.bincount(at, values) / counts
    return values - means[at] + float(values.mean())


@dataclass(frozen=True)
class BootGain:
    """What a number of boots buys, before there is any data: `half_width` as multiple of a boot's
    deviation (NaN: no interval), `lines` in words, and `warning` where it proves too little (""
    else).
    """

    boots: int
    runs_a_boot: int
    half_width: float
    lines: tuple[str, ...]
    warning: str = ""


def what_boots_buy(
    boots: int,
    runs_a_boot: int,
    between_sd: float | None = None,
    *,
    kernels: int = 1,
    builds: int = 1,
    confidence: float = 0.95,
) -> BootGain:
    """What to expect of so many boots of each kernel with so many runs of each cell a boot.

    between_sd: how far boots lie apart as a fraction of the mean, where an earlier result has told.
    kernels: how many are compared. builds: how many each of them has, which share its boots; with
    more than one, builds are what an interval is over.
    """
    noun, units = ("build", builds) if builds > 1 else ("boot", boots)
    mine = half_width(units, confidence)
    of = f" of each of {kernels} kernels" if kernels > 1 else ""
    runs = f"{count(runs_a_boot, 'run')} of each cell a boot"
    if builds > 1:
        each = f"{boots / builds:.3g} boots of each build"
        lines = [f"{count(builds, 'build')}{of}, {each.replace('1 boots', '1 boot')}, {runs}"]
    else:
        lines = [f"{count(boots, 'boot')}{of}, {runs}"]
    others = ", ".join(
        f"{n} {noun}s ± {_sds(half_width(n, confidence))}" for n in SHOWN if n != units
    )
    if units > 1:
        lines.append(
            f"a {confidence:.0%} interval over {units} {noun}s is ± {_sds(mine)} standard"
            f" deviations of a {noun}'s mean"
            + (
                f" (± {mine * between_sd:.2%} where {noun}s differ by {between_sd:.2%})"
                if between_sd is not None
                else ""
            )
            + f"; {others}"
        )
    if kernels > 1 and units > 1:
        lines.append(
            f"the ratio of two kernels has {units} pairs of {noun}s: ± {_sds(mine * math.sqrt(2))}"
            " such deviations"
        )
    if kernels > 1 and builds == 1 < boots:
        lines.append(
            "each kernel is built once: what another layout of its code would change is in no"
            " interval (kernels.NAME.builds)"
        )
    warning = _warning(units, kernels, confidence, noun)
    return BootGain(boots, runs_a_boot, mine, tuple(lines), warning)


def _sds(multiple: float) -> str:
    """Two digits: 8.98 -> 9.0, 1.59 -> 1.6, 0.836 -> 0.84."""
    return f"{multiple:.2f}" if multiple < 1 else f"{multiple:.1f}"


def _warning(units: int, kernels: int, confidence: float, noun: str) -> str:
    key = {"boot": "repeat.boots", "build": "kernels.NAME.builds"}[noun]
    enough = f"{key}: {ENOUGH} gives ± {_sds(half_width(ENOUGH, confidence))} standard deviations"
    if units == 1 and kernels > 1:
        return (
            "with one boot of each kernel no difference between kernels has an interval: it cannot"
            f" be told from what any two boots differ by; {enough}"
        )
    if units == TOO_FEW:
        return (
            f"two {noun}s prove next to nothing: ± {_sds(half_width(2, confidence))} standard"
            f" deviations; {enough}"
        )
    return ""
