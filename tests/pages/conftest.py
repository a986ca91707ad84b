"""A browser for all tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.needs import needs

if TYPE_CHECKING:
    from tests.support.browser import Browser


@pytest.fixture(scope="module")
@needs("browser")
def browser() -> Iterator[Browser]:
    from tests.support.browser import browser

    with browser() as one:
        yield one
