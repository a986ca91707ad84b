"""What the server of a lab's host does: a guest whose QEMU runs may have panicked, hung or been
stopped.
"""

from __future__ import annotations

from pathlib import Path

from netbench.lab import sshd
from netbench.lab.base import ANSWERS, GONE, STOPPED, UNRESPONSIVE, LabHost

SECONDS = 3.0  # an emulated guest that measures answers within one
_STOPPED = ("T", "t")  # proc(5): stopped by a signal, or by a debugger


def server_state(pid: int | None, host: LabHost) -> str:
    """The state of a host's server, whose process (of a guest: its QEMU) is `pid`, if it is there;
    within 3 s.
    """
    if pid is None or not (state := _process_state(pid)):
        return GONE
    if state in _STOPPED:
        return STOPPED
    return ANSWERS if sshd.answers(host.management, host.port, SECONDS) else UNRESPONSIVE


def _process_state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
