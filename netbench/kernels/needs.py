"""What compiles kernels on this machine, and the Debian packages that have it: named all at once,
and before anything is compiled.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator

from netbench.base.errors import RequestError
from netbench.kernels import revision
from netbench.model import Kernel

PROGRAMS = {
    "git": "git",
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "depmod": "kmod",
}
ELF, TLS = "libelf-dev", "libssl-dev"
HEADERS = {"gelf.h": ELF, "libelf.h": ELF, "openssl/": TLS}
"""Packages of the headers that a kernel's own tools are compiled with."""
_OBJTOOL = "tools/objtool/Makefile"  # a kernel for x86-64 whose tree has it is linked with it
_SIGNS = re.compile(rb"^CONFIG_(MODULE_SIG|SYSTEM_TRUSTED_KEYRING)=y$", re.MULTILINE)


def require(kernel: Kernel, config: bytes) -> None:
    """Errors: RequestError with the packages of all that is missing to build a revision with a
    configuration (b"": one that make writes).
    """
    missing = [package for name, package in PROGRAMS.items() if not _which(name)]
    if "git" not in missing:
        missing += [package for header, package in _headers(kernel, config) if not _has(header)]
    if missing:
        raise RequestError(
            f"kernel {kernel.name}: what builds it is not installed on this machine; on Debian: apt"
            f" install {' '.join(missing)}"
        )


def _headers(kernel: Kernel, config: bytes) -> Iterator[tuple[str, str]]:
    """The headers that its tools include, with their packages."""
    crossed = any(word.startswith("ARCH=") for word in kernel.make)
    if platform.machine() == "x86_64" and not crossed and revision.has(kernel, _OBJTOOL):
        yield "gelf.h", ELF
    if _SIGNS.search(config):
        yield "openssl/opensslv.h", TLS


def _which(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _has(header: str) -> bool:
    """Whether the compiler of this machine's programs finds a header."""
    compiler = _which("gcc")
    if compiler is None:
        return False
    argv = (compiler, "-E", "-include", header, "-x", "c", os.devnull)
    return not subprocess.run(argv, capture_output=True, check=False, cwd="/").returncode
