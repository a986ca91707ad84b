"""What is sent arrives, byte for byte: every send method, receive method, source and sink."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from netbench.engine.catalogue import Named
from netbench.engine.own_engine import local
from tests.support.engine_pair import MS, Pair, Side, data_methods, shared

BYTES = 12 * 2**20 + 1  # of the pairs in which each method comes once
FEWER = 3 * 2**20 + 1  # of all others, more than any source holds
CHUNK = 60_013  # odd: no multiple of a page, nor of the receiver's
FILES, FILE_SIZE = 7, 300 * 1024 + 5
NAMED_SIZE = 2**20 + 123
SOURCES = {"memory": "from_memory", "zero": "from_zero", "file": "from_file", "files": "from_file"}


def pattern(length: int, offset: int = 0) -> bytes:
    """nb_pattern: byte i is byte i % 8 of splitmix64(i / 8)."""
    first, words = offset // 8, (offset % 8 + length + 7) // 8
    x = (np.arange(first + 1, first + words + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return x.astype("<u8").tobytes()[offset % 8 : offset % 8 + length]


def rounds(content: bytes, length: int) -> bytes:
    """The content over and over, up to `length` bytes."""
    return (content * (length // len(content) + 1))[:length]


def part(whole: bytes, file_size: int, stream: int, streams: int) -> bytes:
    """What a stream sends of files in a row: an equal share, from the page on in which it begins."""
    begins = [len(whole) * i // streams for i in range(streams + 1)]
    first, last = (b - b % file_size % 4096 for b in begins[stream : stream + 2])
    return whole[first : last if stream + 1 < streams else len(whole)]


class Content:
    """What a stream of each source looks like."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "named"
        self.named = np.random.default_rng(1).bytes(NAMED_SIZE)
        self.path.write_bytes(self.named)

    def options(self, source: str) -> dict[str, int | str]:
        files: dict[str, int | str] = {"source_files": FILES, "source_size": FILE_SIZE}
        more = {"file": {"source_path": str(self.path)}, "files": files}
        return {"source": source, **more.get(source, {})}

    def of(
        self,
        source: str,
        length: int,
        from_buffer: bool,
        chunk: int = CHUNK,
        align: int = 0,
        stream: tuple[int, int] = (0, 1),
    ) -> bytes:
        if source == "zero":
            return bytes(length)
        if source == "file":
            return rounds(part(self.named, NAMED_SIZE, *stream), length)
        if source == "files":
            files = b"".join(pattern(FILE_SIZE, i * FILE_SIZE) for i in range(FILES))
            return rounds(part(files, FILE_SIZE, *stream), length)
        whole = (
            chunk if from_buffer else -(-(2**20) // chunk) * chunk
        )  # a file in memory holds whole chunks
        return rounds(pattern(whole, align if from_buffer else 0), length)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Content:
    return Content(tmp_path_factory.mktemp("content"))


def sources(method: Named) -> list[str]:
    return [source for source, flag in SOURCES.items() if method.has(flag)]


def sends_from_buffer(send: str, source: str) -> bool:
    """Whether a stream is one buffer over and over: memory and zero without descriptors."""
    method = local().send[send]
    return source in ("memory", "zero") and not method.has("from_file")


def delivering() -> list[tuple[str, str, str, int]]:
    """Send methods, receive methods and sources by which real bytes arrive; how many of them."""
    catalogue = local()
    receives = [
        r for r in data_methods(catalogue, "receive") if catalogue.receive[r].has("delivers")
    ]
    sends = [s for s in data_methods(catalogue, "send") if catalogue.send[s].has("delivers")]
    pairs = max(len(sends), len(receives))
    once = {(sends[i % len(sends)], receives[i % len(receives)]) for i in range(pairs)}
    return [
        (s, r, source, BYTES if (s, r) in once else FEWER)
        for s in sends
        for r in receives
        for source in sources(catalogue.send[s])
    ]


def same_digest(sides: tuple[Side, Side]) -> bool:
    sent, received = (side.numbers("", "digest") for side in sides)
    return bool(sent) and sent == received


@pytest.mark.parametrize(("send", "receive", "source", "length"), delivering())
def test_what_is_sent_arrives(
    pair: Pair, content: Content, tmp_path: Path, send: str, receive: str, source: str, length: int
) -> None:
    method = local().receive[receive]
    from_buffer = sends_from_buffer(send, source)
    to_sender = {"chunk": CHUNK, **content.options(source)}
    sink = tmp_path / "sink"
    to_file = {"sink": "file", "sink_path": str(sink)}
    places = (
        [{}] if method.has("to_discard") and (length == BYTES or not method.has("to_file")) else []
    )
    for to_receiver in [*places, *([to_file] if method.has("to_file") else [])]:
        sides = pair.run(send, receive, to_sender, to_receiver, bytes=length, verify=1)
        assert sides[1].moved("flow", "bytes") == length
        assert same_digest(sides)
    if method.has("to_file"):
        assert sink.read_bytes() == content.of(source, length, from_buffer)


def test_files_that_are_made_have_a_folder_that_nobody_can_watch(
    pair: Pair, content: Content
) -> None:
    pair.run("sendfile", "read", {"chunk": CHUNK, **content.options("files")}, {}, bytes=FEWER)
    fds = Path(f"/proc/{pair.sender.hello.pid}/fd").iterdir()
    made = [Path(link) for link in map(os.readlink, fds) if link.endswith(" (deleted)")]
    assert [file.parent.exists() for file in made] == [False] * FILES, "inotify(7) sees none"


# Each column once at its odd end: streams, chunk, receive_chunk, align, preamble, warm-up.
ODD = [
    ("write", "read", "memory", 4, 1_000_003, 8191, 1, 0, 0),
    ("readwrite", "splice", "files", 4, 100_001, 131_072, 13, 4096, 0),
    ("sendfile", "read", "file", 4, 4097, 1_000_003, 0, 1448, 0),
    ("splice", "splice", "file", 4, 8191, 8191, 0, 70_000, 0),
    ("mmap", "read", "files", 4, 4095, 4095, 0, 1, 0),
    ("sendfile", "splice", "files", 2, 50_000, 65536, 0, 333, 3),
    ("write", "read", "memory", 2, 65_536, 1, 8, 5, 0),
    ("zerocopy", "splice", "memory", 1, 1, 65536, 4095, 1, 0),
    ("sendfile", "read", "files", 1, 0, 65536, 0, 512, 3),
    ("mmap", "mmap", "file", 4, 4095, 8191, 0, 1, 3),
    ("vmsplice", "vmsplice", "memory", 4, 100_001, 8191, 13, 70_000, 3),
    ("write", "mmap", "memory", 1, 1, 65536, 1, 0, 0),
    ("uring", "uring", "memory", 4, 60_013, 8191, 3, 77, 3),
    ("uring", "vmsplice", "zero", 2, 100_001, 4097, 0, 333, 3),
    ("uring_zc", "zerocopy", "memory", 4, 60_013, 65536, 5, 77, 3),
    ("uring_zc", "uring", "zero", 3, 999, 1_000_003, 0, 0, 3),
    ("zerocopy", "zerocopy", "zero", 4, 100_001, 131_072, 0, 4096, 3),
    ("write", "zerocopy", "memory", 2, 65_536, 100, 0, 5, 3),
]
# What the options of methods change: who sends, its options, who receives, its options.
OPTIONS: list[tuple[str, dict[str, int | str], str, dict[str, int | str]]] = [
    ("mmap", {"nodelay": 1}, "read", {"busy_poll": 1000}),
    ("vmsplice", {"queue_depth": 1}, "vmsplice", {"pipe_size": 4096}),
    ("vmsplice", {"pipe_size": 4096, "queue_depth": 100}, "splice", {}),
    ("splice", {"pipe_size": 4096}, "splice", {"pipe_size": 4096}),
    ("zerocopy", {"batch": 1}, "zerocopy", {}),
    ("zerocopy", {"batch": 1000, "nodelay": 1}, "read", {}),
    ("uring", {"queue_depth": 1}, "uring", {"queue_depth": 1}),
    ("uring", {"queue_depth": 100}, "uring", {"queue_depth": 1024}),
    ("uring_zc", {"queue_depth": 1}, "uring", {"queue_depth": 2}),
]


THREADS = pytest.mark.parametrize("one", [False, True], ids=["", "shared"])
"""Whether streams share one thread."""


@THREADS
@pytest.mark.parametrize("odd", ODD, ids=lambda o: "-".join(map(str, o)))
def test_odd_sizes_arrive_too(
    pair: Pair, content: Content, tmp_path: Path, odd: tuple[Any, ...], one: bool
) -> None:
    send, receive, source, streams, chunk, receive_chunk, align, preamble, warmup = odd
    pin = shared(local(), send) if one else {}
    total = 50_003 if min(chunk or 99, receive_chunk) == 1 else 3_000_001
    sink = tmp_path / "sink"
    to_sender = {"chunk": chunk, "align": align, "preamble": preamble, **content.options(source)}
    to_receiver = {"receive_chunk": receive_chunk, "sink": "file", "sink_path": str(sink)}
    common = {"bytes": total, "streams": streams, "warmup": warmup * MS, "verify": 1, **pin}
    sides = pair.run(send, receive, to_sender, to_receiver, **common)
    arrived = sides[1].numbers("flow", "bytes")
    assert sides[0].numbers("flow", "bytes") == arrived
    assert sides[1].moved("flow", "bytes") == total + (0 if warmup else preamble * streams)
    assert same_digest(sides)
    buffer = sends_from_buffer(send, source)
    for stream, length in enumerate(arrived):
        body = content.of(source, length - preamble, buffer, chunk or 1, align, (stream, streams))
        assert of_stream(sink, stream) == bytes(preamble) + body, f"stream {stream}"


def of_stream(sink: Path, stream: int) -> bytes:
    return (sink.with_name(f"{sink.name}.{stream}") if stream else sink).read_bytes()


@THREADS
@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda o: f"{o[0]}-{o[2]}-" + "-".join(map(str, {**o[1], **o[3]}))
)
def test_options_change_no_byte(
    pair: Pair, content: Content, tmp_path: Path, options: tuple[Any, ...], one: bool
) -> None:
    """The same bytes arrive, and those of the warm-up are none of the window's."""
    send, sends, receive, receives = options
    pin = shared(local(), send) if one else {}
    common = {"bytes": 1_000_003, "streams": 2, "warmup": 2 * MS, "verify": 1, **pin}
    every = sources(local().send[send])
    for source in every[one::2] or every:
        sink = tmp_path / f"{source}-sink"
        to_sender = {"chunk": 20_011, **content.options(source), **sends}
        to_receiver = {"receive_chunk": 30_011, "sink": "file", "sink_path": str(sink), **receives}
        sides = pair.run(send, receive, to_sender, to_receiver, **common)
        assert sides[1].moved("flow", "bytes") == 1_000_003
        assert same_digest(sides)
        buffer = sends_from_buffer(send, source)
        for stream, length in enumerate(sides[1].numbers("flow", "bytes")):
            body = content.of(source, length, buffer, 20_011, 0, (stream, 2))
            assert of_stream(sink, stream) == body, f"{source}, stream {stream}"
