"""Guests of a lab for tests, and why there are none here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from netbench import lab
from netbench.base.errors import LabRefused
from netbench.lab import Lab, command, guests, qemu
from netbench.model import Host, Kernel
from tests.support.local import netbench_argv, ran
from tests.support.running import stored_records

NAME = f"q{os.getpid()}"  # of the lab that the tests share
FIRST, SECOND = "6.12", "6.1"  # its kernels; its guests start on the first
_PACKAGES = {
    guests.PROGRAM: "qemu-system-x86",
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
    return "" if qemu.TUN.exists() else f"guests need {qemu.TUN}"


@contextmanager
def guests_lab(
    name: str, hosts: Sequence[str], kernels: Sequence[str], disk: bool = False
) -> Iterator[Lab]:
    """A lab of guests on the first of Debian's kernels, gone afterwards; else a skip, and why."""
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
    """What a command says on a guest; a connection to a kernel that has gone is given up."""
    options = ("-oConnectTimeout=10", "-oServerAliveInterval=5", "-oServerAliveCountMax=2")
    argv = ["ssh", "-F", str(made.ssh_config), *options, made.hosts[guest].ssh, *words]
    done = ran(argv, timeout=60, stdin=subprocess.DEVNULL)
    assert not (check and done.returncode), done.stderr
    return done.stdout.strip()


@dataclass(frozen=True)
class Done:
    """A verb that has run."""

    code: int
    out: str
    err: str  # as one line

    @property
    def folder(self) -> Path:
        """The result folder that the last line of the output names."""
        return Path(self.out.splitlines()[-1])


class Guests:
    """Guests of a lab, and campaigns on them in a folder of their own."""

    def __init__(self, made: Lab, folder: Path) -> None:
        self.lab = made
        self.folder = folder

    def ssh(self, guest: str, script: str, check: bool = True) -> str:
        return ssh(self.lab, guest, script, check=check)

    def host(self, guest: str) -> Host:
        """A guest as a campaign has it."""
        there = self.lab.hosts[guest]
        return Host(guest, there.ssh, there.address, there.interface, str(self.lab.ssh_config))

    def text(self, text: str, **hosts: Mapping[str, Any]) -> Path:
        """A campaign on the guests, with what `hosts` says otherwise of each that it names."""
        known = {
            name: {"ssh": host.ssh, "address": host.address, "interface": host.interface}
            | dict(hosts.get(name, {}))
            for name, host in self.lab.hosts.items()
            if not hosts or name in hosts
        }
        head = {"netbench": 1, "name": "g", "ssh_config": str(self.lab.ssh_config), "hosts": known}
        file = self.folder / "g.yaml"
        lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in head.items())
        file.write_text(f"{lines}{text}")
        return file

    def begin(self, *words: str | Path) -> subprocess.Popen[str]:
        environment = {**os.environ, "COLUMNS": "80"}
        pipe, argv = subprocess.PIPE, netbench_argv(words)
        return subprocess.Popen(
            argv, cwd=self.folder, stdout=pipe, stderr=pipe, text=True, env=environment
        )

    def begin_run(self, file: Path) -> subprocess.Popen[str]:
        return self.begin("run", file, "--results", self.folder / "results")

    def end(self, process: subprocess.Popen[str]) -> Done:
        out, err = process.communicate(timeout=280)
        (self.folder / "said").write_text(f"{out}\n{err}")
        return Done(process.returncode, out, " ".join(err.split()))

    def netbench(self, *words: str | Path) -> Done:
        return self.end(self.begin(*words))

    def run(self, file: Path) -> Done:
        return self.end(self.begin_run(file))

    @property
    def result(self) -> Path:
        """The only result folder."""
        (found,) = (self.folder / "results").glob("*/[!.]*")
        return found

    def records(self) -> list[dict[str, Any]]:
        return stored_records(self.result)
