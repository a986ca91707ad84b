"""The program of ProxyCommand as a wire."""

from __future__ import annotations

import os
import socket
import subprocess
import threading

from netbench.base.errors import HostError
from netbench.hosts.ssh.destination import Destination
from netbench.hosts.ssh.wire import Wire, shut_down

ERROR_BYTES = 8192  # of standard error that are kept
REMARK_LENGTH = 500
CLOSE_SECONDS = 1.0


class Proxy:
    """The program of ProxyCommand, run as OpenSSH does: by the user's shell, with one socket as its
    input and output.
    """

    def __init__(self, command: str) -> None:
        ours, theirs = socket.socketpair()
        argv: list[str] = [os.environ.get("SHELL") or "/bin/sh", "-c", f"exec {command}"]
        try:
            end = theirs.fileno()
            self._child = subprocess.Popen(
                argv, stdin=end, stdout=end, stderr=subprocess.PIPE, start_new_session=True
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.socket = ours
        self._errors = b""
        self._reader = threading.Thread(target=self._read_errors, name="proxy", daemon=True)
        self._reader.start()

    def _read_errors(self) -> None:
        """Read its standard error to the end, and keep the end of it."""
        assert self._child.stderr is not None
        with self._child.stderr as errors:
            while data := os.read(errors.fileno(), ERROR_BYTES):
                self._errors = (self._errors + data)[-ERROR_BYTES:]

    def complaint(self) -> str:
        """The last line that it wrote on standard error."""
        self._reader.join(CLOSE_SECONDS)  # it has been closed
        lines = self._errors.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:REMARK_LENGTH] if lines else ""

    def close(self) -> None:
        shut_down(self.socket)
        self._child.terminate()
        try:
            self._child.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


def over_proxy(destination: Destination, label: str) -> tuple[Wire, Proxy]:
    """Run the destination's ProxyCommand. Errors: HostError."""
    try:
        proxy = Proxy(destination.proxy)
    except OSError as error:
        raise HostError(
            f"{label}: cannot run ProxyCommand: {error.strerror}; correct it, or the variable SHELL"
        ) from error
    return Wire(proxy.socket, proxy.close), proxy
