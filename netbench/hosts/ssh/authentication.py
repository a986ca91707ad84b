"""Authentication as OpenSSH does it, by keys of an agent and identity files; by no password."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko
from paramiko.agent import AgentSSH

from netbench.hosts.ssh.destination import Destination
from netbench.hosts.ssh.known_hosts import fingerprint

AGENT_SECONDS = 5.0


class Rejected(Exception):
    """The host accepted no key."""


class _Agent(AgentSSH):  # type: ignore[misc]  # paramiko has no types
    """An agent by its socket. paramiko's own class reads the socket's path from the environment,
    which all threads share.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        conn = socket.socket(socket.AF_UNIX)
        conn.settimeout(AGENT_SECONDS)
        try:
            conn.connect(path)
            self._connect(conn)
        except BaseException:
            conn.close()
            raise

    def close(self) -> None:
        self._close()


class Authentication:
    """Offers a destination's keys to a host. `tried` has a line for each attempt, `methods` are
    those that the host accepts.
    """

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self.tried: list[str] = []
        self.methods: tuple[str, ...] = ()
        self._offered: set[bytes] = set()

    def authenticate(self, transport: Any) -> None:
        """Called by fabric with paramiko's transport. Errors: Rejected, paramiko.SSHException."""
        try:
            if not transport.auth_none(self._destination.user):
                return
        except paramiko.BadAuthenticationType as error:
            self.methods = tuple(error.allowed_types)
        if "publickey" not in self.methods or not any(
            self._try(transport, *key) for key in self._candidates()
        ):
            raise Rejected

    def _try(self, transport: Any, label: str, key: Any) -> bool:
        try:
            further = transport.auth_publickey(self._destination.user, key)
        except (paramiko.SSHException, OSError, ValueError) as error:
            refused = isinstance(error, paramiko.AuthenticationException)
            if transport.is_active():
                self.tried.append(f"{label}: {'rejected' if refused else error}")
                return False
            if not refused:
                raise
            self.tried.append(f"{label}: the host closed the connection")
            raise Rejected from None
        if further:
            self.tried.append(f"{label}: accepted, but the host also wants {' and '.join(further)}")
        return not further

    def _candidates(self) -> Iterator[tuple[str, Any]]:
        identities = [(path, _public_blob(path)) for path in self._destination.identities]
        yield from self._from_agent([blob for _, blob in identities if blob])
        for path, blob in identities:
            if blob is None or blob not in self._offered:
                yield from self._from_file(path)

    def _from_agent(self, identities: list[bytes]) -> Iterator[tuple[str, Any]]:
        """The agent's keys, those of the destination's identities first and in their order."""
        if not self._destination.agent:
            self.tried.append("no SSH agent is running (SSH_AUTH_SOCK)")
            return
        try:
            agent = _Agent(self._destination.agent)
        except (OSError, paramiko.SSHException) as error:
            self.tried.append(f"the SSH agent does not answer ({error})")
            return
        try:
            ranks = {blob: rank for rank, blob in enumerate(identities)}
            keys = sorted(agent.get_keys(), key=lambda key: ranks.get(key.blob, len(ranks)))
            for key in keys:
                if key.blob in ranks or not self._destination.identities_only:
                    self._offered.add(key.blob)
                    yield f"{fingerprint(key.blob)} from the agent", key
            if not keys:
                self.tried.append("the SSH agent holds no keys")
        finally:
            agent.close()

    def _from_file(self, path: Path) -> Iterator[tuple[str, Any]]:
        if not path.is_file() or path.suffix == ".pub":
            return
        try:
            key = paramiko.PKey.from_path(path)
        except (TypeError, paramiko.PasswordRequiredException):
            self.tried.append(f"{path}: encrypted; add it to an agent with `ssh-add {path}`")
            return
        except (OSError, ValueError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as error:
            self.tried.append(f"{path}: cannot be read ({error})")
            return
        for certificate in self._destination.certificates:
            with contextlib.suppress(ValueError, OSError, paramiko.SSHException):
                key.load_certificate(str(certificate))
        if key.public_blob:
            yield f"{path} with its certificate", key
            key.public_blob = None
        yield str(path), key


def _public_blob(path: Path) -> bytes | None:
    """The public half of an identity, from the .pub file beside it; None where there is none."""
    file = path if path.suffix == ".pub" else Path(f"{path}.pub")
    with contextlib.suppress(OSError, ValueError, paramiko.SSHException):
        return bytes(paramiko.pkey.PublicBlob.from_file(str(file)).key_blob)
    return None
