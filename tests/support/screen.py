"""A terminal that a program runs on, and what a user sees on it: pyte plays the terminal."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyte

from tests.support.running import wait_for

CLOSING = b"\x04"  # what no program of ours prints: the reader's last byte


class Screen:
    """A program on a terminal of its own, as its session's leader. `streams`: those elsewhere."""

    def __init__(
        self,
        argv: Sequence[str | Path],
        columns: int = 80,
        lines: int = 24,
        env: Mapping[str, str] | None = None,
        **streams: Any,
    ) -> None:
        self._master, self.slave = os.openpty()
        self._is_open = True
        self.seen = b""
        self.display = pyte.HistoryScreen(columns, lines, history=10_000)
        self._stream = pyte.ByteStream(self.display)
        self._lock = threading.Lock()
        self._set_size(columns, lines)
        terminal = dict.fromkeys(("stdin", "stdout", "stderr"), self.slave)
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *map(str, argv)],
            **(terminal | streams),
            env={**os.environ, "TERM": "xterm-256color", **(env or {})},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        data = b""
        while CLOSING not in data:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            with self._lock:
                self.seen += data
                self._stream.feed(data)

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, columns: int, lines: int) -> None:
        """Another size; the program gets SIGWINCH."""
        with self._lock:
            self.display.resize(lines, columns)
        self._set_size(columns, lines)

    @property
    def lines(self) -> list[str]:
        """What is on the screen now, without the empty lines at its end."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self.display.display).rstrip().split("\n")

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines)

    def await_text(self, text: str) -> None:
        """Until a text is on the screen."""
        try:
            wait_for(
                lambda: text in self.text, lambda: self.process.poll() is None or text in self.text
            )
        except AssertionError as error:
            raise AssertionError(f"{text!r} is not on the screen:\n{self.text}") from error

    def press(self, keys: str) -> None:
        """What the user types."""
        os.write(self._master, keys.encode())

    def is_echoing(self) -> bool:
        """Whether the terminal is as a shell leaves it: lines are edited and echoed."""
        flags = termios.tcgetattr(self.slave)[3]
        return bool(flags & termios.ECHO and flags & termios.ICANON)

    def end(self) -> int:
        """The exit status; what was printed is on the screen then."""
        status = self.process.wait(60)
        wait_for(lambda: not any(fcntl.ioctl(self._master, termios.FIONREAD, bytes(4))))
        return status

    def hang_up(self) -> None:
        """Close it as a window is closed; whoever writes to it then gets EIO."""
        os.write(self.slave, CLOSING)
        os.close(self.slave)
        self._reader.join(5)
        os.close(self._master)
        self._is_open = False

    def close(self) -> None:
        """End the program, if it still runs, and the terminal."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self._is_open:
            self.hang_up()
