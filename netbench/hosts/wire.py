"""What an SSH connection runs over: a TCP socket, the program of ProxyCommand, or a channel of a
jump host.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import IO, Protocol

from netbench.errors import HostError
from netbench.hosts.destination import Destination

TURN_SECONDS = 0.5  # how often a waiting thread looks whether it should still wait
# a peer that takes no byte for so long is gone (as long as a worker waits for its controller)
STALL_SECONDS = 10.0
DEAD_SECONDS = 20  # TCP gives up what was not acknowledged for so long


class Stream(Protocol):
    """A connected socket, or what acts like one."""

    def recv(self, count: int) -> bytes: ...
    def send(self, data: bytes) -> int: ...
    def settimeout(self, seconds: float) -> None: ...
    def close(self) -> None: ...


class Wire:
    """A stream for an SSH transport, which asks for ever when it cannot write: this one gives up
    after STALL_SECONDS.
    """

    def __init__(self, stream: Stream, hang_up: Callable[[], None] | None = None) -> None:
        stream.settimeout(TURN_SECONDS)
        self._stream = stream
        self._hang_up = hang_up or stream.close
        self._closed = False

    def recv(self, count: int) -> bytes:
        return self._stream.recv(count)

    def send(self, data: bytes) -> int:
        deadline = time.monotonic() + STALL_SECONDS
        while not self._closed:
            try:
                return self._stream.send(data)
            except TimeoutError:
                if time.monotonic() > deadline:
                    break
        raise EOFError("the peer takes no more data")

    def settimeout(self, seconds: float) -> None:
        """Timeouts are the wire's own."""

    def close(self) -> None:
        self._closed = True
        self._hang_up()


class TcpWire(Wire):
    """A TCP socket that acknowledges at once: sshd leaves Nagle's algorithm on, so its second small
    packet would wait 40 ms.
    """

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock, partial(_shut, sock))
        self._sock = sock

    def recv(self, count: int) -> bytes:
        data = self._sock.recv(count)
        with contextlib.suppress(OSError):
            self._sock.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1
            )  # the kernel forgets it: tcp(7)
        return data


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return (
            f"the name cannot be resolved ({error.strerror}); correct the destination, or HostName"
            " in the SSH configuration"
        )
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens on that port; is sshd running there, and is the port right?"
    if isinstance(error, TimeoutError):
        return "it does not answer; is the host up, and does a firewall let SSH through?"
    return f"{(error.strerror or str(error)).lower()}; is the network up?"


def _shut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)  # wakes who waits in recv
    sock.close()


def _connect_one(
    place: Destination, family: int, address: tuple[object, ...], deadline: float
) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_SECONDS * 1000)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if place.bind:
            sock.bind((place.bind, 0))
        sock.settimeout(max(0.01, deadline - time.monotonic()))
        sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def over_tcp(place: Destination, deadline: float, who: str) -> Wire:
    """Connect to the first address of the host that answers before `deadline` (time.monotonic).
    Errors: HostError.
    """
    failed: OSError | None = None
    try:
        for family, _, _, _, address in socket.getaddrinfo(
            place.hostname, place.port, place.family, socket.SOCK_STREAM
        ):
            try:
                sock = _connect_one(place, family, address, deadline)
            except OSError as error:
                failed = error
            else:
                return TcpWire(sock)
    except OSError as error:
        failed = error
    raise HostError(f"{who}: {_reason(failed or OSError('no address'))}") from failed


class Proxy:
    """The program that ProxyCommand names, run as OpenSSH does: by the user's shell, its input and
    output one socket.
    """

    def __init__(self, command: str) -> None:
        ours, theirs = socket.socketpair()
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the proxy
        argv: list[str] = [os.environ.get("SHELL") or "/bin/sh", "-c", f"exec {command}"]
        try:
            end = theirs.fileno()
            self._child = subprocess.Popen(
                argv, stdin=end, stdout=end, stderr=self._words, start_new_session=True
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.socket = ours

    def complaint(self) -> str:
        """The last line that it wrote on standard error."""
        with contextlib.suppress(ValueError, OSError):
            self._words.seek(0)
            lines = self._words.read().decode("utf-8", "replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""

    def close(self) -> None:
        _shut(self.socket)
        self._child.terminate()
        try:
            self._child.wait(1.0)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


def over_proxy(place: Destination, who: str) -> tuple[Wire, Proxy]:
    """Run the destination's ProxyCommand. Errors: HostError."""
    try:
        proxy = Proxy(place.proxy)
    except OSError as error:
        raise HostError(
            f"{who}: ProxyCommand cannot be run: {error.strerror}; correct it, or SHELL"
        ) from error
    return Wire(proxy.socket, proxy.close), proxy
