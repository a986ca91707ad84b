"""Workers for the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.engine_pair import Pair, open_pair


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A test its own (6 ms): what one leaves running fails no other."""
    with open_pair() as opened:
        yield opened
