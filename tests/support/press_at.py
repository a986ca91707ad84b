"""`python -m tests.support.press_at lines FILE run ...` writes which lines of netbench's main
thread (and what it starts) a campaign passes: [file, line, how often]. `press_at FILE:LINE:COUNT
run ...` presses Ctrl-C when that line is passed so often.
"""

from __future__ import annotations

import json
import runpy
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

BEGINS = "run/conductor.py", "conduct"
WATCHED = ("/netbench/run/", "/netbench/engine/", "/netbench/hosts/", "/netbench/base/cancel.")
AGAIN_SECONDS = 3e-4


class Passed:
    """Counts the lines that a thread passes, once the campaign has begun; calls `act` at one."""

    def __init__(self, line: tuple[str, int, int] | None, act: Callable[[], None]) -> None:
        self.counts = Counter[tuple[str, int]]()
        self._line = line
        self._act = act
        self._begun = False

    def called(self, frame: FrameType, event: str, arg: object) -> Any:
        """The tracer of calls, for sys.settrace."""
        file = frame.f_code.co_filename
        if file.endswith(BEGINS[0]) and frame.f_code.co_name == BEGINS[1]:
            self._begun = True
        return self._stepped if any(part in file for part in WATCHED) else None

    def _stepped(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "line" and self._begun:
            key = frame.f_code.co_filename, frame.f_lineno
            self.counts[key] += 1
            if self._line == (*key, self.counts[key]):
                sys.settrace(None)
                self._act()
                return None
        return self._stepped


def press() -> None:
    """Ctrl-C soon, but not in this file, whose frames would carry it out where none can come."""

    def late(number: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(signal.SIGINT)
        if frame is not None and frame.f_code.co_filename == __file__:
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        elif callable(handler):
            handler(signal.SIGINT, frame)

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 1e-6)


def main() -> None:
    """What the module's text says."""
    _, what, *words = sys.argv
    line, out = None, Path()
    if what == "lines":
        out, *words = Path(words[0]), *words[1:]
    else:
        file, number, count = what.rsplit(":", 2)
        line = file, int(number), int(count)
    passed = Passed(line, press)
    sys.argv = ["netbench", *words]
    sys.settrace(passed.called)
    try:
        runpy.run_module("netbench", run_name="__main__", alter_sys=True)
    finally:
        sys.settrace(None)
        if line is None:
            out.write_text(json.dumps([[*key, count] for key, count in passed.counts.items()]))


if __name__ == "__main__":
    main()
