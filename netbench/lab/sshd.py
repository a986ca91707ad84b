"""A real SSH server for each host of a lab: keys, configurations, the client's ssh_config, and the
wait until it answers. In the place of the server a guest has QEMU.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from collections.abc import Iterable
from pathlib import Path

from netbench.base.errors import LabError
from netbench.lab.command import Tools, together
from netbench.lab.lab import LabHost

PORT = 22
PROGRAMS = ("sshd", "qemu-system")
PAM_SERVICE = Path("/etc/pam.d/sshd")
# compiled into Debian's sshd, which starts only where it exists
_PRIVILEGE_SEPARATION = Path("/run/sshd")
_PENALTIES_SINCE = (9, 8)
_DEADLINE = 20.0
_POLL = 0.01
_LAST_LINES = 5

# An sshd without PAM refuses accounts whose password is locked; with this service every account
# whose key matches can log in.
_PAM = """\
auth required pam_deny.so
account required pam_permit.so
password required pam_deny.so
session required pam_permit.so
"""
# bash that sshd starts reads ~/.bashrc where SHLVL says that no shell is above it (bash(1),
# INVOCATION): what this machine's root does there, a hundred times at once, is nothing of a host's.
_SERVER = """\
ListenAddress {address}:22
HostKey {place}/host_key
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
AuthenticationMethods publickey
PermitRootLogin prohibit-password
UsePAM {pam}
PrintMotd no
PrintLastLog no
UseDNS no
MaxStartups 200
MaxSessions 200
SetEnv SHLVL=1
"""
_CLIENT = """\
Host {alias}
    HostName {address}
    User root
    AddressFamily inet
    IdentityFile {folder}/client_key
    IdentitiesOnly yes
    IdentityAgent none
    PreferredAuthentications publickey
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    UpdateHostKeys no
"""
# $1 PAM service of the lab, $2 the system's (hidden by it in this mount namespace alone), then
# sshd's command line.
_START = """\
echo 0 > /proc/sys/net/ipv4/ip_forward || exit
[ ! -e "$2" ] || mount --bind "$1" "$2" || exit
shift 2
exec "$@"
"""


def place(folder: Path, host: str) -> Path:
    """Where one host's server has its files."""
    return folder / "hosts" / host


def prepare(folder: Path, hosts: Iterable[LabHost], tools: Tools) -> Path:
    """Write keys and configurations of servers and client; the client's ssh_config. Errors:
    LabError.
    """
    hosts = list(hosts)
    config = keys(folder, hosts, tools)
    extra = "PerSourcePenalties no\n" if _version(tools) >= _PENALTIES_SINCE else ""
    words = {"folder": folder, "pam": "yes" if PAM_SERVICE.exists() else "no"}
    for host in hosts:
        here = place(folder, host.name)
        text = _SERVER.format(address=host.management, place=here, **words)
        (here / "sshd_config").write_text(text + extra)
    (folder / "pam").write_text(_PAM)
    return config


def keys(folder: Path, hosts: Iterable[LabHost], tools: Tools) -> Path:
    """Make every host's folder and key, the client's key, and the files that make both known to
    each other; returns the client's ssh_config. Errors: LabError.
    """
    hosts = list(hosts)
    for part in (folder / "hosts", *(place(folder, host.name) for host in hosts)):
        part.mkdir()
    key_files = [folder / "client_key", *(place(folder, host.name) / "host_key" for host in hosts)]
    keygen = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f")
    together(lambda key: tools.run((*keygen, str(key))), key_files)
    client, *servers = (key.with_suffix(".pub").read_text().strip() for key in key_files)
    (folder / "known_hosts").write_text(
        "".join(f"{h.management} {key}\n" for h, key in zip(hosts, servers, strict=True))
    )
    (folder / "authorized_keys").write_text(f"{client}\n")
    config = folder / "ssh_config"
    config.write_text(
        "".join(
            _CLIENT.format(alias=host.ssh, address=host.management, folder=folder) for host in hosts
        )
    )
    return config


def _version(tools: Tools) -> tuple[int, int]:
    """OpenSSH's version: what sshd says about itself, or about an option that it does not know."""
    match = re.search(r"OpenSSH_(\d+)\.(\d+)", tools.attempt(("sshd", "-V")).stderr)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def start(folder: Path, hosts: Iterable[LabHost], tools: Tools) -> None:
    """Start every host's server in its namespace and wait until all answer. Errors: LabError with
    the end of a server's log.
    """
    _PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    together(lambda host: _start(folder, host, tools), hosts)


def _start(folder: Path, host: LabHost, tools: Tools) -> None:
    here = place(folder, host.name)
    server = (tools.paths["sshd"], "-f", str(here / "sshd_config"), "-E", str(here / "log"))
    shell = ("/bin/sh", "-c", _START, "sh", str(folder / "pam"), str(PAM_SERVICE))
    done = tools.attempt(("ip", "netns", "exec", host.namespace, *shell, *server))
    if done.returncode:
        raise LabError(
            f"{host.name}: sshd did not start: {_log_end(here / 'log') or done.stderr.strip()}"
        )
    deadline = time.monotonic() + _DEADLINE
    while not answers(host.management):
        if time.monotonic() > deadline:
            raise LabError(
                f"{host.name}: sshd at {host.management} did not answer within {_DEADLINE:.0f} s:"
                f" {_log_end(here / 'log')}"
            )
        time.sleep(_POLL)


def answers(address: str, timeout: float = 1.0) -> bool:
    """Whether an SSH server sends its banner at an address, within so many seconds."""
    deadline = time.monotonic() + timeout
    try:
        with socket.create_connection((address, PORT), timeout) as connection:
            connection.settimeout(max(deadline - time.monotonic(), _POLL))
            return connection.recv(256).startswith(b"SSH-")
    except OSError:
        return False


def servers(folder: Path, host: str = "") -> list[int]:
    """The processes of a lab's servers, or of one host's: their command lines name its folder, and
    root runs their program, since anybody may write a command line.
    """
    marker = f"{place(folder, host)}/".encode()
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes()
            program = (entry / "comm").read_text()
            with contextlib.suppress(PermissionError):  # only root may see, who acts on it
                program = os.readlink(entry / "exe").rpartition("/")[2]
            is_own = entry.stat().st_uid == 0 and program.startswith(PROGRAMS)
            if is_own and marker in words:
                pids.append(int(entry.name))
    return pids


def _log_end(log: Path) -> str:
    try:
        return "; ".join(log.read_text(errors="replace").splitlines()[-_LAST_LINES:])
    except OSError:
        return ""
