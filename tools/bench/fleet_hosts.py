"""Rows of part `fleet` about hosts: `check` of many, and connecting to them with a long file of
known hosts.
"""

from __future__ import annotations

import base64
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from netbench.base.errors import LabRefused
from netbench.hosts.ssh.channel import SshChannel
from netbench.lab import Lab
from tools.bench.orchestration import check_seconds, lab_of, pairs_file
from tools.bench.table import Row

HOSTS = 200
LINES = 5000  # of the file of known hosts, half of them hashed
CHECK_SECONDS, CONNECT_SECONDS = 15.0, 20.0
AT_ONCE = 32  # as a campaign connects
CHECK = f"`check` of {HOSTS} hosts in namespaces that are up"
CONNECT = f"connecting to {HOSTS} hosts, {LINES} lines of known hosts"
HOW = (
    f"`check`: wall time of `python -m netbench check` on {HOSTS} hosts in network namespaces of"
    " one machine, reached over SSH, in pairs, one cell. Connecting: authenticated connections to"
    f" all of them from one process, {AT_ONCE} at a time, with a file of known hosts of"
    f" {LINES} lines, every second one hashed, those of the hosts at its end."
)


def rows() -> list[Row]:
    """Both rows; with why, where there can be no lab."""
    try:
        with lab_of(HOSTS) as made, tempfile.TemporaryDirectory() as name:
            connected = _connect(made, Path(name))
            checked = check_seconds(pairs_file(Path(name) / "fleet.yaml", made.block()))
    except LabRefused as error:
        return [Row(what, f"not measured: {error}", "", "", "", None) for what in (CHECK, CONNECT)]
    return [_row(CHECK, checked, CHECK_SECONDS), _row(CONNECT, connected, CONNECT_SECONDS)]


def _row(what: str, seconds: float, budget: float) -> Row:
    return Row(what, f"{seconds:.1f} s, once", "", "", f"at most {budget:g} s", seconds <= budget)


def _connect(made: Lab, folder: Path) -> float:
    """Seconds until every host has been connected to. Errors: HostError."""
    known = folder / "known_hosts"
    own = Path(made.ssh_config).parent / "known_hosts"
    known.write_text(others(LINES - len(made.hosts)) + own.read_text())
    config = folder / "ssh_config"
    config.write_text(Path(made.ssh_config).read_text().replace(str(own), str(known)))
    channels = [SshChannel(name, h.ssh, ssh_config=config) for name, h in made.hosts.items()]
    begun = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            list(pool.map(SshChannel.connect, channels))
            return time.monotonic() - begun
        finally:
            list(pool.map(SshChannel.close, channels))


def others(lines: int) -> str:
    """Lines about other hosts, every second one with its name hashed."""

    def name(number: int) -> str:
        if number % 2:
            return f"other{number}.example,192.0.2.{number % 256}"
        salt, digest = (base64.b64encode(os.urandom(20)).decode() for _ in range(2))
        return f"|1|{salt}|{digest}"

    key = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes(32)).decode()
    return "".join(f"{name(number)} ssh-ed25519 {key}\n" for number in range(lines))
