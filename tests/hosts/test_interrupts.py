"""Ctrl-C at the worst instant: right after paramiko took a lock. Over a real sshd; the instant is
brought about by a lock that sends the signal itself.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from netbench.base.cancel import aside, held_back
from netbench.hosts.ssh.process import SshProcess
from tests.support.sshd import Bed, bed, needs_sshd, started, tmp_path

__all__ = ["bed", "tmp_path"]
PATIENCE = 30.0  # seconds; only a failure waits for it


class InterruptingLock:
    """A lock; the first time that it is taken, Ctrl-C is pressed."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.pressed = False

    def acquire(self, *how: Any) -> bool:
        taken = bool(self.lock.acquire(*how))
        if not self.pressed:
            self.pressed = True
            os.kill(os.getpid(), signal.SIGINT)
        return taken

    def release(self) -> None:
        self.lock.release()


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """Ctrl-C as the command line takes it."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        held_back.interrupt()

    before = signal.signal(signal.SIGINT, interrupt)
    yield
    signal.signal(signal.SIGINT, before)


def in_time(act: Callable[[], object]) -> bool:
    """Whether it ends, in a thread of its own."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return not thread.is_alive()


@pytest.mark.root
@needs_sshd
def test_an_interrupted_write_leaves_no_lock_taken(bed: Bed) -> None:
    _, channel = bed.host()
    process = started(channel, ["cat"])
    assert isinstance(process, SshProcess)
    packets = process._session.transport.packetizer
    lock = InterruptingLock(packets._Packetizer__write_lock)
    packets._Packetizer__write_lock = lock
    with pytest.raises(KeyboardInterrupt):
        process.write(b"one\n")
    assert lock.pressed
    assert in_time(lambda: process.write(b"two\n"))
    found = b""
    while found.count(b"\n") < 2:
        found += process.read(PATIENCE)
    assert found == b"one\ntwo\n"
    process.abandon()


def test_what_is_held_back_comes_once_and_at_the_end() -> None:
    steps = []

    @held_back
    def outer() -> None:
        with held_back:
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("inner")
        steps.append("outer")

    with pytest.raises(KeyboardInterrupt):
        outer()
    assert steps == ["inner", "outer"]
    with held_back:
        pass


def test_what_is_done_aside_answers_and_fails_as_if_it_were_done_here() -> None:
    assert aside(lambda: 3) == 3
    with pytest.raises(ValueError, match="its own"):
        aside(lambda: int("its own"))
