"""A worker program that passes a real worker's frames on, until one of its triggers."""

from __future__ import annotations

import os
import platform
import select
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from netbench.engine import frames
from netbench.engine.binding import FRAME_MAX, Frame, describe
from tests.support.paths import ROOT

HEADER = struct.Struct("=IHH")
VECTOR = struct.Struct("=IHHIIQ")  # struct nb_vector
REAL = ROOT / "netbench" / "engine" / f"worker-{platform.machine()}"
ROWS = {
    (row.owner, row.name): row.id
    for row in describe()
    if row.kind in ("counter", "proof", "readback")
}


def program(behaviour: str, marker: Path) -> bytes:
    """The program that behaves so, and makes `marker` then; without a controller it ends."""
    return (
        f"#!{sys.executable}\nimport os, sys\n"
        "if os.path.sameopenfile(0, os.open(os.devnull, os.O_RDONLY)): sys.exit()\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        f"from tests.support.hostile_worker import main\nmain({behaviour!r}, {str(marker)!r})\n"
    ).encode()


def numbers(owner: str, name: str, edge: int, ns: int, *body: int) -> bytes:
    """A vector of numbers."""
    row = ROWS[owner, name]
    return VECTOR.pack(row, edge, 0, len(body), 0, ns) + struct.pack(f"={len(body)}Q", *body)


def text(row: int, data: bytes) -> bytes:
    """A vector of text."""
    return VECTOR.pack(row, 0, 1, 0, len(data), 0) + data + bytes(-len(data) % 8)


def sent(
    kind: Frame, payload: bytes = b"", tag: int | None = None
) -> Callable[[int, bytes], bytes]:
    """A frame in answer to the present request, or with a tag of its own."""
    return lambda given, _: frames.frame(kind, given if tag is None else tag, payload)


def added(odd: bytes) -> Callable[[int, bytes], bytes]:
    """The real result, and more."""
    return lambda tag, real: frames.frame(Frame.RESULT, tag, real + odd)


def raw(data: bytes) -> Callable[[int, bytes], bytes]:
    return lambda tag, _: data


