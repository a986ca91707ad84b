"""io_uring: what of it a host refuses is said with its reason; chains go out as often as their
length says; how a call waits is what strace(1) sees.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from netbench.engine.local import local
from tests.support.engine_pair import WORKER, Side, open_pair

UNPRIVILEGED = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534")
DISABLED = Path("/proc/sys/kernel/io_uring_disabled")
CHUNK, CHUNKS = 64 * 1024, 96

needs_uring = pytest.mark.skipif(
    bool(local().send["uring"].row.why), reason=f"no io_uring: {local().send['uring'].row.why}"
)
needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")


def reasons(argv: tuple[str, ...]) -> dict[str, str]:
    """Why a worker's methods of io_uring cannot run, by side and name."""
    with open_pair(argv, WORKER) as pair:
        catalogue = pair.sender.catalogue
        sides = {"send": catalogue.send, "receive": catalogue.receive}
        return {
            f"{side} {name}": table[name].row.why
            for side, table in sides.items()
            for name in ("uring", "uring_zc")
        }


@contextlib.contextmanager
def disabled_for_users() -> Iterator[None]:
    """Only who has CAP_SYS_ADMIN may make an io_uring."""
    before = DISABLED.read_text()
    DISABLED.write_text("1")
    try:
        yield
    finally:
        DISABLED.write_text(before)


@needs_uring
@pytest.mark.root
def test_a_host_that_disables_io_uring_says_so() -> None:
    if not DISABLED.exists():
        pytest.skip("this kernel has no kernel.io_uring_disabled (Linux 6.6)")
    with disabled_for_users():
        found = reasons((*UNPRIVILEGED, *WORKER))
    assert len(found) == 4
    assert {why.partition(" (")[0] for why in found.values()} == {
        "io_uring is disabled here: kernel.io_uring_disabled is 1"
    }


@needs_uring
@pytest.mark.root
def test_a_host_that_locks_no_memory_says_so() -> None:
    found = reasons((*UNPRIVILEGED, "prlimit", "--memlock=0:0", *WORKER))
    assert all("ulimit -l" in why for why in found.values()), found


def traced(
    folder: Path, send: str, options: dict[str, int | str]
) -> tuple[Side, Counter[str], str]:
    """A sender's proofs, the calls of its flow's thread, and their lines."""
    argv = ("strace", "-ff", "-qq", "-s", "0", "-o", str(folder / "trace"), *WORKER)
    with open_pair(argv, WORKER) as pair:
        serving = pair.sender.hello.pid
        sent, _ = pair.run(send, "read", {"chunk": CHUNK, **options}, bytes=CHUNK * CHUNKS)
    (thread,) = (path for path in folder.iterdir() if path.suffix != f".{serving}")
    text = thread.read_text()
    return sent, Counter(re.findall(r"^(\w+)\(", text, re.MULTILINE)), text


@needs_uring
@needs_strace
@pytest.mark.parametrize("depth", [1, 3, 96])
def test_a_chain_is_submitted_by_one_call(tmp_path: Path, depth: int) -> None:
    sent, _, text = traced(tmp_path, "uring", {"queue_depth": depth})
    submitted = [int(n) for n in re.findall(r"io_uring_enter\(\d+, (\d+), ", text)]
    assert submitted == [depth] * (CHUNKS // depth)
    assert sent.total("uring", "sends") == CHUNKS


@needs_strace
def test_a_call_waits_as_it_is_told(tmp_path: Path) -> None:
    calls: dict[str, Counter[str]] = {}
    for wait in ("block", "poll", "spin"):
        (tmp_path / wait).mkdir()
        _, calls[wait], _ = traced(tmp_path / wait, "write", {"wait": wait})
    assert calls["block"]["poll"] <= 2, "but for the end of the run"
    assert calls["poll"]["poll"] >= CHUNKS
    assert calls["spin"]["poll"] <= 2
