"""Groups of hosts against the rest of the fleet, as senders and as receivers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import stdtrit

from netbench.analysis.fleet_model import Observed, Shifts
from netbench.analysis.fleet_outliers import RECEIVER, SENDER, Analysis
from netbench.analysis.intervals import ratio_confidence
from netbench.model import Repeat


@dataclass(frozen=True)
class GroupShift:
    """How much more a group's hosts move as `kind` (sender, receiver) than the rest of the fleet:
    a ratio with its interval, corrected for all groups (Bonferroni).
    """

    group: str
    kind: str
    hosts: int
    pairs: int
    ratio: float
    low: float
    high: float


def group_shifts(
    o: Observed, analysis: Analysis, groups: Mapping[str, Sequence[str]], repeat: Repeat
) -> Iterator[GroupShift]:
    """Groups against the rest, without what is said of outlying hosts, pairs and links already.
    Groups of all hosts, and of none, are left out.
    """
    names, columns = [], []
    for group, members in groups.items():
        mine = np.isin(o.hosts, list(members))
        for kind, ends in ((SENDER, o.sender), (RECEIVER, o.receiver)):
            column = mine[ends]
            if 0 < column.sum() < len(column):
                names.append((group, kind, len(set(ends[column].tolist())), int(column.sum())))
                columns.append(column.astype(float))
    if not columns:
        return
    outliers = analysis.outliers
    model = Shifts(o, analysis.spread, sparse.csc_matrix(np.column_stack([*columns, outliers])))
    for at in range(outliers.shape[1]):
        model.fix(len(columns) + at)
    level = ratio_confidence(repeat, len(columns))
    for i, (group, kind, hosts, pairs) in enumerate(names):
        if not model.known[i]:
            continue
        shift = float(model.score[i] / model.information[i])
        half = stdtrit(max(hosts - 1, 1), (1 + level) / 2) / math.sqrt(model.information[i])
        bounds = (math.exp(shift - half), math.exp(shift + half)) if hosts > 1 else (math.nan,) * 2
        yield GroupShift(group, kind, hosts, pairs, math.exp(shift), *bounds)
