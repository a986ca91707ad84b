"""One lab for all tests of guests that leave it as it was: guests boot slowly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from netbench.lab import Lab
from tests.support.guests import FIRST, NAME, SECOND, guests_lab


@pytest.fixture(scope="package")
def made(fetched: None) -> Iterator[Lab]:
    """Two guests on the first of two kernels, with disks."""
    with guests_lab(NAME, ("snd", "rcv"), (FIRST, SECOND), disk=True) as found:
        yield found
