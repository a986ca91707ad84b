"""Whether good hosts are called outlying, and a bad one is: fleets by the thousand, of which each
host's shift is drawn, through the rule that reports use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from netbench.fleet.fit import LEVEL, far_below
from netbench.stats.intervals import Numbers
from tools.bench.table import Row

FLEETS, HOSTS, SEED = 20_000, 30, 1
MOST_WRONG, LEAST_FOUND = 0.06, 0.95
APART, SLOW = 0.005, 0.95
TESTS = 3  # senders, receivers, pairs: where the fit tells hosts
KINDS = ("normal", "t3", "exponential")
HOW = (
    f"Outlying: {FLEETS} fleets a row (seed {SEED}), each a ring of {HOSTS} hosts, whose pairs move"
    " what their sender and their receiver do; and senders and receivers as a fit of several"
    f" partners gives them. A slow sender is at {SLOW - 1:.0%}, where hosts are normal with a"
    f" standard deviation of {APART:.1%}."
)


def drawn(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> Numbers:
    """Shifts of good hosts, of a row each fleet; exponential ones are towards slow."""
    if kind == "t3":
        return rng.standard_t(3, shape)
    return rng.normal(size=shape) if kind == "normal" else -rng.exponential(size=shape)


def ring(sends: Numbers, receives: Numbers) -> Numbers:
    """What the pairs of a ring move."""
    return sends + np.roll(receives, -1, axis=1)


def shares(fleets: int, seed: int = SEED) -> Mapping[str, float]:
    """By question, the share of fleets: with anything outlying, of good hosts; with the slow sender
    outlying and nothing else.
    """
    rng = np.random.default_rng(seed)
    shape = (fleets, HOSTS)
    found = {}
    for kind in KINDS:
        one, two = (drawn(kind, shape, rng) for _ in range(2))
        alike = f"ring, {kind} and alike both ways"
        for what, each in ((f"ring, {kind}", ring(one, two)), (alike, ring(one, one))):
            found[what] = float(np.mean(far_below(each)[0] > 0))
        any_of = [far_below(each, LEVEL / TESTS)[0] > 0 for each in (one, two)]
        found[f"senders and receivers, {kind}"] = float(np.mean(any_of[0] | any_of[1]))
    sends, receives = (APART * drawn("normal", shape, rng) for _ in range(2))
    sends[:, 0] = math.log(SLOW)
    for what, each, level in (
        ("ring", ring(sends, receives), LEVEL),
        ("senders", sends, LEVEL / TESTS),
    ):
        named = (far_below(each, level)[0] > 0) & (each.argmin(axis=1) == 0)
        found[f"{what}, a slow one is named"] = float(np.mean(named))
    return found


def rows() -> list[Row]:
    """A row a share."""
    return [
        Row(what, f"{share:.1%}", "", "", budget(what), holds(what, share))
        for what, share in shares(FLEETS).items()
    ]


def holds(what: str, share: float, slack: float = 0.0) -> bool:
    """Whether a share keeps its budget, but for what so few fleets leave open."""
    return share >= LEAST_FOUND - slack if "slow" in what else share <= MOST_WRONG + slack


def budget(what: str) -> str:
    """In words."""
    return f"at least {LEAST_FOUND:.0%}" if "slow" in what else f"at most {MOST_WRONG:.0%}"
