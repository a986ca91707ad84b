"""Functions of scipy.special, which is imported with the first that is called: that takes longer
than all else that a run imports, and one run has no interval.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import scipy.special

    return globals().setdefault(name, getattr(scipy.special, name))
