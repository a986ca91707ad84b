"""Repeating what a lost worker has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from netbench.base.errors import WorkerLost

ATTEMPTS = 3
T = TypeVar("T")


def retry(act: Callable[[], T], recover: Callable[[WorkerLost], None]) -> T:
    """What `act` returns, of the first of three attempts that loses no worker. `recover` is called
    between two attempts with the reason.

    Errors: those of `act` and `recover`; WorkerLost when every attempt lost a worker.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return act()
        except WorkerLost as error:
            if attempt == ATTEMPTS:
                raise WorkerLost(f"{error}; failed {ATTEMPTS} times in a row") from error
            recover(error)
    raise AssertionError  # the last attempt returns or raises
