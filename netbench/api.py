"""What notebooks and programs use: `netbench.load(path)` gives Results."""

from __future__ import annotations

from netbench.results import Results, load

__all__ = ["Results", "load"]
