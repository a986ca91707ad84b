"""From a git repository to a letter, in guests, with kernels of Debian's source: slow."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from netbench.kernels.needs import ELF, PROGRAMS
from tests.support.local import netbench_argv, out, ran
from tests.support.outside import apt_get

pytestmark = [pytest.mark.root, pytest.mark.guest, pytest.mark.slow, pytest.mark.timeout(4000)]


REPOSITORY = "NETBENCH_LINUX"  # a repository of an earlier run, whose cache is the user's
PACKAGES = ("linux-source-6.1", ELF, *sorted({*PROGRAMS.values()}))
SOURCE = Path("/usr/src/linux-source-6.1.tar.xz")
TCP = "net/ipv4/tcp.c"
COPIED = "err = skb_copy_to_page_nocache(sk, &msg->msg_iter, skb,"
AGAIN = """
{ static char again[4096]; int at;
for (at = 0; at < copy; at += 4096) {
memcpy(again, page_address(pfrag->page), min_t(int, copy - at, 4096)); barrier_data(again); } }
"""


class Linux:
    """A repository: `base`, `slow` copies what is sent twice, `comment` changes nothing."""

    def __init__(self, place: Path, cache: Path) -> None:
        self.place, self.cache = place, cache

    def begin(self) -> None:
        """Make the repository of an unpacked source."""
        self.git("init", "-q", "-b", "master")
        self.git("add", "-Af")  # its .gitignore ends in /*
        self.git("commit", "-q", "-m", "base")
        self.git("tag", "base")
        text = (self.place / TCP).read_text()
        after = text.index("goto do_error;", text.index(COPIED)) + len("goto do_error;")
        self.branch("slow", text[:after] + AGAIN + text[after:])
        self.branch("comment", f"/* a comment */\n{text}")

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
        return out("git", "-C", str(self.place), *identity, *words).strip()

    def branch(self, name: str, text: str) -> None:
        self.git("checkout", "-q", "-B", f"branch-{name}", "base")
        (self.place / TCP).write_text(text)
        self.git("commit", "-q", "-a", "-m", name)
        self.git("tag", name)
        self.git("checkout", "-q", "master")

    def netbench(self, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """The command line, with this cache."""
        env, argv = {**os.environ, "XDG_CACHE_HOME": str(self.cache)}, netbench_argv(words)
        return ran(argv, cwd=folder, env=env)


@pytest.fixture(scope="module")
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


def verdict(letter: str) -> str:
    """Of throughput."""
    row = re.search(r"^Gb/s .*  (\w+)\*?$", letter, re.MULTILINE)
    assert row, letter
    return row[1]


@pytest.mark.parametrize(
    ("patched", "verdicts"), [("slow", {"worse"}), ("comment", {"inconclusive", "equivalent"})]
)
def test_a_patch_is_judged_by_what_it_does(
    linux: Linux, tmp_path: Path, patched: str, verdicts: set[str]
) -> None:
    suite = tmp_path / "write.yaml"
    suite.write_text(
        "transfer: {send: write, receive: trunc, chunk: 64K, congestion: cubic, duration: 500ms,"
        " warmup: 200ms}\n"
    )
    words = ("--repo", str(linux.place), "--suite", str(suite), "--time", "6m")
    done = linux.netbench(tmp_path, "judge", "--base", "base", "--patched", patched, *words)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    assert verdict(done.stdout) in verdicts
    assert max(map(len, done.stdout.splitlines())) <= 72
