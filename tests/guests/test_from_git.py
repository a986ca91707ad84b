"""From a git repository to a letter, in guests: kernels of Debian's linux-source are built, booted
and judged. Minutes to build, minutes to measure: slow.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from netbench.kernels.compile import NEEDS
from tests.support.local import netbench_argv
from tests.support.outside import apt_get

PACKAGES = ("linux-source-6.1", "libelf-dev", *sorted({*NEEDS.values()}))
SOURCE = Path("/usr/src/linux-source-6.1.tar.xz")
TCP = "net/ipv4/tcp.c"
COPIED = "err = skb_copy_to_page_nocache(sk, &msg->msg_iter, skb,"
AGAIN = """
{ static char again[4096]; int at, n;
for (n = 0; n < TIMES; n++) for (at = 0; at < copy; at += 4096) {
memcpy(again, page_address(pfrag->page), min_t(int, copy - at, 4096)); barrier_data(again); } }
"""

pytestmark = [pytest.mark.root, pytest.mark.guest, pytest.mark.slow]


class Linux:
    """Debian's kernel as a repository: `base`, `slow` copies what is sent twice, `comment` changes
    nothing.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.git("init", "-q", "-b", "master")
        self.git("add", "-Af")  # its .gitignore ends in /*
        self.commit("base")
        self.text = (place / TCP).read_text()
        self.branch("slow", self.copying(1))
        self.branch("comment", f"/* a comment */\n{self.text}")

    def copying(self, times: int) -> str:
        """tcp.c, which copies what is sent so many times more."""
        after = self.text.index("goto do_error;", self.text.index(COPIED)) + len("goto do_error;")
        return self.text[:after] + AGAIN.replace("TIMES", str(times)) + self.text[after:]

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
        argv = ("git", "-C", str(self.place), *identity, *words)
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, tag: str) -> None:
        self.git("commit", "-q", "-a", "-m", tag) if tag != "base" else self.git(
            "commit", "-q", "-m", tag
        )
        self.git("tag", tag)

    def branch(self, name: str, text: str) -> None:
        self.git("checkout", "-q", "-B", f"branch-{name}", "base")
        (self.place / TCP).write_text(text)
        self.commit(name)
        self.git("checkout", "-q", "master")


@pytest.fixture(scope="module")
def linux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Linux]:
    """The repository; a cache of its own keeps what was built for all tests here."""
    if why := apt_get("install", "--no-install-recommends", *PACKAGES):
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("linux")
    subprocess.run(["tar", "-x", "-f", SOURCE, "-C", folder], check=True)
    (place,) = folder.iterdir()
    yield Linux(place)
    shutil.rmtree(folder)


def netbench(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder.parent / "cache")}
    return subprocess.run(
        netbench_argv(words),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


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
    words = ("--repo", str(linux.place), "--suite", str(suite), "--time", "9m")
    done = netbench(tmp_path, "judge", "--base", "base", "--patched", patched, *words)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    assert verdict(done.stdout) in verdicts
    assert max(map(len, done.stdout.splitlines())) <= 72


def test_the_culprit_of_eight_commits_is_named(linux: Linux, tmp_path: Path) -> None:
    """It costs much: emulated guests differ by tens of percent from boot to boot."""
    linux.git("checkout", "-q", "-B", "series", "base")
    for number in range(1, 9):
        text = linux.copying(20) if number >= 5 else linux.text
        (linux.place / TCP).write_text(f"/* {number} */\n{text}")
        linux.commit(f"c{number}")
    linux.git("checkout", "-q", "master")
    git = f"git: {linux.place}"
    file = tmp_path / "series.yaml"
    file.write_text(
        "netbench: 1\nname: series\nlab: qemu\nhosts: {snd: {}, rcv: {}}\n"
        f"kernels: {{base: {{{git}, rev: base}}, tried: {{{git}, rev: c8}}}}\n"
        "transfer: {receive: trunc, chunk: 64K, congestion: cubic, duration: 500ms,"
        " warmup: 200ms}\n"
        "sweep: {kernel: [base, tried]}\ncompare: {factor: kernel, baseline: base}\n"
        "repeat: {min: 18, max: 18, boots: 6}\n"
    )
    words = ("--good", "base", "--bad", "c8", str(file), "--fail-if", "throughput<-40%")
    done = netbench(tmp_path, "bisect", *words)
    assert done.returncode in (0, 1), done.stderr
    print(done.stdout)
    culprit = linux.git("rev-parse", "c5")
    assert culprit in done.stdout.rpartition("first bad commit")[2]
