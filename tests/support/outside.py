"""What tests fetch from outside of their own network, which leads nowhere."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.local import ran

# names the network namespace that the first process of the tests started in
OUTSIDE = "NETBENCH_TESTS_OUTSIDE"


def outside(*argv: str) -> list[str]:
    """A command line in the network that the tests were started in; needs root."""
    return ["nsenter", f"--net={os.environ[OUTSIDE]}", *argv]


def apt_get(*words: str, folder: Path | None = None) -> str:
    """Run apt-get in a folder; why it did not work, or ""."""
    try:
        done = ran(outside("apt-get", "-q", "-y", *words), cwd=folder)
    except OSError as error:
        return str(error)
    return f"apt-get {' '.join(words)}: {done.stderr[-200:]}" if done.returncode else ""


def installed(program: str, package: str) -> str:
    """A program of a Debian package, installed where it is missing; else the test is skipped."""
    if not shutil.which(program):
        if os.geteuid() != 0 or not shutil.which("apt-get"):
            pytest.skip(f"needs {program} (Debian's {package}), or root and apt-get to install it")
        if why := apt_get("install", "--no-install-recommends", package):
            pytest.skip(f"needs {program}: {why}")
    return program
