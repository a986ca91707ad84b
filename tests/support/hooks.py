"""Workers that run with a library of native/tests preloaded, which looks on or interferes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from netbench.engine import build_native
from tests.support.paths import ROOT

FLAGS = ("-shared", "-fPIC", "-fno-builtin", "-O1", "-Wall", "-Wextra", "-Werror")


def hook(name: str, folder: Path) -> Path:
    """The library of native/tests/NAME.c."""
    source, made = ROOT / "native/tests" / f"{name}.c", folder / f"{name}.so"
    subprocess.run([*build_native.compiler(), *FLAGS, source, "-o", made], check=True)
    return made


def dynamic_worker(folder: Path) -> Path:
    """A worker into which a library can be loaded; not optimised, which takes less time to build."""
    command = build_native.worker_command(folder / "worker")
    left_out = ("-static", "-O2", "-g")
    subprocess.run([w for w in command if w not in left_out], cwd=ROOT, check=True)
    return folder / "worker"
