"""Workers for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.engine_pair import Pair, open_pair


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with open_pair() as opened:
        yield opened
