"""The campaign's limit in the conductor."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

from netbench.run.conductor import Conductor


def test_what_the_limit_interrupts_is_interrupted_before_settings_are_put_back() -> None:
    """An interrupt that came afterwards would end that."""
    begun, done = threading.Event(), list[str]()

    def interrupt(reason: object) -> None:
        begun.set()
        time.sleep(0.2)
        done.append("interrupted")

    conductor: Any = SimpleNamespace(
        _campaign=SimpleNamespace(limit=1),
        _begun=time.monotonic(),
        _pool=SimpleNamespace(interrupt=interrupt),
    )
    with Conductor._limited(conductor):
        assert begun.wait(60)
    assert done == ["interrupted"]
