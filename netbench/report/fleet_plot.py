"""The heat map of a fleet: senders down, receivers across."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netbench.analysis.fleet import Fleet
from netbench.report.palette import AXIS, BAND, INK, VERDICTS
from netbench.report.plots import WIDTH, Axes, new_axes

NAMED = 40  # hosts that an axis can name; of more, the outlying ones and some
TICKS = 20
DENSE = 0.2  # of the fields filled: below, marks are larger than their fields
LEAST_MARK = 3.5  # points
LEAST_RANGE = 5.0  # percent: a quiet fleet has no glaring colours


def heat_map(fleet: Fleet, axes: Axes | None = None) -> Axes:
    """A field a pair: how far it lies from the fleet's median in percent; names of outlying hosts
    are coloured.
    """
    o = fleet.observed
    used = np.unique(np.concatenate([o.sender, o.receiver]))
    place = np.full(len(o.hosts), -1)
    place[used] = np.arange(len(used))
    names = [o.hosts[i] for i in used.tolist()]
    size = len(names)
    if axes is None:
        height = min(1.6 + 0.2 * size, WIDTH - 1)
        axes = new_axes(height)
        axes.get_figure(root=True).set_size_inches(min(height + 1.4, WIDTH), height)  # type: ignore[union-attr]
    off = 100 * np.expm1(o.mean - np.median(o.mean))
    most = max(float(np.abs(off).max()), LEAST_RANGE)
    across, down = place[o.receiver], place[o.sender]
    style: dict[str, Any] = {"cmap": "RdBu", "vmin": -most, "vmax": most}
    drawn: Any
    if len(o.pairs) >= DENSE * size**2:
        table = np.full((size, size), math.nan)
        table[down, across] = off
        drawn = axes.imshow(table, aspect="equal", interpolation="nearest", **style)
    else:
        points = 72 * (WIDTH - 2) / size
        mark = max(points * 0.9, LEAST_MARK)
        drawn = axes.scatter(
            across, down, s=mark**2, c=off, marker="s", linewidths=0.3, edgecolors=AXIS, **style
        )
        axes.set_aspect("equal")
        axes.set_xlim(-0.5, size - 0.5)
        axes.set_ylim(size - 0.5, -0.5)
    axes.set_facecolor(BAND)
    figure = axes.get_figure(root=True)
    assert figure is not None
    axes.set_anchor("W")
    bar = figure.colorbar(drawn, ax=axes, shrink=0.6, anchor=(0, 0.5))
    bar.set_label("against the fleet's median [%]", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    _name(axes, fleet, names)
    return axes


def _name(axes: Axes, fleet: Fleet, names: list[str]) -> None:
    """Hosts along both axes."""
    slow = {cause.name for cause in fleet.causes}
    slow |= {host for cause in fleet.causes for host in cause.candidates}
    odd = [i for i, name in enumerate(names) if name in slow]
    ticks = list(range(len(names)))
    if len(names) > NAMED:
        step = math.ceil(len(names) / TICKS)
        room = max(len(names) / (2 * TICKS), 1)
        few = odd if len(odd) <= TICKS else odd[:TICKS]
        others = [i for i in range(0, len(names), step) if all(abs(i - k) > room for k in few)]
        ticks = sorted({*few, *others})
    labels = [names[i] for i in ticks]
    axes.set_xticks(ticks, labels, rotation=90)
    axes.set_yticks(ticks, labels)
    for axis in (axes.xaxis, axes.yaxis):
        for i, label in zip(ticks, axis.get_ticklabels(), strict=True):
            marked = names[i] in slow
            label.set_color(VERDICTS["worse"] if marked else INK)
            label.set_fontweight("bold" if marked else "normal")
            label.set_fontsize(7)
    axes.set_xlabel("receiver")
    axes.set_ylabel("sender")
