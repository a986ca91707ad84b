"""What costs much is done seldom."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Seldom:
    """Something costly that is done again only so often that it takes a share of the time."""

    def __init__(self, share: float, least: float = 0.0) -> None:
        self._share, self._least = share, least
        self._due = -math.inf

    @property
    def is_due(self) -> bool:
        """Whether it is time again."""
        return time.monotonic() >= self._due

    def do(self, act: Callable[[], None]) -> None:
        """Do it, and see when it is due next."""
        begun = time.monotonic()
        act()
        now = time.monotonic()
        self._due = now + max(self._least, (now - begun) / self._share)
