"""A real sshd on 127.0.0.1, in a mount namespace of its own: accounts, homes, mounts of a test."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from netbench.hosts import shell
from netbench.hosts.shell import Session
from netbench.hosts.ssh.channel import SshChannel
from tests.support.local import out
from tests.support.running import wait_for

SSHD = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/bin")
USER, UID = "bench", 47110

needs_sshd = pytest.mark.skipif(SSHD is None, reason="needs openssh-server")


def sudo_setup(bed: Bed, rule: str, worker: Path | None = None) -> str:
    """Setup text: a host with these sudoers, its own /usr/local, this worker for sudo."""
    if shutil.which("sudo") is None:
        pytest.skip("needs sudo: apt-get install sudo")
    bed.place.mkdir(parents=True, exist_ok=True)
    if worker:
        digest = hashlib.sha256(worker.read_bytes()).hexdigest()
        shutil.copy(worker, bed.place / f"worker-{digest}")
    lines = f"'Defaults !fqdn' 'root ALL=(ALL:ALL) ALL' '{rule}' '@includedir /etc/sudoers.d'"
    return (
        f"mount --bind {bed.folder}/local /usr/local; printf '%s\\n' {lines} > /etc/sudoers;"
        " chmod 440 /etc/sudoers; rm -rf /etc/sudoers.d/*\n"
    )


def keygen(file: Path, *options: str) -> Path:
    """A key pair without a passphrase, unless options say otherwise."""
    words = [*(() if "-N" in options else ("-N", "")), "-C", file.name, "-f", str(file), *options]
    out("ssh-keygen", "-q", "-t", "ed25519", *words)
    return file


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def speaks_ssh(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as sock:
            return sock.recv(4) == b"SSH-"
    except OSError:
        return False


@dataclass
class Server:
    """One sshd: its folder (keys, home, log), port and process."""

    folder: Path
    port: int
    child: subprocess.Popen[bytes]

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def key(self, kind: str = "ed25519") -> str:
        """Type and base64 of a host key."""
        return " ".join((self.folder / f"host_{kind}.pub").read_text().split()[:2])

    def run(self, script: str, *before: str) -> None:
        """Run a script as root of this host, or as what the words before it make of root."""
        argv = ["nsenter", f"--target={self.child.pid}", "--mount", *before, "sh", "-ec", script]
        subprocess.run(argv, check=True)

    def workers(self) -> list[int]:
        """Processes of workers that run from this host's home, also where the tests are in a chroot."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/exe"):
            with contextlib.suppress(OSError):  # it has ended
                target = os.readlink(entry)
                if f"{self.home}/" in target and "/netbench" in target:
                    found.append(int(entry.parent.name))
        return found

    def sessions(self) -> list[int]:
        """sshd's children, one a connection (and its unprivileged halves), each before its own."""
        children: dict[int, list[int]] = {}
        for status in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # it has ended
                parent = status.read_text().rpartition(")")[2].split()[1]
                children.setdefault(int(parent), []).append(int(status.parent.name))
        found = [self.child.pid]
        for pid in found:
            found += children.get(pid, ())
        return found[1:]


