"""Labs of network namespaces for tests, and what independent tools say of the hosts."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from netbench import lab
from netbench.lab import command
from netbench.lab.lab import Lab, LabHost
from tests.support.local import out
from tests.support.running import Running, wait_for

TOOLS = {
    **dict.fromkeys(("ip", "tc", "ss"), "iproute2"),
    **{"ethtool": "ethtool", "sysctl": "procps", "nsenter": "util-linux"},
    **{"sshd": "openssh-server", "ssh": "openssh-client", "ssh-keygen": "openssh-client"},
}
FOLDERS = os.pathsep.join((os.environ["PATH"], *command.SYSTEM_FOLDERS))
MISSING = sorted(
    {package for tool, package in TOOLS.items() if not shutil.which(tool, path=FOLDERS)}
)
needs_lab = pytest.mark.skipif(
    bool(MISSING), reason=f"labs need the Debian packages {' '.join(MISSING)}"
)
ON_LABS = [pytest.mark.root, pytest.mark.netns, needs_lab]
RECOVERY_SECONDS = 15.0

Begin = Callable[..., Running]
State = dict[str, dict[str, str]]


@contextmanager
def made_lab(name: str, hosts: Sequence[str] = ("snd", "rcv")) -> Iterator[Lab]:
    try:
        yield lab.up("netns", list(hosts), name=name)
    finally:
        lab.down(name)


def inside(host: LabHost, words: str) -> str:
    return out("ip", "netns", "exec", host.namespace, *words.split())


def state(here: Lab, interface: str = "data0") -> State:
    """What independent tools say of the hosts of a lab."""
    questions = {
        "features": f"ethtool -k {interface}",
        "link": f"ip -d link show dev {interface}",
        "qdisc": f"tc qdisc show dev {interface}",
        "tcp": r"sysctl -a -r ^net\.ipv4\.tcp_",
    }
    return {
        host.name: {what: inside(host, line) for what, line in questions.items()}
        for host in here.hosts.values()
    }


def is_held(here: Lab) -> bool:
    """Whether both hosts have what HELD asks for."""
    return all(
        " mtu 1400 " in told["link"] and "\ntcp-segmentation-offload: off\n" in told["features"]
        for told in state(here).values()
    )


def back(here: Lab, before: State) -> None:
    """The hosts are as they were, within the time that the contract gives them."""
    wait_for(lambda: state(here) == before, seconds=RECOVERY_SECONDS)


def sent(here: Lab) -> int:
    """Bytes that the first host has sent over the data link."""
    host = next(iter(here.hosts.values()))
    (link,) = json.loads(inside(host, f"ip -json -statistics link show dev {host.interface}"))
    return int(link["stats64"]["tx"]["bytes"])


def in_flight(campaign: Running, here: Lab) -> None:
    """Wait until data moves: a run is under way."""
    before = sent(here)
    wait_for(lambda: sent(here) > before + (16 << 20), lambda: campaign.process.poll() is None)


def processes(host: LabHost, program: str) -> list[int]:
    """Processes in a host's namespace whose program's file begins with that name."""
    found = []
    for pid in out("ip", "netns", "pids", host.namespace).split():
        try:
            name = Path(os.readlink(f"/proc/{pid}/exe")).name
        except OSError:
            continue
        if name.startswith(program):
            found.append(int(pid))
    return found


def sessions_of(host: LabHost) -> list[int]:
    """The SSH server's processes of a host, without the one that listens: their parents are such."""
    found, made = processes(host, "sshd"), list[int]()
    for pid in found:
        with suppress(OSError):  # it has ended
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            made += [pid] if int(parent) in found else []
    return made


def workers(here: Lab) -> list[int]:
    return [pid for host in here.hosts.values() for pid in processes(host, "worker-")]


def kill(*pids: int) -> None:
    """All at the same instant: none of them runs on while the next is being killed."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)


def cut(here: Lab, link: str = "uplink", to: str = "down") -> None:
    out("ip", "-n", f"nb-{here.name}-switch", "link", "set", link, to)


def mend(here: Lab, link: str = "uplink") -> None:
    cut(here, link, "up")


@pytest.fixture
def watched() -> Iterator[Callable[[Lab], None]]:
    """Watch a lab's hosts: after the test they are as they were, and without workers."""
    labs: dict[str, tuple[Lab, State]] = {}

    def watch(here: Lab) -> None:
        if here.name not in labs:
            labs[here.name] = here, state(here)

    yield watch
    for here, before in labs.values():
        back(here, before)
        wait_for(partial(lambda lab: not workers(lab), here))


def head(here: Lab, name: str, block: dict[str, Any] | None = None) -> str:
    """How the campaigns of these tests begin."""
    return f"netbench: 1\nname: {name}\n{yaml.safe_dump(block or here.block(), sort_keys=False)}"


@pytest.fixture
def begin(tmp_path: Path, watched: Callable[[Lab], None]) -> Iterator[Begin]:
    """Start campaigns as a user does: `begin(lab, text)`. They end with the test."""
    running: list[Running] = []

    def start(here: Lab, text: str, prefix: Sequence[str] = (), watch: bool = True) -> Running:
        if watch:
            watched(here)
        folder = tmp_path / f"controller{len(running)}"
        folder.mkdir()
        whole = head(here, f"faults{len(running)}") + text
        running.append(Running(folder, folder / "r", whole, prefix))
        return running[-1]

    yield start
    for one in running:
        one.process.kill()
        one.process.communicate()
