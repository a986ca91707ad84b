"""The console of a guest, which QEMU writes to a file."""

from __future__ import annotations

import os
import re
from pathlib import Path

from netbench.lab import sshd
from netbench.lab.lab import Lab

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b.|[^\x20-\x7e\t\u00a0-\U0010ffff]")
_TAIL = 64 * 1024


def console_file(lab: Lab, host: str) -> Path:
    """Where a guest's console is written to."""
    return sshd.place(lab.folder, host) / "console"


def console(lab: Lab, host: str, lines: int = 20) -> list[str]:
    """The last lines of a guest's console, without control characters; none before it has printed
    anything. Errors: LabRefused.
    """
    return tail(console_file(lab, lab.host(host).name), lines)


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
