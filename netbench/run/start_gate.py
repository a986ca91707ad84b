"""Runs that begin together: data of none moves before all are prepared."""

from __future__ import annotations

import threading
from collections.abc import Collection


class StartGate:
    """Where the runs of a wave wait for each other, by the names of their pairs. A run that ends
    before it has come here, since it failed or was interrupted, `leaves`.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._awaited = set(names)
        self._there: list[str] = []
        self._changed = threading.Condition()

    def wait(self, name: str) -> tuple[str, ...]:
        """Wait until every run is here or has left; the others that are here, in order of names."""
        with self._changed:
            self._awaited.discard(name)
            self._there.append(name)
            self._open_if_all()
            self._changed.wait_for(lambda: not self._awaited)
            return tuple(each for each in self._there if each != name)

    def leave(self, name: str) -> None:
        """A run does not wait, or no longer: none waits for it."""
        with self._changed:
            if name in self._awaited:
                self._awaited.discard(name)
                self._open_if_all()

    def _open_if_all(self) -> None:
        """Wake those that wait, once: hundreds may."""
        if not self._awaited:
            self._there.sort()
            self._changed.notify_all()
