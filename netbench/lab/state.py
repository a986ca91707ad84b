"""The state of labs, shared by processes: a folder for each under /run, one lock for all of them,
and the names of hosts in the kernel.

A lab's folder is made before anything else and removed after everything else, so that what a killed
`up` left can always be found.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from netbench.base.errors import LabError, LabRefused
from netbench.lab.lab import Lab

BASE = Path("/run/netbench/lab")
NAMESPACES = Path("/run/netns")
_STATE = "lab.json"
_PATIENCE = 180.0  # another lab that goes up may wait for logins
_POLL = 0.01
DEFAULT_NAME = "lab"
SWITCH = "switch"
HOSTS_MAX = 250  # both links are a /24
# a dash ends the lab's name in a namespace's; nb-NAME is an interface, of at most 15 characters
_LAB = re.compile(r"[A-Za-z0-9_]{1,12}\Z")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")
_NAMESPACE = re.compile(rf"nb-([A-Za-z0-9_]{{1,12}})-{SWITCH}\Z")


@contextlib.contextmanager
def locked() -> Iterator[int]:
    """Hold the lock of all labs; its file descriptor, for children to inherit. What is made
    meanwhile all can read, and its maker alone write. Errors: LabError.
    """
    for part in (BASE.parent, BASE):
        part.mkdir(mode=0o755, exist_ok=True)
        part.chmod(0o755)  # anybody may look
    lock = os.open(BASE / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + _PATIENCE
    try:
        while not _is_free(lock):
            if time.monotonic() > deadline:
                raise LabError(
                    f"another `lab up` or `lab down` has held the lock for {_PATIENCE:.0f} s; wait"
                    " for it, or stop it"
                )
            time.sleep(_POLL)
        usual = os.umask(0o022)
        try:
            yield lock
        finally:
            os.umask(usual)
    finally:
        os.close(lock)


def _is_free(lock: int) -> bool:
    """Take the lock if nobody has it."""
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def folder(name: str) -> Path:
    """Where a lab's files are."""
    return BASE / name


def begin(name: str) -> Path:
    """Make a lab's folder, readable by all: its keys are not. Errors: OSError."""
    folder(name).mkdir()
    return folder(name)


def write(lab: Lab) -> None:
    """Record that a lab is up, by an atomic rename."""
    draft = lab.folder / f"{_STATE}.new"
    draft.write_bytes(_form().dump_json(lab))
    draft.rename(lab.folder / _STATE)


def read(name: str) -> Lab | None:
    """A lab that is up, or None where there is none or its making did not end."""
    try:
        return _form().validate_json((folder(name) / _STATE).read_bytes())
    except (OSError, ValueError):  # ValueError: of another netbench
        return None


@functools.cache
def _form() -> TypeAdapter[Lab]:
    return TypeAdapter(Lab)


def namespaces(name: str) -> list[str]:
    """The network namespaces that carry a lab's name, in order."""
    return sorted(
        space for space in _entries(NAMESPACES) if space.startswith(namespace_name(name, ""))
    )


def names() -> list[str]:
    """The names of all labs of which anything exists."""
    folders = {entry for entry in _entries(BASE) if (BASE / entry).is_dir()}
    return sorted(
        folders | {match[1] for space in _entries(NAMESPACES) if (match := _NAMESPACE.match(space))}
    )


def _entries(place: Path) -> list[str]:
    try:
        return [entry.name for entry in place.iterdir()]
    except OSError:
        return []


def interface_name(lab: str) -> str:
    """The only interface of a lab in the root namespace."""
    return f"nb-{lab}"


def namespace_name(lab: str, host: str) -> str:
    """The namespace of a lab's host, or of its switch."""
    return f"nb-{lab}-{host}"


def lab_name(name: str | None) -> str:
    """A lab's name, checked. Errors: LabRefused."""
    if name is None:
        return DEFAULT_NAME
    if not _LAB.match(name):
        raise LabRefused(
            f"expected a lab's name of 1 to 12 letters, digits and underscores, got {name!r}"
        )
    return name


def host_names(hosts: Sequence[str] | int) -> tuple[str, ...]:
    """Names of hosts, checked; h1, h2, ... for a number. Errors: LabRefused."""
    if isinstance(hosts, str):
        raise LabRefused(f"expected a list of hosts or their number, got {hosts!r}")
    count = hosts if isinstance(hosts, int) else len(hosts)
    if not 1 <= count <= HOSTS_MAX:
        raise LabRefused(f"expected 1 to {HOSTS_MAX} hosts in a lab, got {count}")
    if isinstance(hosts, int):
        return tuple(f"h{i}" for i in range(1, hosts + 1))
    for i, name in enumerate(hosts):
        if not _HOST.match(name) or name == SWITCH:
            raise LabRefused(
                "expected a host name of at most 63 letters, digits, dots, dashes and underscores,"
                f" not {SWITCH}, got {name!r}"
            )
        if name in hosts[:i]:
            raise LabRefused(f"expected each host once, got {name} again")
    return tuple(hosts)
