"""An authenticated SSH connection, and the settings of fabric and paramiko that it needs."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import fabric
import paramiko

from netbench.hosts.ssh.authentication import Authentication
from netbench.hosts.ssh.destination import Destination
from netbench.hosts.ssh.known_hosts import KnownHosts
from netbench.hosts.ssh.transport import BoundedTransport
from netbench.hosts.ssh.wire import STALL_SECONDS, Wire

SSH_ERRORS = (paramiko.SSHException, OSError, EOFError)
"""What an operation of a transport raises when it fails."""
SessionRefused = paramiko.ChannelException
"""The host answered, and refused the channel."""

# Without a handler, Python prints paramiko's tracebacks on standard error.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


@contextlib.contextmanager
def deadline(seconds: float, disconnect: Callable[[], None]) -> Iterator[threading.Event]:
    """Disconnect when the body takes longer, so that whatever it waits for fails. Gives an event
    that is set when that happened.
    """
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        disconnect()

    timer = threading.Timer(max(0.0, seconds), expire)
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()


@dataclass(frozen=True)
class Link:
    """An authenticated connection, and the one to a jump host that it goes through."""

    destination: Destination
    connection: Any  # fabric has no types
    wire: Wire
    through: Link | None

    @property
    def transport(self) -> Any:
        return self.connection.transport

    @property
    def alive(self) -> bool:
        return bool(self.transport.is_active()) and (self.through is None or self.through.alive)

    def open_session(self, command: str, seconds: float, poll: float) -> Any:
        """A session that runs a command; its reads and writes wait `poll` seconds. Errors:
        SSH_ERRORS.
        """
        with deadline(seconds, self.close):
            session = self.transport.open_session(timeout=seconds)
            session.settimeout(poll)
            session.exec_command(command)
            return session

    def open_tunnel(self, hostname: str, port: int, seconds: float) -> Wire:
        """A wire to a port that this host can reach. Errors: SSH_ERRORS."""
        with deadline(seconds, self.close):
            return Wire(
                self.transport.open_channel(
                    "direct-tcpip", (hostname, port), ("127.0.0.1", 0), timeout=max(0.1, seconds)
                )
            )

    def close(self) -> None:
        self.wire.close()
        self.connection.close()
        if self.through:
            self.through.close()


class _StrictPolicy(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]  # paramiko has no types
    """Checks every host key, since paramiko is given no key as known."""

    def __init__(self, known: KnownHosts) -> None:
        self._known = known

    def missing_host_key(self, client: object, hostname: str, key: Any) -> None:
        self._known.enforce(key.get_name(), key.asbytes())


def _transport_factory(known: KnownHosts) -> Callable[..., Any]:
    """Makes transports that ask first for host keys of the types that are known."""

    def make(sock: Any, **options: Any) -> Any:
        transport = BoundedTransport(sock, **options)
        security = transport.get_security_options()
        kinds = set(known.kinds())
        if "ssh-rsa" in kinds:
            kinds |= {"rsa-sha2-512", "rsa-sha2-256"}
        security.key_types = sorted(security.key_types, key=lambda kind: kind not in kinds)
        transport.clear_to_send_timeout = STALL_SECONDS
        return transport

    return make


def new_connection(
    destination: Destination,
    wire: Wire,
    known: KnownHosts,
    authentication: Authentication,
    seconds: float,
) -> Any:
    """fabric's connection over a wire, not yet open. fabric reads no SSH configuration, which
    `ssh -G` has read.
    """
    options = {
        "sock": wire,
        "transport_factory": _transport_factory(known),
        "auth_strategy": authentication,
        "banner_timeout": seconds + 1,
        "auth_timeout": seconds + 1,
        "channel_timeout": seconds + 1,
    }
    connection = fabric.Connection(
        host=destination.hostname,
        user=destination.user,
        port=destination.port,
        gateway=False,
        forward_agent=False,
        connect_timeout=int(seconds) + 1,
        connect_kwargs=options,
        config=fabric.Config(lazy=True, ssh_config=paramiko.SSHConfig()),
    )
    connection.client.set_missing_host_key_policy(_StrictPolicy(known))
    return connection
