"""Shared by the tests that run campaigns: small ones, on this machine, with real workers."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from netbench import campaign
from netbench.model import Campaign

ROOT = Path(__file__).parent.parent
CLONE_NEWNET, CLONE_NEWUSER = 0x40000000, 0x10000000


def pytest_configure() -> None:
    """A network namespace of its own for each process of the tests: campaigns lock the one that they run in."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWNET) and not libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket() as any_socket:  # loopback up, as `ip link set lo up` does
        up = struct.pack("16sH14x", b"lo", 0x1 | 0x40)
        with contextlib.suppress(OSError):
            fcntl.ioctl(any_socket, 0x8914, up)


SMALL = """\
netbench: 1
name: small
transfer: {duration: 60ms, warmup: 20ms, sample: 20ms, congestion: cubic}
sweep: {send: [write, sendfile]}
repeat: {min: 2, max: 2}
order: {seed: 5}
"""

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def small() -> Campaign:
    """Two cells, two runs each, of some tens of milliseconds."""
    return campaign.parse(SMALL, "small.yaml")


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    """The same as a file."""
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    return file


def netbench_argv(words: Sequence[str | Path]) -> list[str]:
    return [sys.executable, "-m", "netbench", *map(str, words)]


@pytest.fixture
def netbench(tmp_path: Path) -> Command:
    """Run the command line as a user would, in an empty folder."""

    def run(*words: str | Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "COLUMNS": "80"}
        return subprocess.run(
            netbench_argv(words), cwd=tmp_path, capture_output=True, text=True, timeout=timeout, check=False, env=environment
        )

    return run
