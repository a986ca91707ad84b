"""Pruning netbench's cache, with the worktrees of the user's repositories that are in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from netbench.base import cache
from netbench.kernels import revision


def prune(say: Callable[[str], None]) -> None:
    """Remove what is not needed in the cache, once a day, and say so in a line."""
    cache.prune(say, _leave)


def _leave(place: Path) -> None:
    """Let git forget the worktree of a tree that goes."""
    if place.parent.name == "trees":
        revision.unlock(place / "source")
