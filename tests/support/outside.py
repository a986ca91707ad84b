"""What tests fetch from outside of their own network, which leads nowhere."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# names the network namespace that the first process of the tests started in
OUTSIDE = "NETBENCH_TESTS_OUTSIDE"


def outside(*argv: str) -> list[str]:
    """A command line in the network that the tests were started in; needs root."""
    return ["nsenter", f"--net={os.environ[OUTSIDE]}", *argv]


def apt_get(*words: str, folder: Path | None = None) -> str:
    """Run apt-get in a folder; why it did not work, or ""."""
    try:
        done = subprocess.run(
            outside("apt-get", "-q", "-y", *words),
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return str(error)
    return f"apt-get {' '.join(words)}: {done.stderr[-200:]}" if done.returncode else ""
