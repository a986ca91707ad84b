"""Keys and changes of size, as they come, of the terminal that a program runs on."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType


class Keys:
    """What the user does, while `listening`. Ctrl-C stays a signal."""

    def __init__(self, keyboard: int | None, signals: int) -> None:
        self._keyboard, self._signals = keyboard, signals
        self.resized = False
        """Whether the terminal has another size than when this was last set to False."""

    def wait(self, seconds: float) -> str:
        """The keys that were pressed, "" where none was within that time, or the size changed."""
        if self._keyboard is not None:
            _take_keys_one_by_one(self._keyboard)
        sources = [self._signals, *([self._keyboard] if self._keyboard is not None else [])]
        ready, _, _ = select.select(sources, [], [], seconds)
        if self._signals in ready:
            os.read(self._signals, 4096)
        if self._keyboard not in ready or self._keyboard is None:
            return ""
        pressed = b""
        with suppress(OSError):
            pressed = os.read(self._keyboard, 64)
        if not pressed:  # its other end is closed
            self._keyboard = None
        return pressed.decode("utf-8", "replace")


@contextmanager
def listening() -> Iterator[Keys]:
    """Keys of standard input, where it is a terminal; its mode is put back at the end."""
    keyboard = sys.stdin.fileno() if sys.stdin and sys.stdin.isatty() else None
    mode = termios.tcgetattr(keyboard) if keyboard is not None else None
    read_end, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    keys = Keys(keyboard, read_end)

    def resize(number: int, frame: FrameType | None) -> None:
        keys.resized = True

    before = signal.signal(signal.SIGWINCH, resize)
    wakeup = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    try:
        yield keys
    finally:
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGWINCH, before)
        os.close(read_end)
        os.close(write_end)
        if keyboard is not None and mode is not None and _is_in_front(keyboard):
            with suppress(termios.error):
                termios.tcsetattr(keyboard, termios.TCSADRAIN, mode)


def _is_in_front(keyboard: int) -> bool:
    """Whether this is not a job in the background, which the terminal's driver would stop."""
    try:
        return os.tcgetpgrp(keyboard) == os.getpgrp()
    except OSError:
        return False


def _take_keys_one_by_one(keyboard: int) -> None:
    """No waiting for a newline, no echo; again after each stop, since shells put their own mode
    back.
    """
    with suppress(termios.error, OSError):
        if _is_in_front(keyboard) and termios.tcgetattr(keyboard)[3] & termios.ICANON:
            tty.setcbreak(keyboard, termios.TCSANOW)
