"""The view of `run` and `resume` on a terminal: drawn between runs alone, from what the campaign
knows anyway. Nothing runs beside a measured run.
"""

from __future__ import annotations

import math
import sys
import time
from contextlib import suppress
from pathlib import Path

from netbench.base.errors import NetbenchError
from netbench.base.names import shell_word
from netbench.base.terminal import Painter, is_drawable
from netbench.live.standing import Findings, Overview
from netbench.plan.plan import Plan
from netbench.result.record import Record
from netbench.run.ledger import Ledger
from netbench.run.progress import SHARE, Lines, Progress, seconds_left

LEAST_SECONDS = 1.0  # between two drawings
LOOK_SECONDS = 1.0  # between two runs; what takes longer is left to `watch`
MARGIN = 2  # lines of the terminal that are left for what is printed


class View(Lines):
    """The view at the bottom of a terminal; messages stay above it."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._painter = Painter(sys.stderr)

    def _print(self, text: str) -> None:
        self._painter.print(self.folded(text))

    def begin(self, plan: Plan, ledger: Ledger, folder: Path) -> None:
        # What draws takes a while to import, and only a terminal needs it: not between two runs.
        import netbench.live.screen  # noqa: F401

        self._plan, self._folder = plan, folder
        self._findings = Findings(folder, SHARE)
        self._show(ledger, False)

    def ran(self, record: Record, ledger: Ledger) -> None:
        if time.monotonic() >= self._due:
            self._show(ledger, not ledger.finished)

    def _show(self, ledger: Ledger, goes_on: bool) -> None:
        """Draw the view; a defect of it ends no campaign."""
        begun = time.monotonic()
        try:
            with suppress(NetbenchError):  # whoever writes it says so
                self._findings.look()
            if self._findings.seconds > LOOK_SECONDS:
                watch = f"`watch {shell_word(self._folder)}`"
                self._findings.leave(f"comparisons: {watch} shows them")
            drawing = time.monotonic()
            self._draw(ledger, goes_on)
        except Exception as error:
            self._due = math.inf
            self._painter.clear()
            self.say(f"the view has failed, the campaign goes on: {type(error).__name__}: {error}")
            return
        now = time.monotonic()
        self._due = max(now + (now - drawing) / SHARE, begun + LEAST_SECONDS)

    def _draw(self, ledger: Ledger, goes_on: bool) -> None:
        from netbench.live.screen import render

        columns, rows = self._painter.size
        left = seconds_left(self._plan, ledger) if goes_on else None
        view = Overview(self._plan, ledger, self._folder, self._findings, left)
        self._painter.draw(render(view, columns - 1, rows - MARGIN, colour=True))

    def end(self) -> None:
        self._painter.clear()


def for_terminal(plain: bool = False) -> Progress:
    """The view where standard error is a terminal that can draw it, else lines."""
    return Lines() if plain or not is_drawable(sys.stderr) else View()
