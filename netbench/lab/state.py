"""The state of labs, shared by processes: a folder for each under /run, one lock for all of them,
and names in the kernel.

A lab's folder is made before anything else and removed after everything else, so that what a killed
`up` left can always be found.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from netbench.base.errors import LabError
from netbench.lab.accelerator import Accelerator
from netbench.lab.lab import Lab, LabHost, LabKernel
from netbench.lab.names import SWITCH, namespace_name

BASE = Path("/run/netbench/lab")
NAMESPACES = Path("/run/netns")
_LOCK = "lock"
_STATE = "lab.json"
_PATIENCE = 180.0  # another lab that goes up may wait for logins
_POLL = 0.01
_SWITCH = re.compile(namespace_name(r"([A-Za-z0-9_]{1,12})", SWITCH) + r"\Z")


@contextlib.contextmanager
def locked() -> Iterator[int]:
    """Hold the lock of all labs; its file descriptor, for children to inherit. Leaves no empty
    folder. Errors: LabError.
    """
    lock = _acquire(time.monotonic() + _PATIENCE)
    try:
        yield lock
    finally:
        with contextlib.suppress(OSError):
            if [entry.name for entry in BASE.iterdir()] == [_LOCK]:
                (BASE / _LOCK).unlink()
                BASE.rmdir()
                BASE.parent.rmdir()
        os.close(lock)


def _acquire(deadline: float) -> int:
    while True:
        with contextlib.suppress(
            FileNotFoundError
        ):  # the last holder may remove the folder meanwhile
            if (lock := _hold()) is not None:
                return lock
        if time.monotonic() > deadline:
            raise LabError(
                f"another `lab up` or `lab down` has held the lock for {_PATIENCE:.0f} s; wait for"
                " it, or stop it"
            )
        time.sleep(_POLL)


def _hold() -> int | None:
    """The lock if it is free, and its file is still the one that others will open."""
    for part in (BASE.parent, BASE):
        part.mkdir(mode=0o755, exist_ok=True)
        part.chmod(0o755)
    with contextlib.ExitStack() as undo:
        lock = os.open(BASE / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        undo.callback(os.close, lock)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), (BASE / _LOCK).stat()):
                undo.pop_all()
                return lock
    return None


def folder(name: str) -> Path:
    """Where a lab's files are."""
    return BASE / name


def begin(name: str) -> Path:
    """Make a lab's folder, readable by all: its keys are not. Errors: LabError."""
    try:
        folder(name).mkdir(mode=0o755)
        folder(name).chmod(0o755)
    except OSError as error:
        raise LabError(
            f"cannot create the lab's folder {error.filename}: {error.strerror}; remove what is in"
            " the way"
        ) from error
    return folder(name)


def write(lab: Lab) -> None:
    """Record that a lab is up, by an atomic rename."""
    draft = lab.folder / f"{_STATE}.new"
    draft.write_text(json.dumps(asdict(lab), default=str))
    draft.chmod(0o644)
    draft.rename(lab.folder / _STATE)


def read(name: str) -> Lab | None:
    """A lab that is up, or None where there is none or its making did not end."""
    try:
        known = json.loads((folder(name) / _STATE).read_text())
    except (OSError, ValueError):
        return None
    hosts = {host: LabHost(**fields) for host, fields in known["hosts"].items()}
    kernels = {kernel: _kernel(fields) for kernel, fields in known.get("kernels", {}).items()}
    place, config = Path(known["folder"]), Path(known["ssh_config"])
    return Lab(
        known["name"],
        known["kind"],
        place,
        hosts,
        config,
        kernels,
        known.get("versions", {}),
        _accelerator(known.get("accelerator", {})),
    )


def _accelerator(fields: dict[str, Any]) -> Accelerator:
    return Accelerator(**fields | {"cpus": tuple(map(tuple, fields.get("cpus", ())))})


def _kernel(fields: dict[str, str]) -> LabKernel:
    return LabKernel(
        **{key: Path(word) if key in ("image", "initrd") else word for key, word in fields.items()}  # type: ignore[arg-type]
    )


def namespaces(name: str) -> list[str]:
    """The network namespaces that carry a lab's name, in order."""
    return sorted(
        space for space in _entries(NAMESPACES) if space.startswith(namespace_name(name, ""))
    )


def names() -> list[str]:
    """The names of all labs of which anything exists."""
    folders = {entry for entry in _entries(BASE) if (BASE / entry).is_dir()}
    return sorted(
        folders | {match[1] for space in _entries(NAMESPACES) if (match := _SWITCH.match(space))}
    )


def _entries(place: Path) -> list[str]:
    try:
        return [entry.name for entry in place.iterdir()]
    except OSError:
        return []
