"""A host over SSH, reached when it is first used, and again after a loss.

Every wait has a deadline. A program runs in one plain session: no terminal, no sftp; the host's
shell sees one constant line (hosts/shell.py).
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from netbench.base.cancel import aside, held_back
from netbench.base.errors import HostError
from netbench.hosts import deploy, shell
from netbench.hosts.host_channel import Process, Result
from netbench.hosts.ssh.connection import SSH_ERRORS, Connection, SessionRefused, connect, reason
from netbench.hosts.ssh.destination import resolve
from netbench.hosts.ssh.process import SshProcess
from netbench.hosts.ssh.wire import POLL_SECONDS

CONNECT_SECONDS = 15.0
CLOSE_SECONDS = 1.0


class SshChannel:
    """A host that an OpenSSH destination names. Any thread may use it.

    `ssh_config` stands in for the user's and the system's SSH configuration. `connect_timeout`
    covers everything from TCP to authentication, over all jump hosts, unless the configuration has
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
        self._given = destination
        self._config = ssh_config
        self._connect_timeout = connect_timeout
        self._package = package
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    def connect(self) -> None:
        """Connect and authenticate, unless that is done."""
        aside(self._connected)

    def _connected(self, within: float = math.inf) -> Connection:
        with self._lock:
            if self._connection and not self._connection.alive:
                self._connection.close()
                self._connection = None
            if self._connection is None:
                try:
                    to = resolve(self._given, self._config)
                    limit = min(to.connect_timeout or self._connect_timeout, within)
                    self._connection = connect(to, limit, f"{self.name} ({to})")
                except HostError as error:
                    if str(error).startswith(self.name):
                        raise
                    raise HostError(f"{self.name}: {error}") from error
            return self._connection

    def addresses(self) -> tuple[str, str] | None:
        """Which addresses this machine and the host are connected by; None where that is through
        another host, or a program.
        """
        return aside(self._connected).wire.addresses

    def _new_session(self, within: float) -> SshProcess:
        connection = self._connected(within)
        try:
            session = connection.open_session(
                shell.LINE, min(self._connect_timeout, within), POLL_SECONDS
            )
        except SSH_ERRORS as error:
            if not isinstance(error, SessionRefused):
                connection.close()  # the next attempt connects anew
            raise HostError(
                f"{self.name} ({connection.destination}): the host refused a session"
                f" ({reason(error)}); check that its sshd responds, and how many sessions it allows"
                " (MaxSessions)"
            ) from error
        return SshProcess(session, connection)

    @contextlib.contextmanager
    def _shell(self, seconds: float, keep: bool = False) -> Iterator[shell.Shell]:
        """A shell, whose session ends with the body, unless the body succeeds and `keep` is set."""
        process = aside(lambda: self._new_session(seconds))
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
                f"{self.name}: cannot copy {source}: {error.strerror}; check the path and its"
                " permissions"
            ) from error
        with self._shell(deploy.SEND_SECONDS) as host:
            shell.put(host, data, target, mode)

    def start_mover(self, run_as: str = "") -> Process:
        return self._start_worker(deploy.MOVER, run_as)

    def start_helper(self) -> Process:
        return self._start_worker(deploy.HELPER)

    def _start_worker(self, role: str, run_as: str = "") -> Process:
        """Start a worker, copied to the host if need be."""
        with self._shell(deploy.START_SECONDS, keep=True) as host:
            return deploy.start_worker(host, role, run_as, self._package)

    @held_back
    def close(self) -> None:
        if not self._lock.acquire(timeout=CLOSE_SECONDS):
            return  # another thread is connecting, and has a deadline
        try:
            if self._connection:
                self._connection.close()
            self._connection = None
        finally:
            self._lock.release()
