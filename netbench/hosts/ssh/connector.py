"""Connecting to a host: through its jump hosts or its proxy, then key exchange and authentication,
all before one deadline.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from netbench.base.errors import HostError, HostKeyError, NetbenchError
from netbench.hosts.ssh import diagnosis
from netbench.hosts.ssh.authentication import Authentication, Rejected
from netbench.hosts.ssh.destination import Destination, resolve_jump
from netbench.hosts.ssh.known_hosts import KnownHosts
from netbench.hosts.ssh.link import SSH_ERRORS, Link, deadline, new_connection
from netbench.hosts.ssh.proxy import over_proxy
from netbench.hosts.ssh.wire import Wire, over_tcp

KEEPALIVE_SECONDS = 5
MAX_HOPS = 8


class Connector:
    """Makes the links of one host. `name` is the campaign's name for it; `config` stands in for the
    user's SSH configuration; `seconds` is the time that a connection may take.
    """

    def __init__(self, name: str, config: Path | None, seconds: float) -> None:
        self._name = name
        self._config = config
        self._seconds = seconds

    def connect(self, destination: Destination) -> Link:
        """Connect and authenticate. Errors: HostError."""
        return self._connect(destination, time.monotonic() + self._seconds, 0)

    def _connect(self, destination: Destination, until: float, hops: int) -> Link:
        label = self._label(destination, hops)
        known = KnownHosts(
            label,
            destination.known_hosts,
            destination.hostname,
            destination.port,
            destination.key_alias,
        )
        through, proxy = None, None
        if destination.jumps:
            through = self._jump_host(destination.jumps, until, hops)
            wire = _tunnel(through, destination, until, label)
        elif destination.proxy:
            wire, proxy = over_proxy(destination, label)
        else:
            wire = over_tcp(destination, until, label)
        try:
            connection = self._handshake(destination, wire, known, until, label)
        except HostError as error:
            wire.close()
            if through:
                through.close()
            output = proxy.complaint() if proxy and not isinstance(error, HostKeyError) else ""
            if output:
                raise HostError(f"{error}; ProxyCommand printed: {output}") from error.__cause__
            raise
        return Link(destination, connection, wire, through)

    def _label(self, destination: Destination, hops: int) -> str:
        """The host in messages. Errors: HostError for one that is never connected to."""
        label = f"{self._name} ({destination})"
        if hops:
            label = f"{self._name}: jump host {destination.given} ({destination})"
        if hops > MAX_HOPS:
            raise HostError(f"{label}: more than {MAX_HOPS} jump hosts; does ProxyJump loop?")
        if destination.revoked_keys:
            raise HostError(
                f"{label}: its SSH configuration has RevokedHostKeys, which netbench cannot check;"
                " use @revoked lines in known_hosts"
            )
        return label

    def _jump_host(self, jumps: tuple[str, ...], until: float, hops: int) -> Link:
        destination = resolve_jump(jumps[-1], self._config)
        if len(jumps) > 1:
            destination = replace(destination, jumps=jumps[:-1], proxy="")
        return self._connect(destination, until, hops + 1)

    def _handshake(
        self, destination: Destination, wire: Wire, known: KnownHosts, until: float, label: str
    ) -> Any:
        """fabric's connection, open and authenticated. Errors: HostError."""
        left = max(0.1, until - time.monotonic())
        authentication = Authentication(destination)
        connection = new_connection(destination, wire, known, authentication, left)
        with deadline(left, wire.close) as expired:
            try:
                connection.open()
            except NetbenchError:
                raise
            except Rejected as error:
                why = diagnosis.rejected(destination, authentication.tried, authentication.methods)
                raise HostError(f"{label}: {why}") from error
            except SSH_ERRORS as error:
                transport = connection.client.get_transport()
                if expired.is_set():
                    why = diagnosis.timed_out(transport, self._seconds)
                else:
                    why = diagnosis.broken(transport, error)
                raise HostError(f"{label}: {why}") from error
        wire.trust()
        connection.transport.set_keepalive(destination.keepalive or KEEPALIVE_SECONDS)
        return connection


def _tunnel(through: Link, destination: Destination, until: float, label: str) -> Wire:
    try:
        left = until - time.monotonic()
        return through.open_tunnel(destination.hostname, destination.port, left)
    except SSH_ERRORS as error:
        through.close()
        raise HostError(
            f"{label}: the jump host {through.destination} cannot reach it"
            f" ({diagnosis.reason(error)}); check that the jump host forwards connections"
            " (AllowTcpForwarding), and that the host is up"
        ) from error
