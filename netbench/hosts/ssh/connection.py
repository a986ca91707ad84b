"""An SSH connection: key exchange and authentication before one deadline, or why they failed."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import fabric
import paramiko

from netbench.base.errors import HostError, HostKeyError
from netbench.hosts.ssh.authentication import Authentication, Rejected
from netbench.hosts.ssh.destination import Destination
from netbench.hosts.ssh.known_hosts import KnownHosts
from netbench.hosts.ssh.wire import STALL_SECONDS, Wire, open_wire

SSH_ERRORS = (paramiko.SSHException, OSError, EOFError)
"""What an operation of a transport raises when it fails."""
SessionRefused = paramiko.ChannelException
"""The host answered, and refused the channel."""
KEEPALIVE_SECONDS = 5
REASON_LENGTH = 300

# Without a handler, Python prints paramiko's tracebacks on standard error.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


@contextlib.contextmanager
def _deadline(seconds: float, disconnect: Callable[[], None]) -> Iterator[threading.Event]:
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


class Connection(NamedTuple):
    """An authenticated connection."""

    destination: Destination
    wire: Wire
    client: Any  # fabric has no types

    @property
    def alive(self) -> bool:
        return bool(self.client.transport.is_active())

    def open_session(self, command: str, seconds: float, poll: float) -> Any:
        """A session of a command; its calls wait `poll` seconds. Errors: SSH_ERRORS."""
        with _deadline(seconds, self.close):
            session = self.client.transport.open_session(timeout=seconds)
            session.settimeout(poll)
            session.exec_command(command)
            return session

    def close(self) -> None:
        self.wire.close()
        self.client.close()


class _StrictPolicy(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]  # paramiko has no types
    """Checks every host key, since paramiko is given no key as known."""

    def __init__(self, known: KnownHosts) -> None:
        self._known = known

    def missing_host_key(self, client: object, hostname: str, key: Any) -> None:
        self._known.enforce(key.get_name(), key.asbytes())


def _transport_factory(known: KnownHosts) -> Callable[..., Any]:
    """Makes transports that ask first for host keys of the types that are known."""

    def make(sock: Any, **options: Any) -> Any:
        transport = paramiko.Transport(sock, **options)
        security = transport.get_security_options()
        kinds = set(known.kinds())
        if "ssh-rsa" in kinds:
            kinds |= {"rsa-sha2-512", "rsa-sha2-256"}
        security.key_types = sorted(security.key_types, key=lambda kind: kind not in kinds)
        transport.clear_to_send_timeout = STALL_SECONDS
        return transport

    return make


def connect(destination: Destination, seconds: float, label: str) -> Connection:
    """Connect and authenticate; `label` names the host in messages. Errors: HostError."""
    until = time.monotonic() + seconds
    known = KnownHosts(
        label,
        destination.known_hosts,
        destination.hostname,
        destination.port,
        destination.key_alias,
    )
    wire = open_wire(destination, seconds, label)
    authentication = Authentication(destination)
    # fabric reads no SSH configuration: `ssh -G` has read it
    client = fabric.Connection(
        host=destination.hostname,
        user=destination.user,
        port=destination.port,
        connect_timeout=int(seconds) + 1,
        connect_kwargs={
            "sock": wire,
            "transport_factory": _transport_factory(known),
            "auth_strategy": authentication,
            **dict.fromkeys(("banner_timeout", "auth_timeout", "channel_timeout"), seconds + 1),
        },
        config=fabric.Config(lazy=True, ssh_config=paramiko.SSHConfig()),
    )
    client.client.set_missing_host_key_policy(_StrictPolicy(known))
    with _deadline(until - time.monotonic(), wire.close) as expired:
        try:
            client.open()
        except HostKeyError:
            wire.close()
            raise
        except (Rejected, *SSH_ERRORS) as error:
            wire.close()
            transport = client.client.get_transport()
            if isinstance(error, Rejected):
                why = _rejected(destination, authentication)
            else:
                late = f"it took more than {seconds:.1f} s; the host may be overloaded"
                cause = late if expired.is_set() else str(error)[:REASON_LENGTH] or "end of data"
                why = _failed(transport, cause)
            if printed := wire.complaint():
                why = f"{why}; `{destination.proxy}` printed: {printed}"
            raise HostError(f"{label}: {why}") from error
    wire.trust()
    client.transport.set_keepalive(destination.keepalive or KEEPALIVE_SECONDS)
    return Connection(destination, wire, client)


def reason(error: Exception) -> str:
    """What the other side answered, or that it did not."""
    return str(getattr(error, "text", "") or error)[:REASON_LENGTH] or "no answer"


def _failed(transport: Any, cause: str) -> str:
    """Why a connection failed, by how far it had come. `transport` is paramiko's, or None."""
    if transport is None or not transport.remote_version:
        return (
            f"it accepted the connection, but sent no SSH banner ({cause}); is an SSH server"
            " listening on that port, and does it limit how many connections are opened at once"
            " (MaxStartups)?"
        )
    if not transport.initial_kex_done:
        return f"the key exchange failed ({cause}); do both sides share algorithms?"
    return f"the connection broke during authentication ({cause})"


def _rejected(destination: Destination, authentication: Authentication) -> str:
    """That the host accepted no key: every key that was tried, and how to add one."""
    attempts = "\n  ".join(authentication.tried) or "nothing: there are no keys"
    methods = " ".join(", ".join(authentication.methods).split())[:REASON_LENGTH]
    accepts = f"The host accepts {methods}; netbench sends no passwords. " if methods else ""
    port = "" if destination.port == 22 else f"-p {destination.port} "
    return (
        f"the host rejected every key that was offered:\n  {attempts}\n{accepts}Add one of your"
        f" keys on the host with\n  ssh-copy-id {port}{destination.user}@{destination.hostname}\n"
        "or name the right key by IdentityFile in the SSH configuration"
    )
