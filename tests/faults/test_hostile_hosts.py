"""Hosts that attack their controller, through a real sshd: it ends in time, with a message."""

from __future__ import annotations

import os
import platform
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import hostile_worker
from tests.support.hostile_worker import BEHAVIOURS
from tests.support.running import wait_for
from tests.support.sshd import Bed, needs_sshd, open_bed, open_folder

pytestmark = [pytest.mark.root, needs_sshd]

SPARE_KB = 100 * 1024  # of memory, beyond what an honest campaign takes
SECONDS = 60.0  # a campaign with the shortened deadlines below
INTERRUPT_SECONDS = 20.0
# The deadlines of netbench, shortened, since a test waits for them.
CONSTANTS = {
    "engine.worker": {
        "HELLO_SECONDS": 3.0,
        "ANSWER_SECONDS": 4.0,
        "IDLE_SECONDS": 1.0,
        "GOODBYE_SECONDS": 2.0,
    },
    "run.transfer": {"SLACK_SECONDS": 2.0},
    "run.runner": {"ATTEMPTS": 1},
    "hosts.deploy": {"START_SECONDS": 5.0},
    "hosts.ssh.channel": {"CONNECT_SECONDS": 5.0},
}
START = """\
import importlib, sys
for name, values in {constants!r}.items():
    for key, value in values.items():
        setattr(importlib.import_module("netbench." + name), key, value)
from pathlib import Path
from netbench.hosts.ssh.channel import SshChannel
SshChannel.__init__.__kwdefaults__ |= {{"package": Path({package!r}), "connect_timeout": 5.0}}
from netbench.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
CAMPAIGN = """\
netbench: 1
name: hostile
ssh_config: {config}
hosts: {{bad: {{ssh: box, address: 127.0.0.1}}, good: local}}
pairs: [{{sender: {sender}, receiver: {receiver}}}]
transfer: {{duration: 200ms, warmup: 10ms, sample: 10ms}}
verify: off
repeat: {{min: 1, max: 1}}
"""


@dataclass(frozen=True)
class Ended:
    """How a campaign ended: its exit status, what it printed as errors, seconds, and kilobytes."""

    code: int
    errors: str
    seconds: float
    memory: int


class Controller:
    """`netbench run` in a process of its own, with shortened deadlines."""

    def __init__(self, folder: Path, config: Path, package: Path, sender: bool = True) -> None:
        folder.mkdir(exist_ok=True)
        roles = ("bad", "good") if sender else ("good", "bad")
        text = CAMPAIGN.format(config=config, sender=roles[0], receiver=roles[1])
        (folder / "c.yaml").write_text(text)
        self._errors = folder / "errors"
        state = {"XDG_STATE_HOME": str(folder.resolve() / "state")}  # what `bad` has left is there
        start = START.format(constants=CONSTANTS, package=str(package))
        argv = [sys.executable, "-c", start, "run", "c.yaml", "--results", "r"]
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
                env=os.environ | state,
            )  # fmt: skip
        self._began = time.monotonic()

    def end(self, seconds: float = SECONDS) -> Ended:
        """Wait for its end, at most so long."""
        timer = threading.Timer(seconds, self.process.kill)
        timer.start()
        _, status, usage = os.wait4(self.process.pid, 0)
        timer.cancel()
        self.process.returncode = os.waitstatus_to_exitcode(status)
        took = time.monotonic() - self._began
        errors = self._errors.read_text(errors="replace")
        return Ended(self.process.returncode, " ".join(errors.split()), took, usage.ru_maxrss)


@pytest.fixture(scope="module")
def place() -> Iterator[Bed]:
    """One sshd for all hostile workers."""
    with open_folder() as folder, open_bed(folder) as made:
        made.configure(made.alias(made.serve()))
        yield made


@pytest.fixture(scope="module")
def honest_memory(place: Bed) -> int:
    """Kilobytes that a campaign on hosts that behave takes at most."""
    ended = Controller(place.folder / "honest", place.config, hostile_worker.REAL.parent).end()
    assert ended.code == 0, ended.errors
    return ended.memory


def package(place: Bed, name: str) -> tuple[Path, Path]:
    """An installation whose worker is hostile, and the file that it makes when it turns so."""
    folder = place.folder / re.sub(r"\W+", "-", name)
    folder.mkdir(exist_ok=True)
    marker = folder / "hostile"
    marker.unlink(missing_ok=True)
    (folder / f"worker-{platform.machine()}").write_bytes(hostile_worker.program(name, marker))
    return folder, marker


SAYS = {
    "hello without end": "no hello in 3 s",
    "heartbeats in place of a hello": "no hello in 3 s",
    "hello of a huge length": "not netbench's protocol",
    "hello and no more": "closed the connection",
    "noise on standard error": "no hello in 3 s.*noise",
    "no answer to a job": "did not answer in time",
    "a port of no number": (odd := "counters that are not as it has described them"),
    "no port": "named no data port",
    "the end at go": "closed the connection",
    "edges without end": "did not answer in time",
    "large stale frames without end": "did not answer in time",
    "samples without end": "more samples than it was asked for",
    "heartbeats in place of a run": "did not answer in time",
    "noise in place of frames": "not netbench's protocol",
    "a result in one byte a second": "did not answer in time",
    "a window that closes before it opens": "window closes before it opens",
    "a clock that jumps by days in a window": "times span 259200.* s, but its run took",
    "samples that run backwards": "samples run backwards",
    "an empty result": "has no window",
    "a row that is not there": odd,
    "a silence in words in a result": odd,
    "a silence of no number in a result": odd,
    "an edge that is none in a result": odd,
    "streams that come and go in a result": odd,
    "a readback at three edges in a result": "makes no line of a record .sender.resident: ",
    "an error of another size": "an error frame of 2 bytes",
    "errors without end": "ooo",
    "an operation's answer in numbers": "answer to an operation has no text",
    "samples before there is a run": "more samples than it was asked for",
    "words in answer to all questions": "",
    "heartbeats after goodbye": "",
}


# By the last word of the behaviour: a host that answers questions with nonsense may be refused.
CODES = {"goodbye": (0,), "questions": (0, 1, 2)}


def test_each_behaviour_has_its_message() -> None:
    assert SAYS.keys() == BEHAVIOURS.keys()


# One row of each kind; the others are as slow as they are many.
QUICK = (
    "hello of a huge length",
    "noise on standard error",
    "samples without end",
    "a silence in words in a result",
    "a clock that jumps by days in a window",
    "words in answer to all questions",
)


# What is answered with a port is the receiver's.
RECEIVES = ("a port", "no port", "a long", "ready")


def rows(names: Iterable[str], quick: Collection[str]) -> list[Any]:
    """Names as parameters, marked slow but for those that are quick."""
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in names]


def check_end(ended: Ended, says: str, honest_memory: int, codes: Collection[int] = (1,)) -> None:
    """It ended with the right code and words, as no defect, and in bounded memory."""
    assert ended.code in codes, ended.errors
    assert re.search(says, ended.errors), ended.errors
    assert "defect" not in ended.errors
    assert ended.memory < honest_memory + SPARE_KB


def ended_at(place: Bed, port: int, known: Path, folder: Path) -> Ended:
    """How a campaign ended whose host is this port of loopback."""
    config = folder / "config"
    config.write_text(
        f"Host box\n  HostName 127.0.0.1\n  Port {port}\n  UserKnownHostsFile {known}\n"
        f"  IdentityFile {place.identity}\n  IdentityAgent none\n"
    )
    return Controller(folder / "controller", config, hostile_worker.REAL.parent).end()


@pytest.mark.parametrize("name", rows(BEHAVIOURS, QUICK))
def test_a_hostile_worker_ends_its_campaign(place: Bed, honest_memory: int, name: str) -> None:
    folder, marker = package(place, name)
    ended = Controller(
        folder / "controller", place.config, folder, not name.startswith(RECEIVES)
    ).end()
    assert marker.exists(), f"it never turned hostile: {ended.errors}"
    check_end(ended, SAYS[name], honest_memory, CODES.get(name.rpartition(" ")[2], (1,)))
    assert len(ended.errors) < 10_000
    assert ended.seconds < SECONDS


LONG = ["heartbeats in place of a hello", "edges without end", "heartbeats after goodbye"]


@pytest.mark.parametrize("name", rows(LONG, LONG[1:2]))
def test_an_interrupt_ends_a_campaign_on_a_hostile_host(place: Bed, name: str) -> None:
    folder, marker = package(place, name)
    controller = Controller(folder / "interrupted", place.config, folder)
    wait_for(marker.exists, lambda: controller.process.poll() is None, SECONDS)
    began = time.monotonic()
    controller.process.send_signal(signal.SIGINT)
    ended = controller.end()
    assert time.monotonic() - began < INTERRUPT_SECONDS
    assert ended.code in (130, 1, 0), ended.errors
    assert "defect" not in ended.errors


# A login shell that is none. $1 is -c, $2 the line that netbench starts it with.
SHELL = "echo 'netbench:shell x86_64'; "
SHELLS = {
    "a line without end": ("tr '\\0' x < /dev/zero", "ran no command"),
    "lines without end": (f"{SHELL}yes remark", "did not answer in time"),
    "an answer without end": (f"{SHELL}tr '\\0' x < /dev/zero", "it prints more than 16 MiB"),
    "send without end": (
        f"{SHELL}yes netbench:send",
        "could not be started|did not answer|not read its input",
    ),
    "one byte a second": (f"{SHELL}while :; do printf x; sleep 1; done", "did not answer in time"),
    "noise on standard error": (f"{SHELL}yes noise >&2", "did not answer in time"),
    "the end": ("exit 0", "ran no command"),
    "ready, and no worker": (f"{SHELL}echo netbench:ready; yes", "not netbench's protocol"),
}


@pytest.mark.parametrize("name", rows(SHELLS, ("an answer without end", "the end")))
def test_a_hostile_login_shell_ends_its_campaign(place: Bed, honest_memory: int, name: str) -> None:
    script, says = SHELLS[name]
    folder = place.folder / re.sub(r"\W+", "-", f"shell {name}")
    folder.mkdir()
    shell = folder / "shell"
    shell.write_text(f"#!/bin/sh\n{script}\n")
    shell.chmod(0o755)
    server = place.serve(sshd=f"ForceCommand {shell}")
    place.configure(place.alias(place.servers[0]) + place.alias(server, name="forced"))
    config = folder / "config"
    config.write_text(
        place.config.read_text().replace("Host box", "Host x").replace("Host forced", "Host box")
    )
    ended = Controller(folder / "controller", config, hostile_worker.REAL.parent).end()
    check_end(ended, says, honest_memory)


BANNER = b"SSH-2.0-OpenSSH_9.2\r\n"
SERVERS = {
    "a banner without end": (b"x" * 65536, True, "before authentication"),
    "banner lines without end": (b"welcome\r\n" * 7000, True, "is not an SSH server|no SSH banner"),
    "noise after the banner": (BANNER + b"\xff" * 65536, True, "key exchange failed"),
    "a packet of 4 GB": (BANNER + b"\xff\xff\xff\xf0" * 100, False, "key exchange"),
}


@pytest.mark.parametrize("name", rows(SERVERS, ("a banner without end", "a packet of 4 GB")))
def test_a_hostile_ssh_server_ends_its_campaign(
    place: Bed, honest_memory: int, name: str, tmp_path: Path
) -> None:
    data, repeated, says = SERVERS[name]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener, data, repeated), daemon=True).start()
        ended = ended_at(place, listener.getsockname()[1], place.known, tmp_path)
    check_end(ended, says, honest_memory)


def serve(listener: socket.socket, data: bytes, repeated: bool) -> None:
    """Send this to every client, again and again or once."""
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=feed, args=(client, data, repeated), daemon=True).start()


def feed(client: socket.socket, data: bytes, repeated: bool) -> None:
    with client:
        try:
            client.sendall(data)
            while repeated:
                client.sendall(data)
            while client.recv(1 << 16):
                pass
        except OSError:
            return
