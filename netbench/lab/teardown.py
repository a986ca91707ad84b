"""Removing a lab, complete or half made: everything is found by its name."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from netbench.base.errors import LabError
from netbench.lab import sshd, state
from netbench.lab.command import Tools
from netbench.lab.state import SWITCH, interface_name, namespace_name

_GRACE = 3.0
_UNDO = 60.0  # for workers to undo their settings, once their connection is gone
_DEADLINE = 10.0
_POLL = 0.01
_Space = tuple[int, int]  # device and inode of a network namespace


def remove(name: str, tools: Tools) -> list[str]:
    """End a lab's processes, delete its interface, namespaces, then its folder; a line for each
    thing gone. Errors: LabError, OSError.
    """
    folder = state.folder(name)
    spaces = state.namespaces(name)
    removed = [f"process {pid} ({program})" for pid, program in _evict(folder, spaces).items()]
    removed += _unplug(name, tools)
    if spaces:
        tools.batch(("ip",), [f"netns delete {space}" for space in spaces])
        removed += [f"namespace {space}" for space in spaces]
    if folder.exists():
        shutil.rmtree(folder)
        removed.append(f"folder {folder}")
    return removed


def _unplug(lab: str, tools: Tools) -> list[str]:
    """Delete this machine's end of the management link, known by its peer. The kernel would delete
    it with the namespace, but later.
    """
    interface = interface_name(lab)
    shown = tools.attempt(("ip", "link", "show", "dev", interface)).stdout
    if f"link-netns {namespace_name(lab, SWITCH)}\n" not in shown:
        return []
    tools.run(("ip", "link", "delete", interface))
    return [f"interface {interface}"]


def _evict(folder: Path, spaces: Iterable[str]) -> dict[int, str]:
    """Kill the processes of a lab: servers first, the others if they did not exit by themselves.
    The program of each. Errors: LabError.
    """
    inside = _inside(spaces, sshd.servers(folder))
    tenants = _tenants(inside)
    _kill(pid for pid, program in tenants.items() if program.startswith(sshd.PROGRAMS))
    left = _wait(inside, _GRACE)
    undone = time.monotonic() + _UNDO
    while any(program.startswith("worker") for program in left.values()):
        left = _wait(inside, _POLL)
        if time.monotonic() > undone:
            break
    deadline = time.monotonic() + _DEADLINE
    while left:
        if time.monotonic() > deadline:
            names = ", ".join(f"{pid} ({program})" for pid, program in left.items())
            raise LabError(
                f"cannot stop the lab's processes {names}; kill them and repeat `lab down`"
            )
        _kill(left)
        left = _wait(inside, _POLL)
    return tenants


def _inside(spaces: Iterable[str], servers: Iterable[int]) -> set[_Space]:
    """The lab's namespaces, also those whose name is removed; never this machine's own."""
    places = [
        *(state.NAMESPACES / space for space in spaces),
        *(Path(f"/proc/{pid}/ns/net") for pid in servers),
    ]
    inside = {space for place in places if (space := _space(place))}
    return inside - {_space(Path(f"/proc/{pid}/ns/net")) for pid in ("self", "1")}


def _space(place: Path) -> _Space | None:
    try:
        status = place.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _tenants(inside: set[_Space]) -> dict[int, str]:
    """The processes in these namespaces, and the program of each."""
    tenants = {}
    for entry in Path("/proc").glob("[0-9]*") if inside else ():
        if _space(entry / "ns" / "net") in inside:
            with contextlib.suppress(OSError):
                tenants[int(entry.name)] = (entry / "comm").read_text().strip()
    return tenants


def _wait(inside: set[_Space], seconds: float) -> dict[int, str]:
    """The processes that are left after at most so many seconds."""
    deadline = time.monotonic() + seconds
    while (left := _tenants(inside)) and time.monotonic() < deadline:
        time.sleep(_POLL)
    return left


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
