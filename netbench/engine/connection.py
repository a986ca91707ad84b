"""The frames to and from one worker process.

One thread talks to a worker; the thread of engine.heartbeat only adds heartbeats between whole
frames.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Protocol

from netbench.base.cancel import held_back
from netbench.base.control_characters import escape_controls
from netbench.base.errors import ProtocolError, WorkerLost
from netbench.engine import binding, frames
from netbench.engine.binding import Frame

REASON_MAX = 200  # bytes of a worker's last words
INTERRUPT_SECONDS = 0.5  # how often a wait looks for `interrupt`
AGAIN_SECONDS = 0.5  # a read that soon after one that found nothing waits for the same data
LISTENED_BYTES = 1 << 20  # of a worker that nothing is awaited from


class Stream(Protocol):
    """What a worker is reached through (hosts.host_channel.Process)."""

    def read(self, timeout: float) -> bytes: ...
    def write(self, data: bytes) -> None: ...
    def finish(self, timeout: float) -> int | None: ...
    def complaint(self) -> str: ...


class Connection:
    """The frames of one worker process, whose host its errors name.

    `silence`: the longest wait for data since it was set to 0, in seconds; a worker sends something
    every HEARTBEAT_SECONDS. `lost`: the worker is gone, or was abandoned.
    """

    def __init__(self, stream: Stream, host: str) -> None:
        self.host = host
        self.silence = 0.0
        self._heard = self._tried = self._waits_since = self._told = time.monotonic()
        self.lost = False
        self._why = ""  # it was lost, as was found first
        self._stream = stream
        self._buffer = bytearray()
        self._lock = threading.Lock()
        self._interrupt: KeyboardInterrupt | None = None

    @contextlib.contextmanager
    def naming(self) -> Iterator[None]:
        """Errors of the protocol name the host."""
        try:
            yield
        except ProtocolError as error:
            raise ProtocolError(f"{self.host}: {error}") from error

    def write(self, data: bytes) -> None:
        """Write whole frames. Errors: WorkerLost, at once where that is known."""
        if self.lost:
            raise self.lost_by(self._why or "it was abandoned")
        try:
            with held_back, self._lock:  # an interrupt leaves no half of a frame
                self._stream.write(data)
                self._told = time.monotonic()
        except (OSError, ValueError) as error:
            raise self.lost_by(f"writing to it failed ({error})") from error

    def send_heartbeat(self) -> None:
        """Tell the worker that the controller is alive. Never waits and never raises: the thread
        that talks to the worker meets the error.
        """
        if not self._lock.acquire(blocking=False):
            return  # a frame is being written
        try:
            self._stream.write(frames.frame(Frame.HEARTBEAT, 0))
            self._told = time.monotonic()
        except (OSError, ValueError):
            return
        finally:
            self._lock.release()

    def next_frame(self, deadline: float) -> tuple[Frame, int, bytes]:
        """The type, tag and payload of the next frame that is not a heartbeat.

        Errors: WorkerLost; ProtocolError; TimeoutError when the worker lives but sends no such
        frame before `deadline` (time.monotonic), whatever else it sends; what `interrupt` was
        given.
        """
        while True:
            with self.naming():
                frame = frames.split(self._buffer)
            if frame is None:
                self._fill(deadline)
            elif frame[0] is Frame.BYE:
                reason = escape_controls(frame[2].decode("utf-8", "replace")[:REASON_MAX])
                raise self.lost_by(reason)
            elif frame[0] is not Frame.HEARTBEAT:
                return frame

    def interrupt(self, reason: KeyboardInterrupt | None = None) -> None:
        """Make the thread that waits for this worker raise this; left out: as by Ctrl-C."""
        self._interrupt = reason or KeyboardInterrupt()

    def clear_interrupt(self) -> None:
        """After `interrupt`: waiting is possible again."""
        self._interrupt = None

    def read_to_end(self, seconds: float) -> None:
        """Read and drop all data until the process closes its output. Errors: WorkerLost, which is
        the usual end; TimeoutError when it does not within `seconds`.
        """
        deadline = time.monotonic() + seconds
        while True:
            self._fill(deadline)
            self._buffer.clear()

    def finish(self, seconds: float) -> None:
        """Close the stream, and wait at most so long until the process has exited."""
        self.lost = True
        with self._lock:
            self._stream.finish(seconds)

    def lost_by(self, what: str) -> WorkerLost:
        """The error that the worker is gone, with the last that it printed."""
        self.lost = True
        self._why = self._why or what
        complaint = self._stream.complaint()
        hint = (
            f"its output: {complaint}"
            if complaint
            else f"`dmesg` on {self.host} may say why, or the network path to it is cut"
        )
        return WorkerLost(f"{self.host}: the worker is gone: {what}; {hint}")

    def _fill(self, deadline: float) -> None:
        """Take in the data that arrives next. Errors: TimeoutError where there is none before
        `deadline`; WorkerLost, also where there is none for SILENCE_SECONDS; what `interrupt` was
        given.
        """
        began = time.monotonic()
        if began - self._tried > AGAIN_SECONDS:  # else this goes on waiting for the same data
            self._waits_since = began
        until, left = min(deadline, began + binding.SILENCE_SECONDS), deadline - began
        while left > 0:  # whatever arrives later is late
            try:
                with held_back:  # an interrupt loses nothing of what was read
                    data = self._stream.read(min(left, INTERRUPT_SECONDS))
                    self._buffer += data
                break
            except TimeoutError:
                self._tried = time.monotonic()
                if self._interrupt:
                    raise self._interrupt from None
                left = until - self._tried
            except OSError as error:
                raise self.lost_by(str(error)) from error
        else:
            if until < deadline:
                raise self.lost_by(f"it fell silent for {binding.SILENCE_SECONDS} s")
            raise TimeoutError(
                f"{self.host}: the worker runs, but did not answer in time; check the path between"
                " the data addresses"
            )
        self._heard = time.monotonic()
        self.silence = max(self.silence, self._heard - self._waits_since)
        self._waits_since = self._heard
        if not data:
            raise self.lost_by("it closed the connection")

    def listen(self) -> None:
        """Take in what has arrived, while another worker is waited for. Errors: WorkerLost, also
        where nothing has arrived for SILENCE_SECONDS.
        """
        try:
            while len(self._buffer) < LISTENED_BYTES:
                self._fill(time.monotonic() + 1e-3)
        except TimeoutError:
            if self.unheard > binding.SILENCE_SECONDS:
                raise self.lost_by(f"it fell silent for {binding.SILENCE_SECONDS} s") from None

    @property
    def untold(self) -> float:
        """Seconds since the last frame was written."""
        return time.monotonic() - self._told

    @property
    def unheard(self) -> float:
        """Seconds since the last data was read."""
        return time.monotonic() - self._heard
