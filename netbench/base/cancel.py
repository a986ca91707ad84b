"""Ctrl-C that waits until a library has let go of its locks.

A signal's handler runs in the main thread, between any two of its steps. The KeyboardInterrupt that
it raises after a lock was taken, and before the `try:` that would release it, leaves that lock
taken for ever. So it went with paramiko's: whatever was to be written to that host afterwards, what
puts its settings back among it, waited without end.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeVar

from netbench.base.errors import NetbenchError

Result = TypeVar("Result")

LOOK_SECONDS = 0.5
"""A signal that comes in the moment before the main thread begins to wait does not wake it: no wait
is longer.
"""


class _HeldBack(contextlib.ContextDecorator):
    """While it lasts, an interrupt of the main thread waits; it is raised at the end."""

    def __init__(self) -> None:
        self._depth = 0
        self._came = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._depth += 1

    def __exit__(self, *error: object) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._came and not self._depth:
            self._came = False
            raise KeyboardInterrupt

    def interrupt(self) -> None:
        """For the handler of a signal: raise KeyboardInterrupt, now or as soon as that may be."""
        if not self._depth:
            raise KeyboardInterrupt
        self._came = True


held_back = _HeldBack()
"""A context, and a decorator, for calls that end soon: Ctrl-C waits for them."""


def aside(act: Callable[[], Result]) -> Result:
    """The result of something that may take long, and takes locks: the main thread waits for it in
    another thread, which Ctrl-C leaves to itself. Errors: those of `act`.
    """
    if threading.current_thread() is not threading.main_thread():
        return act()
    done: list[Result] = []
    side_by_side([lambda: done.append(act())], lambda: None, patience=0.0)
    return done[0]


def _take(lock: threading.Lock, seconds: float = math.inf) -> None:
    """Wait until a lock is released, or so long."""
    until = time.monotonic() + seconds
    while not lock.acquire(timeout=max(min(until - time.monotonic(), LOOK_SECONDS), 0.0)):
        if time.monotonic() >= until:
            return


def side_by_side(
    acts: Sequence[Callable[[], None]],
    interrupt: Callable[[], None],
    at_once: int = 0,
    patience: float = math.inf,
) -> None:
    """Do things at the same time, `at_once` of them at most; 0: all of them, or none. After Ctrl-C
    no more are begun, `interrupt` makes those return that would wait long, and they are waited for
    so many seconds. Errors: that of the first act that has one, when all
    are done; NetbenchError where the system gives too few threads (with `at_once`: none).

    Threads are waited for by a lock of their own. An interrupted Thread.join (Python 3.11) takes
    its thread for ended, and what waits for futures may be interrupted with their locks taken,
    which their threads then wait for without end.
    """
    if not acts:
        return
    most = min(at_once or len(acts), len(acts))
    left = iter(range(0))
    running: list[int] = []
    errors: dict[int, BaseException] = {}
    begun, ended = threading.Event(), threading.Lock()
    ended.acquire()

    def work(first: int) -> None:
        begun.wait()
        for at in () if too_few else chain((first,), left):
            try:
                acts[at]()
            except BaseException as error:
                errors[at] = error
        if running.pop() == 0:  # the last one to end takes the number at the bottom
            ended.release()

    refused, too_few = "", False
    try:
        with held_back:  # else some would wait for others that were never begun
            try:
                for number in range(most):
                    thread = threading.Thread(target=work, args=(number,), daemon=True)
                    thread.start()
                    running.append(number)
            except RuntimeError as error:
                refused = str(error)
            too_few = bool(refused) and not (at_once and running)
            left = iter(range(len(running), len(acts)))
            begun.set()
        if running:
            _take(ended)
    except KeyboardInterrupt:
        for _ in left:
            pass
        interrupt()
        if running:
            _take(ended, patience)
        raise
    if errors:
        raise errors[min(errors)]
    if too_few:
        raise NetbenchError(
            f"{most} things cannot be done at the same time: {refused}; raise the limit of"
            " processes (`ulimit -u`, pids.max of the control group), or have fewer pairs at once"
        )
