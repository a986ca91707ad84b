"""What netbench keeps on this machine so that the next start is quick: ~/.cache/netbench."""

from __future__ import annotations

import os
from pathlib import Path


def base() -> Path:
    """The cache's folder."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return place.absolute() / "netbench"