def forever(
    make: Callable[[int, bytes], bytes], pause: float = 0
) -> Callable[..., Iterator[bytes]]:
    """The same again and again."""

    def pieces(tag: int, payload: bytes) -> Iterator[bytes]:
        piece = make(tag, payload)
        if not pause:
            piece *= max(1, (1 << 16) // len(piece))
        while True:
            yield piece
            time.sleep(pause)

    return pieces


def once(make: Callable[[int, bytes], bytes]) -> Callable[..., Iterator[bytes]]:
    """What the attack sends first; then the real worker goes on."""
    return lambda tag, payload: iter([make(tag, payload)])


def drip(make: Callable[[int, bytes], bytes]) -> Callable[..., Iterator[bytes]]:
    """One byte a second."""

    def pieces(tag: int, payload: bytes) -> Iterator[bytes]:
        for byte in make(tag, payload):
            yield bytes([byte])
            time.sleep(1)

    return pieces


def leave(tag: int, payload: bytes) -> Iterator[bytes]:
    """End at once."""
    os._exit(0)
    yield b""


def complain(tag: int, payload: bytes) -> Iterator[bytes]:
    """Print on standard error for ever."""
    while True:
        os.write(2, b"\x1b[31mnoise " * 4096)
        yield b""


def retimed(kind: Frame, clock: Callable[[int, int], int]) -> Callable[[int, bytes], bytes]:
    """The real worker's vectors at other times: what the clock says of an edge and its time."""

    def spoil(tag: int, payload: bytes) -> bytes:
        told, at = bytearray(payload), 0
        while at < len(told):
            _, edge, _, count, size, ns = VECTOR.unpack_from(told, at)
            if ns:
                struct.pack_into("=Q", told, at + VECTOR.size - 8, clock(edge, ns))
            at += VECTOR.size + 8 * count + (size + 7) // 8 * 8
        return frames.frame(kind, tag, bytes(told))

    return spoil


# What a worker does in place of its own frame of that kind (or, of a kind that controllers send, in
# place of passing it on): it gets that frame's tag and payload.
Behaviour = tuple[Frame, Callable[[int, bytes], Iterator[bytes]]]


SAMPLE = numbers("flow", "bytes", 0, 1, 7)
WINDOW = b"".join(numbers("flow", "bytes", edge, 10**9 * (2 - edge), 7) for edge in range(2))
HEARTBEAT = frames.frame(Frame.HEARTBEAT, 0)

ODD = {
    "a silence in words": text(ROWS["", "silence"], b"x"),
    "a silence of no number": numbers("", "silence", 0, 0),
    "an edge that is none": numbers("", "port", 9, 0, 5),
    "streams that come and go": numbers("flow", "bytes", 1, 2**62, 5, 5),
    "a readback at three edges": b"".join(numbers("", "resident", edge, 0, 5) for edge in range(3)),
}
HEARTBEATS = forever(raw(HEARTBEAT), 0.5)
GARBAGE = text(0, b"cpu x-y z,0-9999999999\n\xff: (1) -1 9e999\n" * 9)
SAMPLED = text(ROWS["", "congestion"], bytes(1000))

BEHAVIOURS: dict[str, Behaviour] = {
    "hello without end": (Frame.HELLO, drip(sent(Frame.HELLO, bytes(FRAME_MAX)))),
    "heartbeats in place of a hello": (Frame.HELLO, HEARTBEATS),
    "hello of a huge length": (Frame.HELLO, once(raw(HEADER.pack(2**32 - 1, 1, 0)))),
    "hello and no more": (Frame.HELLO, leave),
    "noise on standard error": (Frame.HELLO, complain),
    "no answer to a job": (Frame.JOB, HEARTBEATS),
    "a port of no number": (Frame.READY, once(sent(Frame.READY, numbers("", "port", 0, 0)))),
    "no port": (Frame.READY, once(sent(Frame.READY))),
    "the end at go": (Frame.GO, leave),
    "edges without end": (Frame.GO, forever(sent(Frame.EDGE, struct.pack("=II", 3, 0)))),
    "large stale frames without end": (
        Frame.GO,
        forever(sent(Frame.RESULT, bytes(FRAME_MAX), 60000)),
    ),
    "samples without end": (Frame.GO, forever(sent(Frame.SAMPLES, SAMPLED))),
    "heartbeats in place of a run": (Frame.GO, HEARTBEATS),
    "noise in place of frames": (Frame.GO, forever(raw(b"\xff" * 4096))),
    "a result in one byte a second": (Frame.RESULT, drip(sent(Frame.RESULT, bytes(FRAME_MAX)))),
    "a window that closes before it opens": (Frame.RESULT, once(sent(Frame.RESULT, WINDOW))),
    "a clock that jumps by days in a window": (
        Frame.RESULT,
        once(retimed(Frame.RESULT, lambda edge, ns: ns + bool(edge) * 3 * 86400 * 10**9)),
    ),
    "samples that run backwards": (
        Frame.SAMPLES,
        once(retimed(Frame.SAMPLES, lambda _, ns: 2**62 - ns)),
    ),
    "an empty result": (Frame.RESULT, once(sent(Frame.RESULT))),
    "a row that is not there": (
        Frame.RESULT,
        once(sent(Frame.RESULT, VECTOR.pack(60000, 0, 0, 0, 0, 0))),
    ),
    **{f"{name} in a result": (Frame.RESULT, once(added(odd))) for name, odd in ODD.items()},
    "an error of another size": (Frame.RESULT, once(sent(Frame.ERROR, b"no"))),
    "errors without end": (
        Frame.RESULT,
        forever(sent(Frame.ERROR, struct.pack("=II576s", 3, 5, b"o" * 576))),
    ),
    "an operation's answer in numbers": (Frame.OP_DONE, once(sent(Frame.OP_DONE, SAMPLE))),
    "samples before there is a run": (Frame.OP_DONE, once(sent(Frame.SAMPLES, SAMPLE, 0))),
    "words in answer to all questions": (Frame.OP_DONE, once(sent(Frame.OP_DONE, GARBAGE))),
    "heartbeats after goodbye": (Frame.BYE, HEARTBEATS),
}


class Proxy:
    """The real worker, and its controller on standard input and output."""

    def __init__(self, behaviour: Behaviour, marker: Path) -> None:
        self._behaviour = behaviour
        self._marker = marker
        pipe = subprocess.PIPE
        self._real = subprocess.Popen([REAL, *sys.argv[1:]], stdin=pipe, stdout=pipe, bufsize=0)
        assert self._real.stdin
        assert self._real.stdout
        self._in, self._out = self._real.stdin.fileno(), self._real.stdout.fileno()

    def run(self) -> None:
        """Pass frames until one side closes."""
        buffers = {0: bytearray(), self._out: bytearray()}
        while True:
            for source in select.select(list(buffers), [], [])[0]:
                data = os.read(source, 1 << 16)
                if not data:
                    self._real.stdin.close()  # type: ignore[union-attr]
                    sys.exit(self._real.wait() if source == 0 else 0)
                buffers[source] += data
                while (frame := frames.split(buffers[source])) is not None:
                    self._pass(source, *frame)

    def _pass(self, source: int, kind: Frame, tag: int, payload: bytes) -> None:
        on, pieces = self._behaviour
        if kind is on and (kind is not Frame.HELLO or source == self._out):
            self._marker.touch()
            for piece in pieces(tag, payload):
                _write(1, piece)
        else:
            _write(1 if source == self._out else self._in, frames.frame(kind, tag, payload))


def _write(to: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(to, view) :]


def main(behaviour: str, marker: str) -> None:
    """Behave so."""
    Proxy(BEHAVIOURS[behaviour], Path(marker)).run()
