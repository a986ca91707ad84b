"""Hosts over SSH: the only module that knows fabric and paramiko.

OpenSSH's configuration says where to go (destination.py), known hosts are enforced
(known_hosts.py), keys and an agent authenticate and passwords never do. Every wait has a deadline.
A worker is talked to over one plain session: no terminal, no sftp; the host's shell sees one
constant line (shell.py).
"""

from __future__ import annotations

import contextlib
import logging
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fabric
import paramiko
from paramiko.agent import AgentSSH

from netbench.errors import HostError, HostKeyError, NetbenchError
from netbench.hosts import deploy, shell
from netbench.hosts.base import Process, Result
from netbench.hosts.destination import Destination, resolve, resolve_jump
from netbench.hosts.known_hosts import KnownHosts, fingerprint
from netbench.hosts.wire import STALL_SECONDS, TURN_SECONDS, Wire, over_proxy, over_tcp

CONNECT_SECONDS = 15.0
KEEPALIVE_SECONDS = 5
AGENT_SECONDS = 5.0
MAX_HOPS = 8
ERRORS_KEPT = 8192  # bytes of standard error
PACKET = 1 << 15

# Without a handler, Python prints paramiko's tracebacks on standard error.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


@contextlib.contextmanager
def _deadline(seconds: float, hang_up: Callable[[], None]) -> Iterator[threading.Event]:
    """Hang up when the body takes longer: whatever it waits for then fails. Gives an event that
    tells whether that happened.
    """
    over = threading.Event()

    def ring() -> None:
        over.set()
        hang_up()

    timer = threading.Timer(max(0.0, seconds), ring)
    timer.daemon = True
    timer.start()
    try:
        yield over
    finally:
        timer.cancel()


class _StrictPolicy(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]  # paramiko has no types
    """Asked about every host key, since no key is given to paramiko as known."""

    def __init__(self, known: KnownHosts) -> None:
        self._known = known

    def missing_host_key(self, client: object, hostname: str, key: Any) -> None:
        self._known.enforce(key.get_name(), key.asbytes())


