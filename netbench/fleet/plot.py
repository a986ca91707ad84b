"""The spread of a fleet: everything of a kind in order, and how far out it would be outlying."""

from __future__ import annotations

import numpy as np

from netbench.fleet.effects import Fleet
from netbench.fleet.fit import PAIR, RECEIVER, SENDER
from netbench.report.palette import AXIS, DOT, INK, VERDICTS
from netbench.report.plots import Axes, new_axes
from netbench.stats.words import percent

HEIGHT = 3.2  # inches
NAMED = 2  # of a kind, beside what is outlying
MARKS = {SENDER: ">", RECEIVER: "<", PAIR: "o"}


def spread(fleet: Fleet, axes: Axes | None = None) -> Axes:
    """A mark each for senders, receivers and pairs, the worst first, in percent of the fleet's
    median; what is outlying is coloured and named, and a line is drawn where it would be.
    """
    axes = new_axes(HEIGHT) if axes is None else axes
    start = 0
    for kind, mark in MARKS.items():
        shifts = fleet.lowest(kind)
        if not shifts:
            continue
        at = start + np.arange(len(shifts))
        off = np.array([percent(s.ratio) for s in shifts])
        colours = [VERDICTS["worse"] if s.outlying else DOT for s in shifts]
        axes.scatter(at, off, s=14, c=colours, marker=mark, label=f"{kind}s")
        for i, shift in enumerate(shifts):
            if i >= NAMED and not shift.outlying:
                continue
            weight, colour = ("bold", VERDICTS["worse"]) if shift.outlying else ("normal", INK)
            axes.annotate(
                shift.name,
                (at[i], off[i]),
                xytext=(5, -3),
                textcoords="offset points",
                fontsize=7,
                fontweight=weight,
                color=colour,
            )
        if limit := fleet.fit.limits.get(kind):
            axes.hlines(percent(limit), at[0], at[-1], colors=VERDICTS["worse"], linestyles=":")
        start += len(shifts) + max(len(shifts) // 20, 2)
    axes.axhline(0, color=AXIS, linewidth=0.8, zorder=0)
    axes.set_xticks([])
    axes.set_xlabel("senders ▸, receivers ◂, pairs ●: each in order; dotted: outlying beyond")
    axes.set_ylabel("against the fleet's median [%]")
    return axes
