"""What an SSH connection runs over: a TCP socket, or the program of ProxyCommand."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time

from netbench.base.errors import HostError
from netbench.hosts.ssh.destination import Destination

POLL_SECONDS = 0.5  # how often a waiting thread checks whether it should still wait
# a peer that accepts no byte for so long is gone (as long as a worker waits for its controller)
STALL_SECONDS = 10.0
# of a peer that is not known yet: its banners and the key exchange
UNKNOWN_BYTES = 1 << 20
DEAD_SECONDS = 20  # how long TCP keeps a connection whose data is not acknowledged
CLOSE_SECONDS = 1.0
ERROR_BYTES = 500  # of a proxy's standard error, from its end


class Wire:
    """A socket for paramiko, which retries a write for ever: a wire gives up after STALL_SECONDS.
    It reads lines of any length: a wire gives up after UNKNOWN_BYTES, until its peer is
    authenticated.

    It acknowledges at once: sshd leaves Nagle's algorithm on, so its second small packet would
    otherwise wait for a delayed ACK of 40 ms.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(POLL_SECONDS)
        self._sock = sock
        self._closed = False  # paramiko looks at it, as at a socket's
        self._unknown: int | None = UNKNOWN_BYTES

    @property
    def addresses(self) -> tuple[str, str] | None:
        """Ours and the peer's; None of a proxy's."""
        if self._sock.family == socket.AF_UNIX:
            return None
        return self._sock.getsockname()[0], self._sock.getpeername()[0]

    def trust(self) -> None:
        """The peer is authenticated."""
        self._unknown = None

    def recv(self, count: int) -> bytes:
        data = self._sock.recv(count)
        if self._unknown is not None:
            self._unknown -= len(data)
            if self._unknown < 0:
                raise EOFError(f"it sent more than {UNKNOWN_BYTES} bytes before authentication")
        with contextlib.suppress(OSError):  # a proxy's socket is no TCP
            # the kernel forgets it: tcp(7)
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return data

    def send(self, data: bytes) -> int:
        deadline = time.monotonic() + STALL_SECONDS
        while True:
            try:
                return self._sock.send(data)
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise EOFError("the peer reads no more data") from None

    def settimeout(self, seconds: float) -> None:
        """Timeouts are the wire's own."""

    def complaint(self) -> str:
        """The last lines that a closed proxy wrote on standard error."""
        return ""

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits in recv
        self._sock.close()


class ProxyWire(Wire):
    """The program of ProxyCommand, run as OpenSSH does: by the user's shell, with one socket as its
    input and output. Errors: OSError.
    """

    def __init__(self, command: str) -> None:
        ours, theirs = socket.socketpair()
        super().__init__(ours)
        argv = [os.environ.get("SHELL") or "/bin/sh", "-c", f"exec {command}"]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the wire)
        self._closing = threading.Lock()
        self._complaint = ""
        end = theirs.fileno()
        try:
            self._child = subprocess.Popen(
                argv, stdin=end, stdout=end, stderr=self._errors, start_new_session=True
            )
        except BaseException:
            self._errors.close()
            ours.close()
            raise
        finally:
            theirs.close()

    def complaint(self) -> str:
        return self._complaint

    def close(self) -> None:
        super().close()
        with self._closing:
            if self._errors.closed:
                return
            with contextlib.suppress(ProcessLookupError):  # with what it has started itself
                os.killpg(self._child.pid, signal.SIGTERM)
            try:
                self._child.wait(CLOSE_SECONDS)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
            size = os.fstat(self._errors.fileno()).st_size
            end = os.pread(self._errors.fileno(), ERROR_BYTES, max(0, size - ERROR_BYTES))
            self._complaint = "; ".join(end.decode("utf-8", "replace").splitlines()[-3:])
            self._errors.close()


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return (
            f"the name cannot be resolved ({error.strerror}); correct the destination, or HostName"
            " in the SSH configuration"
        )
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens on that port; is sshd running there, and is the port right?"
    if isinstance(error, TimeoutError):
        return "it does not answer; is the host up, and does a firewall drop SSH?"
    return f"{(error.strerror or str(error)).lower()}; is the network up?"


def open_wire(destination: Destination, seconds: float, label: str) -> Wire:
    """Run the destination's ProxyCommand, or connect to the first of the host's addresses that
    answers, each within `seconds`. Errors: HostError.
    """
    if destination.proxy:
        try:
            return ProxyWire(destination.proxy)
        except OSError as error:
            raise HostError(
                f"{label}: cannot run ProxyCommand: {error.strerror}; correct it, or the variable"
                " SHELL"
            ) from error
    try:
        host = destination.hostname
        if destination.family:
            host = str(socket.getaddrinfo(host, None, destination.family)[0][4][0])
        sock = socket.create_connection(
            (host, destination.port), seconds, (destination.bind, 0) if destination.bind else None
        )
    except OSError as error:
        raise HostError(f"{label}: {_reason(error)}") from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_SECONDS * 1000)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return Wire(sock)
