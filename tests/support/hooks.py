"""Workers that run with a library of native/tests preloaded, which looks on or interferes."""

from __future__ import annotations

import fcntl
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from netbench.engine import build_native
from tests.support.paths import ROOT

FLAGS = ("-shared", "-fPIC", "-fno-builtin", "-O1", "-Wall", "-Wextra", "-Werror")


def hook(name: str, folder: Path) -> Path:
    """The library of native/tests/NAME.c."""
    source, made = ROOT / "native/tests" / f"{name}.c", folder / f"{name}.so"
    subprocess.run([*build_native.compiler(), *FLAGS, source, "-o", made], check=True)
    return made


def objects(factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The object file of each C file of the worker, compiled once for all, not optimised."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "objects"
    folder.mkdir(exist_ok=True)
    command = build_native.worker_command(build_native.compiler(), Path())[:-2]
    sources = [word for word in command if word.endswith(".c")]
    flags = [w for w in command if w not in ("-static", "-Wl,--strip-debug", "-O2", "-g", *sources)]
    made = {source: folder / f"{source.replace('/', '-')}.o" for source in sources}

    def compiled(source: str) -> None:
        if not made[source].exists():
            argv = [*flags, "-c", source, "-o", made[source]]
            subprocess.run(argv, cwd=ROOT, check=True)

    with (folder / "lock").open("w") as lock, ThreadPoolExecutor(2) as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        list(pool.map(compiled, sources))
    return made


def dynamic_worker(factory: pytest.TempPathFactory) -> Path:
    """A worker into which a library can be loaded."""
    made = factory.mktemp("dynamic") / "worker"
    argv = [*build_native.compiler(), *objects(factory).values(), "-pthread", "-lm", "-o", made]
    subprocess.run(argv, check=True)
    return made