class _Agent(AgentSSH):  # type: ignore[misc]
    """An agent by its socket: paramiko's own takes the socket from the environment, which all
    threads share.
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


class _Refused(Exception):
    """The host takes no key; the message is what was tried."""


class _Keys:
    """Authenticates as OpenSSH does, by an agent and identity files, and notes what happened."""

    def __init__(self, place: Destination) -> None:
        self._place = place
        self.tried: list[str] = []
        self.methods: tuple[str, ...] = ()
        self._seen: set[bytes] = set()

    def authenticate(self, transport: Any) -> None:
        """Errors: _Refused, paramiko.SSHException."""
        try:
            if not transport.auth_none(self._place.user):
                return
        except paramiko.BadAuthenticationType as error:
            self.methods = tuple(error.allowed_types)
        if "publickey" in self.methods and any(
            self._try(transport, *key) for key in self._candidates()
        ):
            return
        raise _Refused

    def _try(self, transport: Any, label: str, key: Any) -> bool:
        try:
            further = transport.auth_publickey(self._place.user, key)
        except paramiko.AuthenticationException:
            if not transport.is_active():
                self.tried.append(f"{label}: the host hung up")
                raise _Refused from None
            self.tried.append(f"{label}: refused")
            return False
        except (paramiko.SSHException, OSError, ValueError) as error:
            if not transport.is_active():
                raise
            self.tried.append(f"{label}: {error}")
            return False
        if further:
            self.tried.append(f"{label}: accepted, but the host also wants {' and '.join(further)}")
        return not further

    def _candidates(self) -> Iterator[tuple[str, Any]]:
        listed = [(path, _public_blob(path)) for path in self._place.identities]
        yield from self._from_agent([blob for _, blob in listed if blob])
        for path, blob in listed:
            if blob is None or blob not in self._seen:
                yield from self._from_file(path)

    def _from_agent(self, listed: list[bytes]) -> Iterator[tuple[str, Any]]:
        if not self._place.agent:
            self.tried.append("no SSH agent is running (SSH_AUTH_SOCK)")
            return
        try:
            agent = _Agent(self._place.agent)
        except (OSError, paramiko.SSHException) as error:
            self.tried.append(f"the SSH agent does not answer ({error})")
            return
        try:
            keys = sorted(
                agent.get_keys(),
                key=lambda key: listed.index(key.blob) if key.blob in listed else len(listed),
            )
            for key in keys:
                if key.blob in listed or not self._place.identities_only:
                    self._seen.add(key.blob)
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
            self.tried.append(f"{path}: encrypted; give it to an agent with `ssh-add {path}`")
            return
        except (OSError, ValueError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as error:
            self.tried.append(f"{path}: cannot be read ({error})")
            return
        for certificate in self._place.certificates:
            with contextlib.suppress(ValueError, OSError, paramiko.SSHException):
                key.load_certificate(str(certificate))
        if key.public_blob:
            yield f"{path} with its certificate", key
            key.public_blob = None
        yield str(path), key


def _public_blob(path: Path) -> bytes | None:
    """The public half of an identity file, from the file beside it (or itself)."""
    for file in (path if path.suffix == ".pub" else Path(f"{path}.pub"),):
        with contextlib.suppress(OSError, ValueError, paramiko.SSHException):
            return bytes(paramiko.pkey.PublicBlob.from_file(str(file)).key_blob)
    return None


@dataclass(frozen=True)
class _Link:
    """An authenticated connection, and the one that it goes through."""

    place: Destination
    connection: Any
    wire: Wire
    through: _Link | None

    @property
    def transport(self) -> Any:
        return self.connection.transport

    @property
    def alive(self) -> bool:
        return bool(self.transport.is_active()) and (self.through is None or self.through.alive)

    def close(self) -> None:
        self.wire.close()
        self.connection.close()
        if self.through:
            self.through.close()


def _transport_factory(known: KnownHosts) -> Callable[..., Any]:
    """Makes transports that ask first for keys of the types that are known."""

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


def _said(error: Exception) -> str:
    """What the other side said against a channel, or why nothing was heard of it."""
    return str(getattr(error, "text", "") or error) or "no answer"


def _how_far(transport: Any, seconds: float) -> str:
    """What a connection that ran out of time was waiting for."""
    if transport is None or not transport.remote_version:
        return (
            f"it took the connection, but sent no SSH banner within {seconds:.0f} s; is that an SSH"
            " server, and is it well?"
        )
    if not transport.initial_kex_done:
        return (
            f"it began, but agreed on no keys within {seconds:.0f} s; the host or the network may"
            " be overloaded"
        )
    return f"it did not finish authentication within {seconds:.0f} s; the host may be overloaded"


class _Dialler:
    """Makes one host's links. `name` is the campaign's name for it; `config` stands in for the
    user's SSH configuration.
    """

    def __init__(self, name: str, config: Path | None, seconds: float) -> None:
        self._name = name
        self._config = config
        self._seconds = seconds

    def dial(self, place: Destination, deadline: float, hops: int = 0) -> _Link:
        """Connect and authenticate before `deadline` (time.monotonic). Errors: HostError."""
        who = (
            f"{self._name} ({place})"
            if not hops
            else f"{self._name}: jump host {place.given} ({place})"
        )
        if hops > MAX_HOPS:
            raise HostError(
                f"{who}: more than {MAX_HOPS} jump hosts; does ProxyJump lead in a circle?"
            )
        if place.revoked_keys:
            raise HostError(
                f"{who}: its SSH configuration has RevokedHostKeys, which netbench cannot check;"
                " use @revoked lines"
            )
        known = KnownHosts(who, place.known_hosts, place.hostname, place.port, place.key_alias)
        through, proxy = None, None
        if place.jumps:
            through = self._hop(place.jumps, deadline, hops)
            wire = self._tunnel(through, place, deadline, who)
        elif place.proxy:
            wire, proxy = over_proxy(place, who)
        else:
            wire = over_tcp(place, deadline, who)
        try:
            connection = self._greet(place, wire, known, deadline, who)
        except HostError as error:
            wire.close()
            if through:
                through.close()
            words = proxy.complaint() if proxy and not isinstance(error, HostKeyError) else ""
            raise (
                HostError(f"{error}; ProxyCommand said: {words}") if words else error
            ) from error.__cause__
        return _Link(place, connection, wire, through)

    def _hop(self, jumps: tuple[str, ...], deadline: float, hops: int) -> _Link:
        place = resolve_jump(jumps[-1], self._config)
        if len(jumps) > 1:
            place = replace(place, jumps=jumps[:-1], proxy="")
        return self.dial(place, deadline, hops + 1)

    def _tunnel(self, through: _Link, place: Destination, deadline: float, who: str) -> Wire:
        try:
            with _deadline(deadline - time.monotonic(), through.close):
                left = max(0.1, deadline - time.monotonic())
                target = (place.hostname, place.port)
                return Wire(
                    through.transport.open_channel(
                        "direct-tcpip", target, ("127.0.0.1", 0), timeout=left
                    )
                )
        except (paramiko.SSHException, OSError, EOFError) as error:
            through.close()
            remedy = (
                "see that it forwards connections (AllowTcpForwarding), and that the host is up"
            )
            raise HostError(
                f"{who}: the jump host {through.place} cannot reach it ({_said(error)}); {remedy}"
            ) from error

    def _greet(
        self, place: Destination, wire: Wire, known: KnownHosts, deadline: float, who: str
    ) -> Any:
        left = max(0.1, deadline - time.monotonic())
        keys = _Keys(place)
        options = {
            **{"sock": wire, "transport_factory": _transport_factory(known), "auth_strategy": keys},
            **{"banner_timeout": left + 1, "auth_timeout": left + 1, "channel_timeout": left + 1},
        }
        connection = fabric.Connection(
            host=place.hostname,
            user=place.user,
            port=place.port,
            gateway=False,
            forward_agent=False,
            connect_timeout=int(left) + 1,
            connect_kwargs=options,
            config=fabric.Config(
                lazy=True, ssh_config=paramiko.SSHConfig()
            ),  # ssh -G has read the configuration
        )
        connection.client.set_missing_host_key_policy(_StrictPolicy(known))
        with _deadline(left, wire.close) as over:
            try:
                connection.open()
            except NetbenchError:
                raise
            except _Refused as error:
                raise HostError(self._no_entry(place, keys, who)) from error
            except (paramiko.SSHException, OSError, EOFError) as error:
                transport = connection.client.get_transport()
                if over.is_set():
                    raise HostError(f"{who}: {_how_far(transport, self._seconds)}") from error
                raise HostError(f"{who}: {_broken(transport, error)}") from error
        connection.transport.set_keepalive(place.keepalive or KEEPALIVE_SECONDS)
        return connection

    @staticmethod
    def _no_entry(place: Destination, keys: _Keys, who: str) -> str:
        tried = "".join(f"\n  {line}" for line in keys.tried) or "\n  nothing: there are no keys"
        takes = (
            f" The host takes {', '.join(keys.methods)}; netbench sends no passwords."
            if keys.methods
            else ""
        )
        port = "" if place.port == 22 else f"-p {place.port} "
        return (
            f"{who}: the host lets none of the keys in:{tried}\n{takes.strip()} Put a key of yours"
            f" on the host with\n  ssh-copy-id {port}{place.user}@{place.hostname}\nor name the"
            " right one by IdentityFile in the SSH configuration"
        )


def _broken(transport: Any, error: Exception) -> str:
    if transport is None or not transport.remote_version:
        return (
            f"it hung up or is no SSH server ({error or 'end of data'}); is the port right? Does it"
            " refuse so many at once?"
        )
    if not transport.initial_kex_done:
        return f"no key exchange ({error or 'end of data'}); do both sides share algorithms?"
    return f"the connection broke during authentication ({error or 'end of data'})"


class SshProcess:
    """A program on a host, over a session of its own; any thread may write, one reads."""

    def __init__(self, session: Any, link: _Link) -> None:
        self._session = session
        self._link = link
        self._errors = bytearray()
        self._lock = threading.Lock()

    def read(self, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        while True:
            self._take_errors()
            # The session has one timeout for both directions: short turns keep a reader's from
            # holding up a writer.
            self._session.settimeout(min(max(deadline - time.monotonic(), 0.001), TURN_SECONDS))
            try:
                data = self._session.recv(1 << 16)
            except TimeoutError:
                if time.monotonic() >= deadline:
                    raise
                continue
            if not data and not self._link.alive and self._session.exit_status < 0:
                raise ConnectionResetError(f"the SSH connection to {self._link.place} is lost")
            return bytes(data)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        deadline = time.monotonic() + STALL_SECONDS
        while view:
            if not self._link.alive:
                raise BrokenPipeError(f"the SSH connection to {self._link.place} is lost")
            try:
                sent = self._session.send(bytes(view[:PACKET]))
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise TimeoutError(
                        f"the program takes no input for {STALL_SECONDS:.0f} s"
                    ) from None
                continue
            except (paramiko.SSHException, EOFError) as error:
                raise BrokenPipeError(
                    str(error) or f"the SSH connection to {self._link.place} is lost"
                ) from error
            if not sent:
                raise BrokenPipeError("the program is gone")
            view = view[sent:]
            deadline = time.monotonic() + STALL_SECONDS

    def write_end(self) -> None:
        try:
            self._session.shutdown_write()
        except (paramiko.SSHException, EOFError) as error:
            raise BrokenPipeError(
                str(error) or f"the SSH connection to {self._link.place} is lost"
            ) from error

    def finish(self, timeout: float) -> int | None:
        with contextlib.suppress(OSError):
            self.write_end()
        ended = self._session.status_event.wait(timeout)
        self._take_errors()
        status = self._session.exit_status if ended and self._session.exit_status >= 0 else None
        self.abandon()
        return status

    def abandon(self) -> None:
        """Let go of the session; a worker sees the end of its input and leaves."""
        with contextlib.suppress(paramiko.SSHException, OSError, EOFError):
            self._session.close()

    def _take_errors(self) -> None:
        with self._lock:
            while self._session.recv_stderr_ready():
                try:
                    data = self._session.recv_stderr(1 << 16)
                except TimeoutError:
                    return
                if not data:
                    return
                self._errors += data
                del self._errors[:-ERRORS_KEPT]

    def errors(self) -> str:
        self._take_errors()
        return self._errors.decode("utf-8", "replace")

    def complaint(self) -> str:
        return "\n".join(self.errors().strip().splitlines()[-3:])


class SshChannel:
    """A host that an OpenSSH destination names. It connects when first used, and again after a
    loss, from any thread.

    `ssh_config` stands in for the user's and the system's SSH configuration; `connect_timeout`
    covers everything from TCP to authentication over all jump hosts, unless the configuration has
    ConnectTimeout. Errors of every method: HostError.
    """

    def __init__(
        self,
        name: str,
        destination: str,
        *,
        ssh_config: Path | None = None,
        connect_timeout: float = CONNECT_SECONDS,
        package: Path = deploy.PACKAGE,
    ) -> None:
        self.name = name
        self._destination = destination
        self._config = ssh_config
        self._connect_timeout = connect_timeout
        self._package = package
        self._lock = threading.Lock()
        self._place: Destination | None = None
        self._link: _Link | None = None

    def connect(self) -> None:
        """Connect and authenticate, unless that is done."""
        self._linked()

    def _linked(self, within: float | None = None) -> _Link:
        with self._lock:
            if self._link and not self._link.alive:
                self._link.close()
                self._link = None
            if self._link is None:
                self._link = self._dial(within)
            return self._link

    def _dial(self, within: float | None) -> _Link:
        try:
            self._place = self._place or resolve(self._destination, self._config)
            seconds = min(self._place.connect_timeout or self._connect_timeout, within or math.inf)
            return _Dialler(self.name, self._config, seconds).dial(
                self._place, time.monotonic() + seconds
            )
        except HostError as error:
            if str(error).startswith(self.name):
                raise
            raise HostError(f"{self.name}: {error}") from error

    def _session(self, within: float | None = None) -> SshProcess:
        link = self._linked(within)
        seconds = min(self._connect_timeout, within or math.inf)
        try:
            with _deadline(seconds, link.close):
                session = link.transport.open_session(timeout=seconds)
                session.settimeout(TURN_SECONDS)
                session.exec_command(shell.LINE)
        except (paramiko.SSHException, OSError, EOFError) as error:
            if not isinstance(error, paramiko.ChannelException):
                link.close()  # the next try begins anew
            remedy = "see whether its sshd is well, and how many sessions it allows (MaxSessions)"
            raise HostError(
                f"{self.name} ({link.place}): the host opens no session ({_said(error)}); {remedy}"
            ) from error
        return SshProcess(session, link)

    @contextlib.contextmanager
    def _shell(self, seconds: float, keep: bool = False) -> Iterator[shell.Shell]:
        """A shell, whose session ends with the body, unless that went well and is to be kept."""
        process = self._session(seconds)
        try:
            yield shell.Shell(process, self.name, seconds)
        except BaseException:
            process.abandon()
            raise
        if not keep:
            process.abandon()

    def run(self, argv: Sequence[str], timeout: float = 30.0) -> Result:
        with self._shell(timeout) as host:
            return shell.run(host, argv)

    def put(self, source: Path, target: str, mode: int = 0o644) -> None:
        try:
            data = source.read_bytes()
        except OSError as error:
            raise HostError(
                f"{self.name}: cannot copy {source}: {error.strerror}; check the path and who may"
                " read it"
            ) from error
        with self._shell(deploy.SEND_SECONDS) as host:
            shell.put(host, data, target, mode)

    def get(self, source: str) -> bytes:
        with self._shell(deploy.SEND_SECONDS) as host:
            return shell.get(host, source)

    def start(self, argv: Sequence[str]) -> Process:
        with self._shell(deploy.START_SECONDS, keep=True) as host:
            return shell.start(host, argv)

    def start_worker(self, privileged: bool = False) -> Process:
        """Start a worker, copied to the host if need be; `privileged`: as root, by `sudo -n` where
        the user is not root.
        """
        with self._shell(deploy.START_SECONDS, keep=True) as host:
            account = self._place.user if self._place else ""
            return deploy.start_worker(host, privileged, account, self._package)

    def close(self) -> None:
        with self._lock:
            if self._link:
                self._link.close()
            self._link = None
