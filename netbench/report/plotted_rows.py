"""The rows of a plot of means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netbench.read.cells import CellResult


@dataclass(frozen=True)
class Rows:
    """The rows of a plot of means: a label, the values of its runs in their order, their numbers,
    and mean with interval.
    """

    labels: Sequence[str]
    cells: Sequence[CellResult]
    values: Sequence[np.ndarray]
    runs: Sequence[np.ndarray]
