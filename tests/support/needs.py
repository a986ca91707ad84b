"""What a fixture needs. The tests that use it get the same markers (see tests/conftest.py)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from tests.support import guests

Fixture = TypeVar("Fixture", bound=Callable[..., Any])


def needs(*markers: str) -> Callable[[Fixture], Fixture]:
    """Decorate a fixture, below `@pytest.fixture`, with the markers of what it needs."""

    def mark(function: Fixture) -> Fixture:
        function.needs = markers  # type: ignore[attr-defined]
        return function

    return mark


def mark_users(item: pytest.Item) -> None:
    """Give a test the markers of its fixtures."""
    known = getattr(item, "_fixtureinfo", None)  # pytest has no public way to a test's fixtures
    for definitions in known.name2fixturedefs.values() if known else ():
        for definition in definitions:
            for marker in getattr(definition.func, "needs", ()):
                item.add_marker(marker)


def skip_without(item: pytest.Item) -> None:
    """Skip a test that this user or machine cannot run."""
    if item.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("needs root")
    if item.get_closest_marker("guest") and (reason := guests.why_not()):
        pytest.skip(reason)
    if item.get_closest_marker("browser"):
        from tests.support import browser

        if reason := browser.why_not():
            pytest.skip(reason)
