"""The console of a guest, which QEMU writes to a file, and waiting until it accepts a login."""

from __future__ import annotations

import math
import os
import re
import time
from pathlib import Path

from netbench.base.errors import LabError
from netbench.lab import sshd
from netbench.lab.command import Tools
from netbench.lab.lab import Lab, LabHost

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b.|[^\x20-\x7e\t\u00a0-\U0010ffff]")
_TAIL = 64 * 1024
_LOGIN_SECONDS = 120.0
_ATTEMPT_SECONDS = 4.0
_GROWTH = 1.5  # of one attempt to the next: on a busy machine a key exchange takes a guest longer
_MOST_SECONDS = 30.0  # a dying kernel may hold a login for minutes
_POLL = 0.1


def console(lab: Lab, host: str, lines: int = 20) -> list[str]:
    """The last lines of a guest's console, without control characters; none before it has printed
    anything. Errors: LabRefused.
    """
    return tail(sshd.place(lab.folder, lab.host(host).name) / "console", lines)


def tail(file: Path, lines: int) -> list[str]:
    """The same of any file that a console is written to."""
    try:
        with file.open("rb") as raw:
            raw.seek(max(0, os.fstat(raw.fileno()).st_size - _TAIL))
            text = raw.read().decode(errors="replace")
    except OSError:
        return []
    printed = (_CONTROL.sub("", line).rstrip() for line in re.split(r"[\r\n]+", text))
    return [line for line in printed if line][-lines:]


def await_login(lab: Lab, host: LabHost, tools: Tools, seconds: float = _LOGIN_SECONDS) -> None:
    """Wait until a guest runs a command over SSH. Errors: LabError with its console's end."""
    deadline = time.monotonic() + seconds
    patience = _ATTEMPT_SECONDS
    while True:
        if sshd.answers(host.management, 0.5):
            if _login(lab, host, tools, patience):
                return
            patience = min(patience * _GROWTH, _MOST_SECONDS)
        why = ""
        if time.monotonic() > deadline:
            why = f"no SSH login in {seconds:.0f} s"
        elif not sshd.servers(lab.folder, host.name):
            why = "its QEMU has exited"
        if why:
            lines = " | ".join(console(lab, host.name)) or "none"
            raise LabError(f"{host.name}: {why}; its console's last lines: {lines}")
        time.sleep(_POLL)


def _login(lab: Lab, host: LabHost, tools: Tools, patience: float) -> bool:
    """One attempt, of so many seconds; the half of them for the key exchange."""
    argv = ["ssh", "-F", str(lab.ssh_config), f"-oConnectTimeout={math.ceil(patience / 2)}"]
    argv += ["-oServerAliveInterval=1", "-oServerAliveCountMax=2", "-oBatchMode=yes"]
    try:
        return tools.attempt((*argv, host.ssh, "true"), seconds=patience).returncode == 0
    except LabError:
        return False
