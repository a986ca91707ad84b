"""Debian's kernel as a git repository, of which tests in guests build kernels."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from netbench.kernels.needs import ELF, PROGRAMS
from tests.support.local import netbench_argv

PACKAGES = ("linux-source-6.1", ELF, *sorted({*PROGRAMS.values()}))
SOURCE = Path("/usr/src/linux-source-6.1.tar.xz")
TCP = "net/ipv4/tcp.c"
COPIED = "err = skb_copy_to_page_nocache(sk, &msg->msg_iter, skb,"
AGAIN = """
{ static char again[4096]; int at, n;
for (n = 0; n < TIMES; n++) for (at = 0; at < copy; at += 4096) {
memcpy(again, page_address(pfrag->page), min_t(int, copy - at, 4096)); barrier_data(again); } }
"""


class Linux:
    """A repository: `base`, `slow` copies what is sent twice, `comment` changes nothing. `cache`
    keeps what is built from it.
    """

    def __init__(self, place: Path, cache: Path) -> None:
        self.place, self.cache = place, cache

    def begin(self) -> None:
        """Make the repository of an unpacked source."""
        self.git("init", "-q", "-b", "master")
        self.git("add", "-Af")  # its .gitignore ends in /*
        self.git("commit", "-q", "-m", "base")
        self.git("tag", "base")
        self.branch("slow", self.copying(1))
        self.branch("comment", f"/* a comment */\n{self.text}")

    @property
    def text(self) -> str:
        return self.git("show", f"base:{TCP}") + "\n"

    def copying(self, times: int) -> str:
        """tcp.c, which copies what is sent so many times more."""
        text = self.text
        after = text.index("goto do_error;", text.index(COPIED)) + len("goto do_error;")
        return text[:after] + AGAIN.replace("TIMES", str(times)) + text[after:]

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
        argv = ("git", "-C", str(self.place), *identity, *words)
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, tag: str) -> None:
        self.git("commit", "-q", "-a", "-m", tag)
        self.git("tag", tag)

    def branch(self, name: str, text: str) -> None:
        self.git("checkout", "-q", "-B", f"branch-{name}", "base")
        (self.place / TCP).write_text(text)
        self.commit(name)
        self.git("checkout", "-q", "master")

    def netbench(self, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """The command line, with this cache."""
        return subprocess.run(
            netbench_argv(words),
            cwd=folder,
            env={**os.environ, "XDG_CACHE_HOME": str(self.cache)},
            capture_output=True,
            text=True,
            check=False,
        )
