"""The view of `run` and `resume` on a terminal: drawn between runs alone, from what the campaign
knows anyway. Nothing runs beside a measured run.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from netbench.base.errors import StoreError
from netbench.base.terminal import Painter, is_drawable
from netbench.live.cautions import Noise, cautions
from netbench.live.seldom import Seldom
from netbench.live.standing import Overview, overview
from netbench.plan.plan import Plan
from netbench.result.record import Record
from netbench.run.ledger import Ledger
from netbench.run.progress import Lines, Progress

if TYPE_CHECKING:
    from netbench.stats.comparison import Comparison

LEAST_SECONDS = 1.0  # between two drawings
SHARE = 0.02  # of the time, that drawing may take
MARGIN = 2  # lines of the terminal that are left for what is printed


class View(Lines):
    """The view at the bottom of a terminal; messages stay above it."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._painter = Painter(sys.stderr)
        self._drawing = Seldom(SHARE, LEAST_SECONDS)
        self._comparing = Seldom(SHARE)
        self._comparisons: list[Comparison] = []
        self._compared = -1  # the number of runs then
        self._plan: Plan | None = None
        self._folder = Path()
        self._broken = False
        self._noise: Noise | None = None

    def _print(self, text: str) -> None:
        self._painter.print(self.folded(text))

    def begin(self, plan: Plan, ledger: Ledger, folder: Path) -> None:
        self._plan, self._folder, self._noise = plan, folder, Noise(folder)
        # What draws takes a while to import, and only a terminal needs it: not between two runs.
        import netbench.live.screen

        if plan.campaign.compare:
            import netbench.live.standings  # noqa: F401
        self._drawing.do(lambda: self._show(ledger, None))

    def ran(self, record: Record, ledger: Ledger, left: float) -> None:
        if self._drawing.is_due:
            self._drawing.do(lambda: self._show(ledger, left))

    def _show(self, ledger: Ledger, left: float | None) -> None:
        """Draw the view; a defect of it ends no campaign."""
        if self._broken:
            return
        try:
            self._draw(ledger, left)
        except Exception as error:
            self._broken = True
            self._painter.clear()
            self.say(f"the view has failed, the campaign goes on: {type(error).__name__}: {error}")

    def _draw(self, ledger: Ledger, left: float | None) -> None:
        from netbench.live.screen import render

        columns, rows = self._painter.size
        view = self._overview(ledger, left, rows)
        self._painter.draw(render(view, columns - 1, rows - MARGIN, colour=True))

    def _overview(self, ledger: Ledger, left: float | None, room: int) -> Overview:
        assert self._plan
        assert self._noise
        plan = self._plan
        with suppress(StoreError):  # whoever writes it says so
            self._noise.look(ledger)
        if self._comparing.is_due and self._compared != ledger.runs:
            self._compared = ledger.runs
            self._comparing.do(lambda: self._compare(plan, ledger))
        return replace(
            overview(plan, ledger, self._folder, room),
            left=None if ledger.finished else left,
            cautions=tuple(cautions(plan, ledger, self._noise)),
            comparisons=tuple(self._comparisons),
        )

    def _compare(self, plan: Plan, ledger: Ledger) -> None:
        if plan.campaign.compare:
            from netbench.live.standings import comparisons

            self._comparisons = comparisons(plan, ledger)

    def end(self) -> None:
        self._painter.clear()


def for_terminal(plain: bool = False) -> Progress:
    """The view where standard error is a terminal that can draw it, else lines."""
    return Lines() if plain or not is_drawable(sys.stderr) else View()
