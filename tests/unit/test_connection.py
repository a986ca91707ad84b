"""Ctrl-C in the middle of what a worker sends or is sent."""

from __future__ import annotations

import signal
import time

import pytest

from netbench.engine import frames
from netbench.engine.binding import Frame
from netbench.engine.connection import Connection

pytestmark = pytest.mark.usefixtures("interruptible")

ANSWER = frames.frame(Frame.UNDONE, 1, b"all")


class Interrupted:
    """A stream during whose calls the user presses Ctrl-C: bytes have moved by then."""

    def __init__(self) -> None:
        self.chunks = [ANSWER[:7], ANSWER[7:]]
        self.written = b""
        self.pressed = False

    def _press(self) -> None:
        if not self.pressed:
            self.pressed = True
            signal.raise_signal(signal.SIGINT)

    def read(self, timeout: float) -> bytes:
        chunk = self.chunks.pop(0)
        self._press()
        return chunk

    def write(self, data: bytes) -> None:
        self.written += data[:5]
        self._press()
        self.written += data[5:]

    def finish(self, timeout: float) -> int | None:
        return 0

    def complaint(self) -> str:
        return ""


def test_an_interrupt_loses_nothing_of_what_was_read() -> None:
    connection = Connection(Interrupted(), "h")
    with pytest.raises(KeyboardInterrupt):
        connection.next_frame(time.monotonic() + 5)
    assert connection.next_frame(time.monotonic() + 5) == (Frame.UNDONE, 1, b"all")


def test_an_interrupt_leaves_no_half_of_a_frame() -> None:
    stream = Interrupted()
    connection = Connection(stream, "h")
    with pytest.raises(KeyboardInterrupt):
        connection.write(ANSWER)
    connection.write(ANSWER)
    assert stream.written == ANSWER + ANSWER
