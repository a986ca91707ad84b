"""What an SSH connection runs over: a TCP socket, a channel of a jump host, or a proxy's pipe."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from netbench.base.errors import HostError
from netbench.hosts.ssh.destination import Destination

POLL_SECONDS = 0.5  # how often a waiting thread checks whether it should still wait
# a peer that accepts no byte for so long is gone (as long as a worker waits for its controller)
STALL_SECONDS = 10.0
# of a peer that is not known yet: its banners and the key exchange
UNKNOWN_BYTES = 1 << 20
DEAD_SECONDS = 20  # how long TCP keeps a connection whose data is not acknowledged


class Stream(Protocol):
    """A connected socket, or what acts like one."""

    def recv(self, count: int) -> bytes: ...
    def send(self, data: bytes) -> int: ...
    def settimeout(self, seconds: float) -> None: ...
    def close(self) -> None: ...


class Wire:
    """A stream for an SSH transport. The transport retries a write for ever: a wire gives up after
    STALL_SECONDS. It reads lines of any length: a wire gives up after UNKNOWN_BYTES, until its peer
    is authenticated.
    """

    def __init__(self, stream: Stream, disconnect: Callable[[], None] | None = None) -> None:
        stream.settimeout(POLL_SECONDS)
        self._stream = stream
        self._disconnect = disconnect or stream.close
        self._closed = False
        self._unknown: int | None = UNKNOWN_BYTES

    def trust(self) -> None:
        """The peer is authenticated."""
        self._unknown = None

    def recv(self, count: int) -> bytes:
        data = self._stream.recv(count)
        if self._unknown is not None:
            self._unknown -= len(data)
            if self._unknown < 0:
                raise EOFError(f"it sent more than {UNKNOWN_BYTES} bytes before authentication")
        return data

    def send(self, data: bytes) -> int:
        deadline = time.monotonic() + STALL_SECONDS
        while not self._closed:
            try:
                return self._stream.send(data)
            except TimeoutError:
                if time.monotonic() > deadline:
                    break
        raise EOFError("the peer reads no more data")

    def settimeout(self, seconds: float) -> None:
        """Timeouts are the wire's own."""

    def close(self) -> None:
        self._closed = True
        self._disconnect()


class TcpWire(Wire):
    """A TCP socket that acknowledges at once. sshd leaves Nagle's algorithm on, so its second small
    packet would otherwise wait for a delayed ACK of 40 ms.
    """

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock, partial(shut_down, sock))
        self._sock = sock

    def recv(self, count: int) -> bytes:
        data = super().recv(count)
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
        return "it does not answer; is the host up, and does a firewall drop SSH?"
    return f"{(error.strerror or str(error)).lower()}; is the network up?"


def shut_down(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits in recv
    sock.close()


def _connect_one(
    destination: Destination, family: int, address: tuple[object, ...], deadline: float
) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_SECONDS * 1000)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if destination.bind:
            sock.bind((destination.bind, 0))
        sock.settimeout(max(0.01, deadline - time.monotonic()))
        sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def over_tcp(destination: Destination, deadline: float, label: str) -> Wire:
    """Connect to the first address of the host that answers before `deadline` (time.monotonic).
    Errors: HostError.
    """
    failed: OSError | None = None
    try:
        for family, _, _, _, address in socket.getaddrinfo(
            destination.hostname, destination.port, destination.family, socket.SOCK_STREAM
        ):
            try:
                sock = _connect_one(destination, family, address, deadline)
            except OSError as error:
                failed = error
            else:
                return TcpWire(sock)
    except OSError as error:
        failed = error
    raise HostError(f"{label}: {_reason(failed or OSError('no address'))}") from failed
