"""Small campaigns on this machine, the command line as a user runs it, and a veth to work on."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from netbench.__main__ import _outcome

NEAR, FAR = "nbt0", "nbt1"
ADDRESS, PEER = "10.199.8.1", "10.199.8.2"

SMALL = """\
netbench: 1
name: small
transfer: {duration: 60ms, warmup: 20ms, sample: 20ms, congestion: cubic}
sweep: {send: [write, sendfile]}
repeat: {min: 2, max: 2}
order: {seed: 5}
"""

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def out(*argv: str) -> str:
    """What another program prints."""
    return ran(argv, check=True).stdout


def ran(
    argv: Sequence[str | Path], check: bool = False, **how: Any
) -> subprocess.CompletedProcess[str]:
    """Another program, run to its end, as `subprocess.run` takes it."""
    return subprocess.run(argv, check=check, capture_output=True, text=True, **how)


def call(*words: str | Path | bytes) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process: all but how one starts, takes signals and ends."""
    out, err = io.StringIO(), io.StringIO()
    argv = [os.fsdecode(word) for word in words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = _outcome(argv)
    return subprocess.CompletedProcess(argv, code, out.getvalue(), err.getvalue())


def netbench_argv(words: Sequence[str | Path]) -> list[str]:
    """The command line as a process of its own."""
    return [sys.executable, "-m", "netbench", *map(str, words)]


@contextlib.contextmanager
def loopback_mtu(size: int) -> Iterator[None]:
    """Packets of that size on the loopback."""
    out("ip", "link", "set", "lo", "mtu", str(size))
    yield
    out("ip", "link", "set", "lo", "mtu", "65536")
