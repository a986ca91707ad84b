"""Direct I/O and fsync on a real file system: what passes the page cache, what is forced."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netbench.base.errors import EngineError
from netbench.engine.binding import Code, Edge
from netbench.engine.own_engine import local
from netbench.run.transfer import give_up
from tests.support.disks import ext4_on
from tests.support.engine_pair import MS, Pair, Side, data_methods
from tests.support.needs import needs

MIB = 1 << 20
SIZE = 5 * MIB + 12345  # the last block is not whole
CPU = min(os.sched_getaffinity(0))
CACHESTAT = 451  # its number on all architectures, Linux 6.5
WRITERS = [name for name, one in local().receive.items() if one.has("direct")]
TO_FILE = [m for m in data_methods(local(), "receive") if local().receive[m].has("to_file")]


@pytest.fixture(scope="module")
@needs("root")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("disk")
    with ext4_on(folder / "image", folder / "ext4", 256 * MIB) as mounted:
        yield mounted


@pytest.fixture(scope="module")
def source(disk: Path) -> Path:
    (disk / "source").write_bytes(os.urandom(SIZE))
    return disk / "source"


def cached(path: Path) -> tuple[int, int]:
    """Bytes of a file in the page cache, and those still to be written, by the kernel."""
    libc = ctypes.CDLL(None, use_errno=True)
    seen = ctypes.create_string_buffer(40)
    with path.open("rb") as file:
        if libc.syscall(CACHESTAT, file.fileno(), struct.pack("QQ", 0, 0), seen, 0):
            pytest.skip("needs cachestat(2): Linux 6.5")
    pages, dirty, writeback, *_ = struct.unpack("5Q", seen.raw)
    size = os.sysconf("SC_PAGESIZE")
    return pages * size, (dirty + writeback) * size


def around(received: Side, name: str) -> tuple[int, int]:
    return received.total("", name, Edge.OPEN), received.total("", name, Edge.DRAINED)


def to_sink(path: Path, **more: int | str) -> dict[str, int | str]:
    path.unlink(missing_ok=True)
    for stream in range(1, 8):
        Path(f"{path}.{stream}").unlink(missing_ok=True)
    return {"sink": "file", "sink_path": str(path), **more}


@pytest.mark.parametrize("receive", WRITERS)
@pytest.mark.parametrize(
    ("streams", "pin"), [(1, {}), (3, {}), (3, {"cpu": CPU})], ids=["one", "three", "pinned"]
)
def test_direct_files_are_read_and_written_past_the_page_cache(
    pair: Pair, disk: Path, source: Path, receive: str, streams: int, pin: dict[str, int]
) -> None:
    """A whole source and a part of it once more, so that the last block of both is a part of one."""
    sink = disk / "out"
    length, page = SIZE + 70_001, os.sysconf("SC_PAGESIZE")
    to_sender = {"source": "file", "source_path": str(source), "direct": 1, "cache": "cold"}
    bounds = {"bytes": length, "duration": 0, "warmup": 0, "verify": 1, "streams": streams, **pin}
    sent, received = pair.run("readwrite", receive, to_sender, to_sink(sink, direct=1), **bounds)
    assert sent.numbers("", "digest") == received.numbers("", "digest")
    written = b"".join(Path(f"{sink}.{i}" if i else sink).read_bytes() for i in range(streams))
    content = source.read_bytes()
    assert len(written) == length
    if streams == 1:
        assert written == content + content[:70_001]
    assert sent.total("", "resident", 0) == 0
    assert around(received, "sink_resident")[0] == 0
    assert around(received, "sink_resident")[1] <= streams * page, "but for the last block"
    # verify has read both through the page cache by now; the run itself read from the disk
    assert sent.moved("disk", "read_bytes") >= SIZE


def test_a_direct_source_is_read_from_its_disk_though_it_is_in_memory(
    pair: Pair, source: Path
) -> None:
    source.read_bytes()
    options = {"source": "file", "source_path": str(source), "direct": 1}
    bounds = {"bytes": SIZE, "duration": 0, "warmup": 0}
    sent, _ = pair.run("readwrite", "read", options, **bounds)
    assert sent.moved("disk", "read_bytes") >= SIZE
    sent, _ = pair.run("readwrite", "read", {**options, "direct": 0}, **bounds)
    assert sent.moved("disk", "read_bytes") == 0
    assert sent.total("", "resident_after") == SIZE


REFUSED = [
    ({"chunk": 1000}, {}, "direct I/O on SOURCE is in blocks of 512 bytes, got calls of 1000"),
    ({}, {"receive_chunk": 65537}, "is in blocks of 512 bytes, got calls of 65537"),
    ({"align": 1}, {}, "needs a buffer at a multiple of"),
]


def test_calls_that_direct_io_cannot_make_are_refused_with_the_reason(
    pair: Pair, disk: Path, source: Path
) -> None:
    whole = {"source": "file", "source_path": str(source), "direct": 1}
    for to_sender, to_receiver, says in REFUSED:
        sink = to_sink(disk / "refused", direct=1, **to_receiver)
        with pytest.raises(EngineError) as caught:
            pair.run("readwrite", "read", {**whole, **to_sender}, sink, bytes=MIB)
        assert caught.value.code == Code.REQUEST
        assert says.replace("SOURCE", str(source)) in str(caught.value)
        give_up(pair.sender, pair.receiver)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"direct": 1}, "/dev/null has no direct I/O"),
        ({"fsync": "after"}, "fsync: /dev/null is no regular file"),
    ],
)
def test_what_is_no_disk_is_unsupported(pair: Pair, how: dict[str, Any], says: str) -> None:
    sink = {"sink": "file", "sink_path": "/dev/null", **how}
    with pytest.raises(EngineError, match=says) as caught:
        pair.prepare("write", "read", {}, sink, bytes=MIB)
    assert caught.value.code == Code.UNSUPPORTED


AFTER = ["after"] * 5  # at most: a machine with much to write may write that at once


@pytest.mark.parametrize("receive", TO_FILE)
@pytest.mark.parametrize("bounded", [True, False], ids=["bytes", "duration"])
def test_fsync_is_within_the_window_or_after_it(
    pair: Pair, disk: Path, receive: str, bounded: bool
) -> None:
    """What is left to be written at the end: nothing with `window`, which an fsync makes longer."""
    sink, lasts = disk / "synced", 30 * MS
    bounds = (
        {"bytes": 2 * MIB, "duration": 0, "warmup": 0}
        if bounded
        else {"duration": lasts, "warmup": 10 * MS, "rate": 10**9}
    )
    left = {}
    for fsync in ("none", "window", *AFTER):
        if left.get(fsync):
            continue
        sent, received = pair.run("write", receive, {}, to_sink(sink, fsync=fsync), **bounds)
        assert sent.numbers("flow", "bytes") == received.numbers("flow", "bytes")
        assert sink.stat().st_size == received.total("flow", "bytes")
        assert around(received, "sink_resident")[0] == around(received, "sink_dirty")[0] == 0
        assert around(received, "sink_resident")[1] >= received.total("flow", "bytes")
        left[fsync] = around(received, "sink_dirty")[1]
        window = received.ns(Edge.CLOSE) - received.ns(Edge.OPEN)
        assert (("", "fsync_ns", Edge.DRAINED) in received.vectors) == (fsync != "none")
        if fsync == "window":
            assert window >= received.total("", "fsync_ns") + (0 if bounded else lasts)
            synced = received.total("flow", "bytes", Edge.CLOSE)
            assert left[fsync] <= received.total("flow", "bytes") - synced + 65536
        if fsync == "after":
            assert cached(sink)[1] == 0
    assert left["after"] > 0
    assert left["none"] > 0


def test_fsync_of_streams_that_share_a_thread_and_of_those_that_do_not(
    pair: Pair, disk: Path
) -> None:
    for pin in ({}, {"cpu": CPU}):
        sink, more = to_sink(disk / "many", fsync="window"), {"streams": 4, "warmup": 0, **pin}
        # a receiver that is paced had a thread for each
        _, received = pair.run("write", "read", {"rate": 10**9}, sink, duration=30 * MS, **more)
        window = received.ns(Edge.CLOSE) - received.ns(Edge.OPEN)
        assert window >= 30 * MS + received.total("", "fsync_ns")
