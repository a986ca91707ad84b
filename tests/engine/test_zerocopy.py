"""MSG_ZEROCOPY: the engine says of its completions what strace(1) sees in the error queue."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from netbench.base.errors import EngineError
from netbench.engine.binding import Edge
from tests.support.engine_pair import MS, WORKER, Pair, Side, open_pair
from tests.support.local import loopback_mtu, out
from tests.support.needs import needs

METHOD = "zerocopy"
CPU = min(os.sched_getaffinity(0))
RANGE = re.compile(
    r"ee_origin=(?:5|SO_EE_ORIGIN_ZEROCOPY), .*ee_code=(\w+), ee_info=(\d+), ee_data=(\d+)"
)
FLAGS = re.compile(r"sendto\((\d+), .*, ([A-Z_|]+|0), NULL, 0\) = (-?\d+)")
# memory is counted by account: nobody else has this one
UNPRIVILEGED = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65431")


def proofs_of(side: Side, edge: int = Edge.DRAINED) -> dict[str, int]:
    """What the proofs count, over all streams."""
    return {
        name: side.total(METHOD, name, edge)
        for owner, name, at in side.vectors
        if owner == METHOD and at == edge
    }


def all_copied(side: Side) -> bool:
    proofs = proofs_of(side)
    return 0 < proofs["zerocopy_sends"] == proofs["completions"] == proofs["copied"]


def trace(folder: Path, serving: int) -> tuple[int, int, list[tuple[int, int, bool]]]:
    """What strace saw of the flow's thread: sends with the flag and without, ranges, copies."""
    (thread,) = (path for path in folder.iterdir() if path.suffix != f".{serving}")
    text = thread.read_text()
    sends = [(m[2], int(m[3])) for m in FLAGS.finditer(text)]
    copied = ("1", "SO_EE_CODE_ZEROCOPY_COPIED")
    ranges = [(int(m[2]), int(m[3]), m[1] in copied) for m in RANGE.finditer(text)]
    flagged = sum("MSG_ZEROCOPY" in flags and sent > 0 for flags, sent in sends)
    return flagged, sum("MSG_ZEROCOPY" not in flags for flags, _ in sends), ranges


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_the_proofs_are_what_strace_sees(tmp_path: Path) -> None:
    strace = ("strace", "-ff", "-qq", "-v", "-s", "0", "-o", str(tmp_path / "trace"), *WORKER)
    with open_pair(strace, WORKER) as pair:
        serving = pair.sender.hello.pid
        sent, _ = pair.run(METHOD, "read", {"preamble": 100}, bytes=300 * 65536)
    (flagged, plain, ranges), proofs = trace(tmp_path, serving), proofs_of(sent)
    assert flagged == proofs["zerocopy_sends"] >= 300
    assert plain == 1, "the preamble, and nothing else, is sent without the flag"
    assert proofs["completions"] == flagged
    assert sum(last - first + 1 for first, last, copied in ranges if copied) == proofs["copied"]
    # Every send is completed once: the ranges are a partition of what was sent.
    numbers = [range(first, last + 1) for first, last, _ in ranges]
    assert sorted(itertools.chain(*numbers)) == list(range(flagged))
    assert len(ranges) < flagged, "completions are read several at a time"


@pytest.mark.parametrize(("address", "pin"), [("::1", {}), ("127.0.0.1", {"cpu": CPU})])
def test_every_completion_arrives_and_is_a_copy_here(
    pair: Pair, address: str, pin: dict[str, int]
) -> None:
    common = {"warmup": 5 * MS, "streams": 3, "address": address, **pin}
    sent, received = pair.run(METHOD, "read", duration=30 * MS, **common)
    assert all_copied(sent)
    assert sent.total("flow", "bytes") == received.total("flow", "bytes")
    paced = {"rate": 400_000_000, "chunk": 8192}
    assert all_copied(pair.run(METHOD, "read", paced, duration=60 * MS)[0])
    sent, _ = pair.run(METHOD, "read", bytes=3_000_000, **common)
    assert all_copied(sent)
    opened = proofs_of(sent, Edge.OPEN)
    assert opened["zerocopy_sends"] == opened["completions"], "nothing is left for the window"


