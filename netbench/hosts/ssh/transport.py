"""paramiko's transport with bounds: paramiko reads packets of any length, and keeps what a peer
sends beyond a channel's window.
"""

from __future__ import annotations

from typing import Any, ClassVar

import paramiko
from paramiko.common import MSG_CHANNEL_DATA, MSG_CHANNEL_EXTENDED_DATA
from paramiko.packet import Packetizer

PACKET_BYTES = 1 << 18  # as OpenSSH


class _BoundedPacketizer(Packetizer):  # type: ignore[misc]  # paramiko has no types
    def read_all(self, n: int, check_rekey: bool = False) -> bytes:
        """As in paramiko. Errors: SSHException for a packet that is too long."""
        if n > PACKET_BYTES:
            raise paramiko.SSHException(f"it sent a packet of {n} bytes")
        return bytes(super().read_all(n, check_rekey))


def _fed_by(feed: Any) -> Any:
    """A handler of channel data that refuses what the channel has no window for."""

    def handle(channel: Any, message: Any) -> None:
        feed(channel, message)
        kept = len(channel.in_buffer) + len(channel.in_stderr_buffer)
        if kept > channel.in_window_size:
            raise paramiko.SSHException(f"it sent {kept} bytes beyond a channel's window")

    return handle


class BoundedTransport(paramiko.Transport):  # type: ignore[misc]  # paramiko has no types
    """A transport that closes when its peer sends what no SSH server may."""

    _channel_handler_table: ClassVar[dict[int, Any]] = {
        kind: _fed_by(handler) if kind in (MSG_CHANNEL_DATA, MSG_CHANNEL_EXTENDED_DATA) else handler
        for kind, handler in paramiko.Transport._channel_handler_table.items()
    }

    def __init__(self, sock: Any, **options: Any) -> None:
        super().__init__(sock, packetizer_class=_BoundedPacketizer, **options)
