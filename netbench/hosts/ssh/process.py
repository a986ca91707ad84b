"""A program on a host, over an SSH session of its own."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

from netbench.base.cancel import held_back
from netbench.hosts.ssh.connection import SSH_ERRORS, Connection
from netbench.hosts.ssh.wire import POLL_SECONDS, STALL_SECONDS

ERROR_BYTES = 8192  # of standard error that are kept
ERROR_READS = 64  # at once: standard error may never end
REMARK_LENGTH = 500
PACKET_BYTES = 1 << 15


class SshProcess:
    """A program on a host. Any thread may write, one reads."""

    def __init__(self, session: Any, connection: Connection) -> None:
        """`session` is paramiko's channel, which has no types."""
        self._session = session
        self._connection = connection
        self._errors = bytearray()
        self._lock = threading.Lock()

    def read(self, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        while True:
            self._collect_errors()
            # The session has one timeout for both directions: short waits keep a reader's from
            # blocking a writer.
            self._session.settimeout(min(max(deadline - time.monotonic(), 0.001), POLL_SECONDS))
            try:
                with held_back:
                    data = self._session.recv(1 << 16)
            except TimeoutError:
                if time.monotonic() >= deadline:
                    raise
                continue
            if not data and not self._connection.alive and self._session.exit_status < 0:
                raise ConnectionResetError(self._lost())
            return bytes(data)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        deadline = time.monotonic() + STALL_SECONDS
        while view:
            if not self._connection.alive:
                raise BrokenPipeError(self._lost())
            if time.monotonic() > deadline:
                raise TimeoutError(f"the program has not read its input for {STALL_SECONDS:.0f} s")
            try:
                with held_back:
                    sent = self._session.send(bytes(view[:PACKET_BYTES]))
            except TimeoutError:
                continue
            except SSH_ERRORS as error:
                raise BrokenPipeError(str(error) or self._lost()) from error
            if not sent:
                raise BrokenPipeError("the program has exited")
            view = view[sent:]
            deadline = time.monotonic() + STALL_SECONDS

    @held_back
    def write_end(self) -> None:
        try:
            self._session.shutdown_write()
        except SSH_ERRORS as error:
            raise BrokenPipeError(str(error) or self._lost()) from error

    def finish(self, timeout: float) -> int | None:
        with contextlib.suppress(OSError):
            self.write_end()
        ended = self._session.status_event.wait(timeout)
        self._collect_errors()
        status = self._session.exit_status if ended and self._session.exit_status >= 0 else None
        self.abandon()
        return status

    @held_back
    def abandon(self) -> None:
        """Close the session without waiting: a worker sees the end of its input and exits."""
        with contextlib.suppress(*SSH_ERRORS):
            self._session.close()

    def errors(self) -> str:
        self._collect_errors()
        return self._errors.decode("utf-8", "replace")

    def complaint(self) -> str:
        lines = self.errors().strip().splitlines()[-3:]
        return "\n".join(line[:REMARK_LENGTH] for line in lines)

    def _lost(self) -> str:
        return f"the SSH connection to {self._connection.destination} is lost"

    @held_back
    def _collect_errors(self) -> None:
        with self._lock:
            for _ in range(ERROR_READS):
                if not self._session.recv_stderr_ready():
                    return
                try:
                    data = self._session.recv_stderr(1 << 16)
                except TimeoutError:
                    return
                if not data:
                    return
                self._errors += data
                del self._errors[:-ERROR_BYTES]
