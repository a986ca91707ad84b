"""One lab for all tests of guests that leave it as it was: to boot guests takes longer than most of
these tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from netbench.lab import Lab
from tests.support.guests import FIRST, NAME, SECOND, guests_lab
from tests.support.linux_source import PACKAGES, SOURCE, Linux
from tests.support.outside import apt_get

REPOSITORY = "NETBENCH_LINUX"  # a repository of an earlier run, whose cache is the user's


@pytest.fixture(scope="package")
def made(fetched: None) -> Iterator[Lab]:
    """Two guests on the first of two kernels, with disks."""
    with guests_lab(NAME, ("snd", "rcv"), (FIRST, SECOND), disk=True) as found:
        yield found


@pytest.fixture(scope="session")
def linux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Linux]:
    """Debian's kernel as a repository; a cache of its own keeps what was built for all tests."""
    if known := os.environ.get(REPOSITORY):
        cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        yield Linux(Path(known), cache)
        return
    if why := apt_get("install", "--no-install-recommends", *PACKAGES):
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("linux")
    subprocess.run(["tar", "-x", "-f", SOURCE, "-C", folder], check=True)
    (place,) = folder.iterdir()
    made = Linux(place, tmp_path_factory.mktemp("cache"))
    made.begin()
    yield made
    shutil.rmtree(folder)
