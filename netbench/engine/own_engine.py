"""The catalogue of the engine library on this machine."""

from __future__ import annotations

from functools import cache

from netbench.engine.catalogue import Catalogue


@cache
def local() -> Catalogue:
    """The catalogue of the engine library on this machine. Errors: EngineError when the library
    cannot be loaded.
    """
    from netbench.engine import binding

    return Catalogue.of(binding.describe())
