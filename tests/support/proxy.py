"""A relay between a sender and its receiver, in a thread: what it does to responses is known."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

ADDRESS = "127.0.0.1"
HANDSHAKE = 20 + 1  # bytes of token and stream, and of the answer


def _pump(
    source: socket.socket, to: socket.socket, delay: float, spoil: bool, taken: list[float]
) -> None:
    moved = 0
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            begun = time.monotonic()
            if delay and moved:
                time.sleep(delay)
            if spoil and moved:
                data = bytes([data[0] ^ 1]) + data[1:]
            if moved:
                taken.append(time.monotonic() - begun)
            moved += len(data)
            to.sendall(data)
    with contextlib.suppress(OSError):
        to.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def proxy(
    port: int, delay: float = 0.0, spoil: bool = False, taken: list[float] | None = None
) -> Iterator[int]:
    """A port that leads to another; what comes back is `delay` later, `taken` is what it was."""
    opened: list[socket.socket] = []
    with socket.create_server((ADDRESS, 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    near, _ = server.accept()
                    far = socket.create_connection((ADDRESS, port))
                    for each in (near, far):
                        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        opened.append(each)
                    back = taken if taken is not None else []
                    for way in ((near, far, 0.0, False, []), (far, near, delay, spoil, back)):
                        threading.Thread(target=_pump, args=way, daemon=True).start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for each in opened:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()
            thread.join()