@pytest.fixture
@needs("root", "netns")
def narrow() -> Iterator[tuple[str, ...]]:
    """A namespace where packets queue up and little may be pending, as a command's prefix."""
    name = f"nbz{os.getpid()}"
    within = ("ip", "netns", "exec", name)
    out("ip", "netns", "add", name)
    try:
        out(*within, *"ip link set lo mtu 1500 up".split())
        shape = "tc qdisc add dev lo root tbf rate 200mbit burst 64k latency 1s"
        out(*within, *shape.split())
        limit = [*within, "sysctl", "-q", "-w", "net.core.optmem_max=1024"]
        if subprocess.run(limit, check=False).returncode:
            pytest.skip("this kernel has one net.core.optmem_max for all namespaces")
        yield within
    finally:
        out("ip", "netns", "delete", name)


@pytest.mark.parametrize("pin", [{}, {"cpu": CPU}], ids=["unpinned", "pinned"])
def test_a_full_queue_is_waited_for_and_counted(
    narrow: tuple[str, ...], pin: dict[str, int]
) -> None:
    argv = (*narrow, *WORKER)
    with open_pair(argv, argv) as pair:
        sent, received = pair.run(
            METHOD, "read", {"chunk": 4096}, bytes=4_000_001, streams=2, verify=1, **pin
        )
    proofs = proofs_of(sent)
    assert proofs["refused_sends"] > 0
    assert pin or proofs["poll_calls"] > 0, "a thread of one stream waits for it alone"
    assert proofs["send_calls"] == proofs["zerocopy_sends"] + proofs["refused_sends"]
    assert all_copied(sent)
    assert received.moved("flow", "bytes") == 4_000_001
    assert sent.numbers("", "digest") == received.numbers("", "digest")


def locked(limit: int) -> tuple[str, ...]:
    """A worker that may lock so many bytes of memory."""
    return (*UNPRIVILEGED, "prlimit", f"--memlock={limit}:{limit}", *WORKER)


@pytest.mark.root
def test_locked_memory_that_is_short_is_waited_for_and_none_is_an_error() -> None:
    """A host that pins nothing says so before."""
    with open_pair(locked(2**20), locked(0)) as pair:
        assert "ulimit -l" in pair.receiver.catalogue.send[METHOD].row.why
        sent, received = pair.run(METHOD, "read", bytes=64 * 2**20, streams=4)
    assert received.moved("flow", "bytes") == 64 * 2**20
    assert proofs_of(sent)["refused_sends"] > 0
    assert all_copied(sent)
    with open_pair(locked(2**16), WORKER) as pair:
        assert not pair.sender.catalogue.send[METHOD].row.why
        said = r"no memory can be pinned for 65536 bytes.*ulimit -l"
        with pytest.raises(EngineError, match=said):
            pair.run(METHOD, "read", bytes=2**20)
        for worker in (pair.sender, pair.receiver):
            worker.abort()
        sent, _ = pair.run(METHOD, "read", {"chunk": 4096}, bytes=2**20)
    assert all_copied(sent)


@pytest.mark.parametrize("send", ["zerocopy", "uring_zc", "write", "sendfile"])
def test_over_loopback_only_what_zerocopy_sends_can_be_mapped(pair: Pair, send: str) -> None:
    """The kernel copies it to pages of their own. Packets carry 15 pages, 52 bytes of headers."""
    if pair.sender.catalogue.send[send].row.why:
        pytest.skip(pair.sender.catalogue.send[send].row.why)
    size = 64 * 2**20
    with loopback_mtu(15 * 4096 + 52):
        _, received = pair.run(send, METHOD, bytes=size, chunk=2**18)
    mapped, copied = (received.total(METHOD, name) for name in ("mapped_bytes", "copied_bytes"))
    assert mapped + copied == size
    assert mapped > 0.9 * size if send in ("zerocopy", "uring_zc") else mapped == 0
