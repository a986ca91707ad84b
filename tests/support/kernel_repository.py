"""A git repository whose tree is built as a kernel is, by a Makefile of a few lines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netbench.kernels.compile import Told
from netbench.kernels.needs import PROGRAMS
from netbench.model import Kernel
from tests.support.local import ran

# What of a kernel's Makefile is used: configurations, vmlinux, which compiles what has changed and
# links it by a script, and dir-pkg, which installs it.
MAKEFILE = Path(__file__).with_name("kernel_makefile.txt").read_text()
IMAGE = """\
import os, struct, sys
version = os.environ["KBUILD_BUILD_VERSION"]
image = bytearray(0x400)
image[0x202:0x206] = b"HdrS"
struct.pack_into("<H", image, 0x20E, 0x100)
image[0x300:] = f"{sys.argv[1]} (netbench) #{version} SMP".encode() + bytes(64)
image += open(f"{sys.argv[2]}/vmlinux", "rb").read()
open(f"{sys.argv[2]}/tar-install/boot/vmlinuz-{sys.argv[1]}", "wb").write(image)
"""


class Repository:
    """A git repository with a tree that is built as a kernel is."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir()
        self.git("init", "-q", "-b", "master")
        (place / "Makefile").write_text(MAKEFILE)
        (place / "image.py").write_text(IMAGE)
        self.base = self.commit("int segments = 1;\n", "v1")

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
        return ran(("git", "-C", str(self.place), *identity, *words), check=True).stdout.strip()

    def commit(self, source: str, tag: str) -> str:
        (self.place / "tcp.c").write_text(source)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", tag)
        self.git("tag", tag)
        return self.git("rev-parse", "HEAD")


def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """One, an empty cache, and programs that stand for those that only a kernel needs."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in PROGRAMS:
        if name not in ("git", "make", "gcc", "ld"):
            (programs / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{programs}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Repository(tmp_path / "linux")


class Lines:
    """What is told of builds."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.lines: list[str] = []
        self.told = Told(self.said.append, self.lines.append)


def kernel(repository: Repository, rev: str = "v1", **keys: object) -> Kernel:
    named = {"name": "k", "git": str(repository.place), "rev": rev, "config": "tinyconfig"} | keys
    return Kernel(**named)  # type: ignore[arg-type]


def compiled(tmp_path: Path) -> int:
    """How often the compiler has run."""
    (log,) = (tmp_path / "cache" / "netbench" / "trees").glob("*/objects/compiled")
    return len(log.read_text().splitlines())
