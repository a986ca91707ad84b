"""The catalogue of the engine library on this machine."""

from __future__ import annotations

from functools import cache

from netbench.engine.catalogue import Catalogue


@cache
def local() -> Catalogue:
    """This machine's engine's catalogue. Errors: EngineError where its library cannot be loaded."""
    from netbench.engine import binding

    return Catalogue.of(binding.describe())
