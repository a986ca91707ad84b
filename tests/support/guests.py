"""Guests of a lab for tests, and why there are none here."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from netbench import lab
from netbench.base.errors import LabRefused
from netbench.lab import Lab, command, emulator
from netbench.model import Kernel

NAME = f"q{os.getpid()}"  # of the lab that the tests share
FIRST, SECOND = "6.12", "6.1"  # its kernels; its guests start on the first
_PACKAGES = {
    emulator.PROGRAM: "qemu-system-x86",
    "depmod": "kmod",
    "ip": "iproute2",
    "ssh": "openssh-client",
    "apt-get": "apt",
}
_FOLDERS = os.pathsep.join((os.environ["PATH"], *command.SYSTEM_FOLDERS))


def why_not() -> str:
    """What is missing for guests: root, a device, Debian packages; "" where nothing is."""
    missing = [
        package for tool, package in _PACKAGES.items() if not shutil.which(tool, path=_FOLDERS)
    ]
    if os.geteuid() != 0:
        return "guests need root"
    if missing:
        return f"guests need the Debian packages {' '.join(missing)}"
    return "" if emulator.TUN.exists() else f"guests need {emulator.TUN}"


@contextmanager
def guests_lab(
    name: str, hosts: Sequence[str], kernels: Sequence[str], disk: bool = False
) -> Iterator[Lab]:
    """A lab of guests on the first of Debian's kernels, gone afterwards; where it cannot be had the
    test is skipped, and says why.
    """
    if why := why_not():
        pytest.skip(why)
    try:
        wanted = [Kernel(word, release=word) for word in kernels]
        made = lab.up("qemu", list(hosts), name=name, kernels=wanted, disk=disk)
    except LabRefused as error:
        pytest.skip(f"guests cannot be had here: {error}")
    try:
        yield made
    finally:
        lab.down(name)


def ssh(made: Lab, guest: str, *words: str, check: bool = True) -> str:
    """What a command says on a guest."""
    argv = ["ssh", "-F", str(made.ssh_config), made.hosts[guest].ssh, *words]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL
    )
    assert not (check and done.returncode), done.stderr
    return done.stdout.strip()