@dataclass
class Bed:
    """Servers of a test, its client's key and configuration, and the channels that it opened."""

    folder: Path
    servers: list[Server] = field(default_factory=list)
    channels: list[SshChannel] = field(default_factory=list)

    @property
    def place(self) -> Path:
        """Where sudo starts helpers from, on hosts of sudo_setup."""
        return self.folder / "local/libexec/netbench"

    @property
    def config(self) -> Path:
        return self.folder / "ssh_config"

    @property
    def known(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def identity(self) -> Path:
        return self.folder / "id"

    def configure(self, text: str, known: bool = True) -> None:
        """Set the client's configuration, `text` first; `known`: each server's ed25519 key."""
        servers = self.servers if known else []
        lines = [f"[127.0.0.1]:{server.port} {server.key()}\n" for server in servers]
        self.known.write_text("".join(lines))
        self.config.write_text(
            f"{text}\nHost *\n  IdentityFile {self.identity}\n  IdentityAgent none\n"
            f"  UserKnownHostsFile {self.known}\n  GlobalKnownHostsFile none\n"
        )

    def alias(self, server: Server, user: str = "root", name: str = "box", more: str = "") -> str:
        return f"Host {name}\n  HostName 127.0.0.1\n  Port {server.port}\n  User {user}\n  {more}\n"

    def channel(self, destination: str = "box", **options: Any) -> SshChannel:
        """A channel that is closed when the test ends."""
        options = {"ssh_config": self.config, "connect_timeout": 10.0} | options
        made = SshChannel("snd", destination, **options)
        self.channels.append(made)
        return made

    def host(self, user: str = "root", **options: Any) -> tuple[Server, SshChannel]:
        """A server, and a channel to it."""
        server = self.serve(user=user, **options)
        self.configure(self.alias(server, user))
        return server, self.channel()

    def serve(
        self, *, user: str = "root", shell: str = "/bin/sh", setup: str = "", sshd: str = ""
    ) -> Server:
        """Start an sshd; `setup`: shell text in its mount namespace before; `sshd`: its lines."""
        folder = self.folder / f"server{len(self.servers)}"
        home = folder / "home"
        home.mkdir(parents=True)
        for kind in ("ed25519", "ecdsa"):
            keygen(folder / f"host_{kind}", "-t", kind)
        port = free_port()
        uid = 0 if user == "root" else UID
        accounts = [f"{user}:*:{uid}:{uid}::{home}:{shell}"]
        accounts += [] if user == "root" else ["root:*:0:0::/root:/bin/sh"]
        accounts.append("sshd:*:101:65534::/run/sshd:/usr/sbin/nologin")
        accounts.append("nobody:*:65534:65534::/nonexistent:/usr/sbin/nologin")
        (folder / "passwd").write_text("\n".join([*accounts, ""]))
        shadows = [f"{name}:*:19000:0:99999:7:::\n" for name in {user, "root", "sshd"}]
        (folder / "shadow").write_text("".join(shadows))
        keys = folder / "authorized_keys"
        shutil.copy(f"{self.identity}.pub", keys)
        (folder / "config").write_text(
            f"{sshd}\nListenAddress 127.0.0.1:{port}\nHostKey {folder}/host_ed25519\nHostKey {folder}/host_ecdsa\n"
            f"PidFile none\nUsePAM no\nStrictModes no\nAuthorizedKeysFile {keys}\nPasswordAuthentication no\n"
            "KbdInteractiveAuthentication no\nPermitRootLogin yes\nUseDNS no\nMaxStartups 100\n"
        )
        os.chown(home, uid, uid)
        # a mount on /etc/passwd alone is gone as soon as another test's useradd replaces the file
        prepare = (
            "mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd\ncp -a /etc /run/etc || :\n"
            f"for file in passwd shadow; do mount --bind {folder}/$file /run/etc/$file; done\n"
            "mount --rbind /run/etc /etc; rm -rf /etc/netbench\n"
            "for place in /var/tmp /dev/shm; do mount -t tmpfs -o mode=1777 tmpfs $place; done\n"
        )
        script = f"HOME={shlex.quote(str(home))}\n{prepare}\n{setup}\nexec {SSHD} -D -e -f {folder}/config"
        with (folder / "log").open("wb") as log:
            argv = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script]
            child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        server = Server(folder, port, child)
        self.servers.append(server)
        wait_for(lambda: speaks_ssh(port) or child.poll() is not None)
        assert child.poll() is None, server.log
        return server

    def close(self) -> None:
        for channel in self.channels:
            channel.close()
        for server in self.servers:
            for pid in [*server.sessions(), server.child.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            server.child.wait()
            print(f"the sshd of {server.folder} said:\n{server.log}")  # shown where a test fails


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that the accounts of tests may look into: pytest's own is for its user alone."""
    with tempfile.TemporaryDirectory(prefix="netbench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@contextlib.contextmanager
def open_bed(folder: Path) -> Iterator[Bed]:
    """Servers with their files below this folder, closed at the end."""
    made = Bed(folder)
    keygen(made.identity)
    made.configure("")
    try:
        yield made
    finally:
        made.close()


def started(channel: SshChannel, argv: Sequence[str]) -> Session:
    """A program on a host, as workers are started."""
    with channel._shell(30.0, keep=True) as host:
        return shell.start(host, argv)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    with open_bed(tmp_path) as made:
        yield made
