"""How the native engine is compiled: the cffi module (API mode) and the static worker executable,
from the same sources.

Used by setup.py at build time; imports nothing of netbench, since nothing is built yet.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import subprocess
from functools import cache
from pathlib import Path

from cffi import FFI

NATIVE = Path("native")  # relative: setuptools wants sources relative to the project
HEADER = NATIVE / "include" / "netbench.h"
CFLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]
CFLAGS += ["-fno-omit-frame-pointer"]  # profiles show who calls whom
CFLAGS += ["-Wno-gnu-variable-sized-type-not-at-end"]  # clang's alone: GNU C allows it
ROOT = Path(__file__).resolve().parents[2]


def compiler() -> list[str]:
    """The C compiler, from $CC or `cc`."""
    return shlex.split(os.environ.get("CC", "cc"))


@cache
def declarations() -> str:
    """The header as cffi reads it: preprocessed with NB_CDEF, so without includes and comments."""
    command = [*compiler(), "-E", "-P", "-DNB_CDEF", str(ROOT / HEADER)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def layout() -> str:
    """A hash of the declarations, which controller and worker compare: structs must agree."""
    return "0x" + hashlib.sha256(declarations().encode()).hexdigest()[:16]


def sources() -> list[str]:
    """Every C file of the library, relative to the project; main.c is the executable's alone."""
    files = sorted((ROOT / NATIVE / "src").rglob("*.c"))
    return [str(path.relative_to(ROOT)) for path in files if path.name != "main.c"]


def workers() -> dict[str, list[str]]:
    """Machine types (`uname -m`) of which the static worker is built, each with its C compiler:
    this one; for a wheel those of $NETBENCH_WORKERS, by Debian's compilers.
    """
    machines = os.environ.get("NETBENCH_WORKERS", "").split()
    crossed = {machine: [f"{machine}-linux-gnu-gcc"] for machine in machines}
    return crossed or {platform.machine(): compiler()}


def worker_command(compiler: list[str], target: Path) -> list[str]:
    """The command line for the static worker, with symbols, without what debuggers read."""
    places = [f"-DNB_LAYOUT={layout()}ULL", "-I", str(HEADER.parent), "-I", str(NATIVE / "src")]
    flags = [*CFLAGS, "-static", "-Wl,--strip-debug", *places]
    return [*compiler, *flags, *sources(), str(NATIVE / "src" / "main.c"), "-lm", "-o", str(target)]


ffibuilder = FFI()
ffibuilder.cdef(declarations())
ffibuilder.set_source(
    "netbench.engine._native",
    '#include "netbench.h"',
    sources=sources(),
    include_dirs=[str(HEADER.parent), str(NATIVE / "src")],
    define_macros=[("NB_LAYOUT", f"{layout()}ULL"), ("_GNU_SOURCE", None)],
    extra_compile_args=[flag for flag in CFLAGS if flag not in ("-Wextra", "-D_GNU_SOURCE")],
    extra_link_args=["-pthread", "-lm"],
)
