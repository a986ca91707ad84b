"""The program of ProxyCommand as a wire."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
from typing import IO

from netbench.errors import HostError
from netbench.hosts.ssh.destination import Destination
from netbench.hosts.ssh.wire import Wire, shut_down


class Proxy:
    """The program of ProxyCommand, run as OpenSSH does: by the user's shell, with one socket as its
    input and output.
    """

    def __init__(self, command: str) -> None:
        ours, theirs = socket.socketpair()
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the proxy
        argv: list[str] = [os.environ.get("SHELL") or "/bin/sh", "-c", f"exec {command}"]
        try:
            end = theirs.fileno()
            self._child = subprocess.Popen(
                argv, stdin=end, stdout=end, stderr=self._output, start_new_session=True
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.socket = ours

    def complaint(self) -> str:
        """The last line that it wrote on standard error."""
        with contextlib.suppress(ValueError, OSError):
            self._output.seek(0)
            lines = self._output.read().decode("utf-8", "replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""

    def close(self) -> None:
        shut_down(self.socket)
        self._child.terminate()
        try:
            self._child.wait(1.0)
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
