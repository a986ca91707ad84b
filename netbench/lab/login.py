"""Waiting until a guest accepts a login."""

from __future__ import annotations

import math
import time

from netbench.base.errors import LabError
from netbench.lab import emulator, sshd
from netbench.lab.command import Tools
from netbench.lab.guest_console import console, console_file
from netbench.lab.lab import Lab, LabHost

_LOGIN_SECONDS = 120.0
_SILENT_SECONDS = 20.0  # a kernel may have no console there
_ATTEMPT_SECONDS = 4.0
_GROWTH = 1.5  # of one attempt to the next: on a busy machine a key exchange takes a guest longer
_MOST_SECONDS = 30.0  # a dying kernel may hold a login for minutes
_POLL = 0.1


def await_login(lab: Lab, host: LabHost, tools: Tools, seconds: float = _LOGIN_SECONDS) -> None:
    """Wait until a guest runs a command over SSH. Errors: LabError with the last lines of its
    console.
    """
    deadline = time.monotonic() + seconds
    silent = time.monotonic() + _SILENT_SECONDS
    patience = _ATTEMPT_SECONDS
    while True:
        if (_has_printed(lab, host) or time.monotonic() > silent) and sshd.answers(
            host.management, host.port, 0.5
        ):
            if _login(lab, host, tools, patience):
                return
            patience = min(patience * _GROWTH, _MOST_SECONDS)
        if time.monotonic() > deadline:
            raise LabError(
                f"{host.name}: no SSH login in {seconds:.0f} s; its console's last lines:"
                f" {_last_lines(lab, host.name)}"
            )
        if not emulator.running(lab.name, lab.folder, host.name):
            raise LabError(
                f"{host.name}: its QEMU has exited; its console's last lines:"
                f" {_last_lines(lab, host.name)}"
            )
        time.sleep(_POLL)


def _has_printed(lab: Lab, host: LabHost) -> bool:
    """Whether a guest's console has printed anything, as its SSH server does when it starts. QEMU
    queues earlier connections, which the guest would then have to answer.
    """
    try:
        return (console_file(lab, host.name)).stat().st_size > 0
    except OSError:
        return False


def _login(lab: Lab, host: LabHost, tools: Tools, patience: float) -> bool:
    """One attempt, of so many seconds; the half of them for the key exchange."""
    argv = ["ssh", "-F", str(lab.ssh_config), f"-oConnectTimeout={math.ceil(patience / 2)}"]
    argv += ["-oServerAliveInterval=1", "-oServerAliveCountMax=2", "-oBatchMode=yes"]
    try:
        return tools.attempt((*argv, host.ssh, "true"), seconds=patience).returncode == 0
    except LabError:
        return False


def _last_lines(lab: Lab, host: str) -> str:
    return " | ".join(console(lab, host)) or "none"
