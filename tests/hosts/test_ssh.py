"""Hosts over SSH, against a real sshd: where connections go, whose keys count, no endless wait."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import paramiko
import pytest

from netbench import campaign
from netbench.base.cancel import aside, held_back
from netbench.base.errors import HostError, HostKeyError
from netbench.hosts.shell import LINE
from netbench.hosts.ssh import authentication, destination, known_hosts, wire
from netbench.hosts.ssh.channel import SshChannel
from netbench.hosts.ssh.process import SshProcess
from netbench.lab import guest_console, sshd
from netbench.lab.command import find
from netbench.lab.lab import Lab, LabHost
from netbench.run.worker_pool import WorkerPool
from tests.support.local import out
from tests.support.running import wait_for
from tests.support.sshd import (
    Bed,
    bed,
    free_port,
    keygen,
    needs_sshd,
    open_bed,
    open_folder,
    started,
    tmp_path,
)

__all__ = ["bed", "tmp_path"]
pytestmark = [pytest.mark.root, needs_sshd]

AWKWARD = [
    *("a b", "q'\"", "$(touch injected)", "`touch injected`", "; touch injected"),
    *("two\nlines\n\n", "", "-n", "\\n", "é\udcff", "*"),
]


def failure(channel: SshChannel, kind: type[HostError] = HostError) -> str:
    with pytest.raises(kind) as error:
        channel.connect()
    assert channel.name in str(error.value)
    return str(error.value)


def tell(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # one that only let it in, or below another
            os.kill(pid, number)


def login_shell(folder: Path, script: str) -> str:
    """The path of a login shell that is a script."""
    (folder / "login").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "login").chmod(0o755)
    return str(folder / "login")


@pytest.fixture(scope="module")
def channel() -> Iterator[SshChannel]:
    """To a host of all tests that leave it as it is."""
    with open_folder() as folder, open_bed(folder) as made:
        yield made.host()[1]


# --- commands and files


def test_arguments_arrive_as_they_are(bed: Bed) -> None:
    server, channel = bed.host()
    done = channel.run(["printf", "[%s]", *AWKWARD])
    sent = "".join(f"[{word}]" for word in AWKWARD).encode("utf-8", "surrogateescape")
    assert done.stdout == sent.decode("utf-8", "replace")
    assert not (server.home / "injected").exists()
    done = channel.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.status, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert channel.run(["cat"]).stdout == ""  # no input


def test_what_cannot_be_run_is_said(channel: SshChannel) -> None:
    for argv in (["no-such-program"], ["/etc/passwd"], [""]):
        with pytest.raises(HostError, match="snd: "):
            channel.run(argv)


def test_a_command_that_takes_too_long_is_given_up(channel: SshChannel) -> None:
    began = time.monotonic()
    with pytest.raises(HostError, match="in time"):
        channel.run(["sleep", "50"], timeout=0.3)
    assert time.monotonic() - began < 20
    assert channel.run(["echo", "well"]).stdout == "well\n"


def test_files_go_without_sftp(bed: Bed, tmp_path: Path) -> None:
    server, channel = bed.host(sshd="Subsystem sftp /bin/false")
    source, data = tmp_path / "source", os.urandom(300_000)
    source.write_bytes(data)
    target = server.home / "a 'name' $(touch injected); \"x\"\n"
    channel.put(source, str(target), 0o640)
    assert target.read_bytes() == data
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(server.home.iterdir()) == [target]


def test_file_errors_are_the_hosts_own_words(bed: Bed, tmp_path: Path) -> None:
    server, channel = bed.host(
        setup="mkdir $HOME/small; mount -t tmpfs -o size=16k tmpfs $HOME/small"
    )
    source = tmp_path / "source"
    source.write_bytes(bytes(1 << 20))
    said = r"snd: cannot write .*/small/x; its output: .*No space left"
    with pytest.raises(HostError, match=said):
        channel.put(source, f"{server.home}/small/x")
    with pytest.raises(HostError, match=r"cannot write /nowhere/x.*nowhere"):
        channel.put(source, "/nowhere/x")
    assert channel.run(["ls", f"{server.home}/small"]).stdout == ""


# --- programs that are talked to


def test_a_program_is_talked_to_in_bytes(channel: SshChannel) -> None:
    process = started(channel, ["cat"])
    every = bytes(range(256)) * 1000
    with ThreadPoolExecutor(1) as pool:
        echoed = pool.submit(lambda: b"".join(iter(lambda: process.read(5), b"")))
        process.write(every)
        process.write_end()  # type: ignore[attr-defined]
        assert echoed.result() == every
    assert process.finish(5) == 0


def test_a_programs_complaint_and_status(channel: SshChannel) -> None:
    """A long complaint does not block the output, and a program that does not end is left."""
    process = started(channel, ["sh", "-c", "seq 2000 >&2; read x; exit 4"])
    assert process.finish(5) == 4
    assert process.complaint() == "1998\n1999\n2000"
    process = started(channel, ["sh", "-c", "head -c 5000000 /dev/zero >&2; echo done; cat"])
    assert process.read(20) == b"done\n"
    with pytest.raises(TimeoutError):
        process.read(0.05)
    process.write(b"x")
    assert process.read(5) == b"x"
    assert started(channel, ["sh", "-c", "exec sleep 1000 <&-"]).finish(0.1) is None


def test_writing_to_a_program_that_does_not_read_ends(
    channel: SshChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netbench.hosts.ssh.process.STALL_SECONDS", 0.6)
    process = started(channel, ["sleep", "1000"])
    with pytest.raises(OSError, match="not read its input"):
        process.write(bytes(16 << 20))


def test_writing_to_a_host_that_is_frozen_ends(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernel acknowledges until the socket is full, and no process reads."""
    monkeypatch.setattr("netbench.hosts.ssh.process.STALL_SECONDS", 0.6)
    monkeypatch.setattr(wire, "STALL_SECONDS", 0.6)
    server, channel = bed.host()
    process = started(channel, ["cat"])
    frozen = server.sessions()
    tell(frozen, signal.SIGSTOP)
    try:
        with pytest.raises(OSError, match=r"not read its input|is lost"):
            process.write(bytes(100 << 20))
    finally:
        tell(frozen, signal.SIGCONT)


def test_a_lost_connection_is_noticed_and_made_again(bed: Bed) -> None:
    server, channel = bed.host()
    process = started(channel, ["cat"])
    tell(server.sessions(), signal.SIGKILL)
    with pytest.raises(OSError, match=r"^the SSH connection to .* is lost$"):
        process.read(10)
    with pytest.raises(OSError, match=r"lost|closed|gone"):
        process.write(b"x")
    assert process.finish(1) is None
    assert channel.run(["echo", "again"]).stdout == "again\n"


def test_a_frozen_host_opens_no_session_but_is_given_up(bed: Bed) -> None:
    server, _ = bed.host()
    channel = bed.channel(connect_timeout=1.0)
    channel.connect()
    tell(server.sessions(), signal.SIGSTOP)
    with pytest.raises(HostError, match="refused a session"):
        channel.run(["true"])
    assert channel.run(["echo", "again"]).stdout == "again\n"


class Slow(paramiko.ServerInterface):
    """An SSH server that lets everybody in and never answers a request to run something."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def check_auth_none(self, username: str) -> int:
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.over.wait(60)
        return False


def test_a_host_that_never_answers_a_request_is_given_up(bed: Bed) -> None:
    key, slow = paramiko.ECDSAKey.generate(), Slow()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        bed.known.write_text(f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n")
        channel = bed.channel(f"ssh://root@127.0.0.1:{port}", connect_timeout=1.0)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(channel.run, ["true"])
            server = paramiko.Transport(listener.accept()[0])
            server.add_server_key(key)
            server.start_server(server=slow)
            try:
                with pytest.raises(HostError, match="the host refused a session"):
                    asked.result(20)
            finally:
                slow.over.set()
                server.close()


# --- shells


def test_the_shell_sees_one_constant_line(bed: Bed, tmp_path: Path) -> None:
    server, channel = bed.host(
        sshd='ForceCommand echo "$SSH_ORIGINAL_COMMAND" >> $HOME/seen; eval "$SSH_ORIGINAL_COMMAND"'
    )
    source = tmp_path / "source"
    source.write_text("content")
    channel.run(["echo", "argument"])
    channel.put(source, f"{server.home}/path")
    started(channel, ["cat"]).finish(5)
    assert (server.home / "seen").read_text() == f"{LINE}\n" * 3


@pytest.mark.parametrize("shell", ["/bin/bash", "/usr/bin/busybox"])
def test_a_banner_is_skipped(bed: Bed, shell: str, tmp_path: Path) -> None:
    if not Path(shell).exists():
        pytest.skip(f"{shell} is not installed")
    inner = f"{shell} sh" if "busybox" in shell else shell
    banner = f"seq 5000\necho netbench:ready\nprintf 'no newline $'\nexec {inner} \"$@\""
    server, channel = bed.host(shell=login_shell(tmp_path, banner))
    (server.home / ".bashrc").write_text("echo hello; echo trouble >&2\n")
    assert channel.run(["echo", "output"]).stdout == "output\n"
    process = started(channel, ["cat"])
    process.write(b"frame")
    assert process.read(5) == b"frame"


def test_a_login_shell_that_runs_nothing_is_quoted(bed: Bed, tmp_path: Path) -> None:
    _, channel = bed.host(shell=login_shell(tmp_path, "exec /usr/sbin/nologin"))
    said = "ran no command.*; its output: This account is currently not available"
    with pytest.raises(HostError, match=said):
        channel.run(["true"])


# --- destinations


def test_an_alias_in_an_included_file(bed: Bed, tmp_path: Path) -> None:
    server = bed.serve(user="bench")
    folder = tmp_path / "with space"
    folder.mkdir()
    authorize(server.folder, keygen(folder / "key bench"))
    included = folder / "more.conf"
    included.write_text(bed.alias(server, "bench", more=f'IdentityFile "{folder}/key %r"'))
    bed.configure(f'Include "{included}"')
    assert bed.channel().run(["id", "-un"]).stdout == "bench\n"


def test_output_of_ssh_g_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("PLACE", "/p")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    config = tmp_path / "config"
    config.write_text(
        "Host box\n HostName 10.0.0.7\n"
        " Port 2200\n User me\n ConnectTimeout 7\n ServerAliveInterval 9\n BindAddress 10.0.0.1\n AddressFamily inet\n"
        " HostKeyAlias Farm\n IdentitiesOnly yes\n IdentityFile ~/k_%r_%h_%p\n IdentityFile ${PLACE}/k\n CertificateFile ~/c-cert.pub\n"
        ' UserKnownHostsFile "/a b/k" ~/k2\n GlobalKnownHostsFile /g\n ProxyCommand relay "%h" %p %r %n 100%%\n'
    )
    place = destination.resolve("box", config)
    assert place == destination.Destination(
        hostname="10.0.0.7",
        port=2200,
        user="me",
        proxy='relay "10.0.0.7" 2200 me box 100%',
        identities=(Path("/home/me/k_me_10.0.0.7_2200"), Path("/p/k")),
        certificates=(Path("/home/me/c-cert.pub"),),
        identities_only=True,
        agent="/run/agent",
        known_hosts=(Path("/a b/k"), Path(os.path.expanduser("~root/k2")), Path("/g")),
        key_alias="farm",
        bind="10.0.0.1",
        family=socket.AF_INET,
        connect_timeout=7,
        keepalive=9,
    )


def test_the_address_family_of_the_configuration_is_kept() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        port = server.getsockname()[1]
        place = destination.Destination("::1", port, "me", family=socket.AF_INET6)
        wire.open_wire(place, 5.0, "a").close()
        with pytest.raises(HostError, match="a: "):
            wire.open_wire(place._replace(family=socket.AF_INET), 5.0, "a")


BAD = (
    *("", "-oProxyCommand=touch injected", "a@-x", "-l@host", "a b", "$(touch injected)", "a;b"),
    *("a`b`", "a\nb", "x@y|z", "ssh://a%20b", 'a"b'),
)


def test_destinations_that_are_no_names_reach_nothing(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    bed.configure(
        'Match exec "touch injected; true # %n"\n  ProxyCommand touch injected; false # %h %n'
    )
    for bad in BAD:
        assert "is not an SSH destination" in failure(bed.channel(bad))
    assert not (tmp_path / "injected").exists()


def test_a_missing_ssh_client_is_said(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "install -y --no-install-recommends openssh-client" in failure(bed.channel())


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("  Prot 22", "Bad configuration option: prot"),
        ("  HostName no-such-host.invalid", "the name cannot be resolved"),
        ("  ProxyJump bax\nHost bax\n  ProxyJump box", "lead in a circle, or are more than 8"),
        ("  ProxyCommand sleep 4711", "sent no SSH banner"),
        ("  ProxyCommand echo no way there >&2; false", "; false` printed: no way there"),
    ],
)
def test_a_configuration_that_leads_nowhere_is_told_and_leaves_no_proxy(
    bed: Bed, config: str, said: str
) -> None:
    bed.config.write_text(f"Host box\n{config}\n")
    assert said in failure(bed.channel(connect_timeout=0.5 if "sleep" in config else 20.0))
    wait_for(lambda: not [argv for argv in children() if {"-W", "4711"} & {*argv}])


# --- jumps and proxies


def test_jump_hosts_are_gone_through_in_a_row(bed: Bed) -> None:
    first, second, target = bed.serve(), bed.serve(), bed.serve(user="bench")
    jumps = f"ProxyJump root@127.0.0.1:{first.port},bastion"
    bed.configure(
        bed.alias(target, "bench", more=jumps)
        + bed.alias(second, name="bastion", more="HostKeyAlias farm")
    )
    with bed.known.open("a") as known:
        known.write(f"farm {second.key()}\n")
    channel = bed.channel()
    assert channel.run(["id", "-un"]).stdout == "bench\n"
    assert all(server.sessions() for server in bed.servers)
    channel.close()
    wait_for(lambda: not any(server.sessions() for server in bed.servers))


def test_jump_hosts_are_left_to_ssh(tmp_path: Path) -> None:
    config, asks = tmp_path / "config", "-o BatchMode=yes -o StrictHostKeyChecking=yes"
    for jumps, through in (
        ("me@[::1]:33", f"{asks} -W '[far]:22' -p 33 -- me@::1"),
        ("a,b:1,relay", f"-J a,b:1 {asks} -W '[far]:22' -- ssh://relay"),
    ):
        config.write_text(f"Host far\n ProxyJump {jumps}\n")
        assert destination.resolve("far", config).proxy == f"ssh -F {config} {through}"
    for six in ("ssh://x@[fd00::2]:2222", "x@[fe80::2%eth0]:2222", "[fd00::2]:2222"):
        found = destination.resolve(six, config)
        assert (found.hostname, found.port) == (six.partition("[")[2].partition("]")[0], 2222)


def test_trouble_at_a_jump_host_is_quoted_with_the_command(bed: Bed) -> None:
    jump, target = bed.serve(sshd="AllowTcpForwarding no"), bed.serve()
    bed.configure(bed.alias(target, more="ProxyJump bastion") + bed.alias(jump, name="bastion"))
    message = failure(bed.channel())
    assert f"snd (root@127.0.0.1:{target.port}): " in message
    assert f"-W '[127.0.0.1]:{target.port}' -- ssh://bastion` printed: " in message
    assert "administratively prohibited" in message
    wait_for(lambda: not jump.sessions())
    bed.known.write_text(f"[127.0.0.1]:{target.port} {target.key()}\n")
    message = failure(bed.channel())
    assert f"No ED25519 host key is known for [127.0.0.1]:{jump.port}" in message


def children() -> list[list[str]]:
    """The command lines of this process's children."""
    found = []
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1])
    return found


def test_a_proxy_command_is_used(bed: Bed) -> None:
    server = bed.serve()
    relay = """sh -c 'busybox nc "$0" "$1"; true' %h %p '%n=%r=100%%'"""
    bed.configure(bed.alias(server, more=f"ProxyCommand {relay}"))
    channel = bed.channel()
    assert channel.run(["echo", "through"]).stdout == "through\n"
    assert [argv[-1] for argv in children() if argv[0] == "sh"] == ["box=root=100%"]
    channel.close()
    wait_for(lambda: not [argv for argv in children() if argv[0] == "sh"])


# --- host keys


def shown_fingerprint(key: Path) -> str:
    return out("ssh-keygen", "-lf", str(key)).split()[1]


KEY = "host_ed25519.pub"


def commands(error: HostKeyError) -> list[str]:
    """What a message tells to run."""
    return [line.strip() for line in str(error).splitlines() if line.startswith("  ")]


@pytest.mark.parametrize("alias", ["", "HostKeyAlias farm"])
def test_an_unknown_key_is_refused_until_it_is_accepted(bed: Bed, alias: str) -> None:
    server = bed.serve()
    bed.configure(bed.alias(server, more=f"StrictHostKeyChecking no\n  {alias}"), known=False)
    bed.known.unlink()
    with pytest.raises(HostKeyError) as error:
        bed.channel().connect()
    assert shown_fingerprint(server.folder / KEY) in str(error.value)
    assert not bed.known.exists()
    subprocess.run(["sh", "-c", commands(error.value)[-1]], check=True)
    assert bed.known.read_text().split()[0] == ("farm" if alias else f"[127.0.0.1]:{server.port}")
    assert bed.channel().run(["echo", "in"]).stdout == "in\n"


def test_a_changed_key_names_the_line(bed: Bed) -> None:
    server = bed.serve()
    bed.configure(bed.alias(server), known=False)
    old = keygen(bed.folder / "old key")
    blob = " ".join(old.with_suffix(".pub").read_text().split()[:2])
    bed.known.write_text(f"# comment\nother {blob}\n[127.0.0.1]:{server.port} {blob}\n")
    with pytest.raises(HostKeyError, match="has changed") as error:
        bed.channel().connect()
    parts = (f"{bed.known}:3", shown_fingerprint(old), shown_fingerprint(server.folder / KEY))
    for part in (*parts, f"ssh-keygen -f {bed.known} -R", f"root@127.0.0.1:{server.port}"):
        assert part in str(error.value)
    for command in commands(error.value):
        subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    bed.channel().connect()


PLACE = "[127.0.0.1]:{port}"
# A file of known hosts, what sshd has, and why the host is refused ("": it is not).
KEYS = {
    "revoked": (f"{PLACE} {{ed25519}}\n@revoked * {{ed25519}}\n", "", "revoked by {known}:2"),
    "an authority": ("@cert-authority *,[127.*]:* {ed25519}\n", "", "its host key is not known"),
    "in a second file": (f"{PLACE} {{ecdsa}}\n", "", ""),
    "of another kind": (
        f"{PLACE} {{ecdsa}}\n",
        "HostKeyAlgorithms ssh-ed25519",
        "key of another type (ssh-ed25519)",
    ),
    "hashed, and another": (f"{PLACE} {{old}}\n", "", "has changed"),
}


@pytest.mark.parametrize("case", KEYS)
def test_keys_that_are_known(bed: Bed, case: str) -> None:
    text, sshd, why = KEYS[case]
    old = keygen(bed.folder / "old").with_suffix(".pub").read_text()
    server = bed.serve(sshd=sshd)
    files = f'UserKnownHostsFile {bed.folder}/none "{bed.known}"' if "second" in case else ""
    bed.configure(bed.alias(server, more=files))
    keys = {kind: server.key(kind) for kind in ("ed25519", "ecdsa")}
    keys["old"] = " ".join(old.split()[:2])
    bed.known.write_text(text.format(port=server.port, **keys))
    if case.startswith("hashed"):
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", bed.known], check=True, capture_output=True)
        assert "127.0.0.1" not in bed.known.read_text()
    if why:
        assert why.format(known=bed.known) in failure(bed.channel(), HostKeyError)
    else:
        bed.channel().connect()


def test_names_of_known_hosts() -> None:
    for names, name, matches in (
        ("a,HOST,b", "host", True),
        ("h?st", "host", True),
        ("*.example,!b.example", "a.example", True),
        ("*.example,!b.example", "b.example", False),
        ("[host]:22", "host", False),
        ("[*]:2200", "[host]:2200", True),
        ("[h]", "h", False),
        ("|1|AAAA|AAAA", "host", False),
    ):
        assert known_hosts.names_match(names, name) is matches, names


def test_a_key_known_without_the_port_counts_and_a_different_one_does_not(tmp_path: Path) -> None:
    file = tmp_path / "known"
    file.write_text(
        "host ssh-ed25519 AAAA\n@revoked other ssh-ed25519 BBBB\nbroken\n@x\nhost ssh-ed25519 ???\n"
    )
    known = known_hosts.KnownHosts("snd", [tmp_path / "missing", file], "Host", 2200)
    known.enforce("ssh-ed25519", bytes(3))
    with pytest.raises(HostKeyError, match="is not known"):
        known.enforce("ssh-ed25519", bytes(6))


# --- authentication


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Path]:
    """A real agent's socket."""
    path = tmp_path / "agent"
    child = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    wait_for(path.exists)
    yield path
    child.terminate()
    child.wait()


def add_key(agent: Path, key: Path, passphrase: str = "") -> None:
    asker = agent.parent / "asker"
    asker.write_text(f"#!/bin/sh\necho {shlex.quote(passphrase)}\n")
    asker.chmod(0o700)
    told = {"SSH_AUTH_SOCK": agent, "SSH_ASKPASS": asker, "SSH_ASKPASS_REQUIRE": "force"}
    environment = {**os.environ, **told}
    subprocess.run(["ssh-add", "-q", key], env=environment, check=True, stdin=subprocess.DEVNULL)


def authorize(server_folder: Path, key: Path) -> None:
    (server_folder / "authorized_keys").write_text(Path(f"{key}.pub").read_text())


def test_a_refusal_lists_what_was_tried(bed: Bed, agent: Path) -> None:
    server = bed.serve()
    authorize(server.folder, keygen(bed.folder / "unknown_key"))
    locked, held = keygen(bed.folder / "locked", "-N", "secret"), keygen(bed.folder / "held")
    add_key(agent, held)
    files = f"IdentityFile {locked}\n  IdentityFile {bed.folder}/absent"
    bed.configure(bed.alias(server, more=f"IdentityAgent {agent}\n  {files}"))
    message = failure(bed.channel())
    for part in (
        f"snd (root@127.0.0.1:{server.port}): the host rejected every key that was offered",
        f"{shown_fingerprint(held)} from the agent: rejected",
        f"{locked}: encrypted; add it to an agent with `ssh-add {locked}`",
        f"{bed.identity}: rejected",
        "The host accepts publickey; netbench sends no passwords.",
        f"ssh-copy-id -p {server.port} root@127.0.0.1",
    ):
        assert part in message
    assert "absent" not in message
    more = "AuthenticationMethods publickey,password\nPasswordAuthentication yes"
    bed.configure(bed.alias(bed.serve(sshd=more)))
    assert f"{bed.identity}: accepted, but the host also wants password" in failure(bed.channel())


@pytest.mark.parametrize(("kind", "passphrase"), [("ecdsa", "secret"), ("rsa", "")])
def test_keys_of_each_kind_work_and_encrypted_ones_through_an_agent(
    bed: Bed, agent: Path, kind: str, passphrase: str
) -> None:
    server = bed.serve()
    key = keygen(bed.folder / "other", "-t", kind, "-N", passphrase)
    authorize(server.folder, key)
    bed.configure(bed.alias(server, more=f"IdentityFile {key}\n  IdentityAgent {agent}"))
    if passphrase:
        assert "encrypted" in failure(bed.channel())
    else:
        bed.channel().connect()
    add_key(agent, key, passphrase)
    key.unlink()
    bed.channel().connect()


def test_with_identities_only_an_agent_shows_just_the_named_keys(bed: Bed, agent: Path) -> None:
    """sshd hangs up after two keys, so the right one must be the first."""
    server = bed.serve(sshd="MaxAuthTries 2")
    right = keygen(bed.folder / "right")
    authorize(server.folder, right)
    for number in range(4):
        add_key(agent, keygen(bed.folder / f"wrong{number}"))
    add_key(agent, right)
    right.unlink()
    more = f"IdentityAgent {agent}\n  IdentityFile {right}"
    bed.configure(bed.alias(server, more=f"{more}\n  IdentitiesOnly yes"))
    bed.channel().connect()
    bed.configure(bed.alias(server, more=more))
    bed.channel().connect()
    bed.configure(bed.alias(server, more=f"IdentityAgent {agent}"))
    assert "the host closed the connection" in failure(bed.channel())
    bed.configure(bed.alias(server, more=f"IdentityAgent {agent}\n  IdentitiesOnly yes"))
    assert "from the agent" not in failure(bed.channel())


def test_a_certificate_is_shown(bed: Bed) -> None:
    authority, key = keygen(bed.folder / "authority"), keygen(bed.folder / "certified")
    out("ssh-keygen", "-q", "-s", str(authority), "-I", "me", "-n", "root", f"{key}.pub")
    server = bed.serve(sshd=f"TrustedUserCAKeys {authority}.pub")
    (server.folder / "authorized_keys").write_text("")
    bed.configure(bed.alias(server, more=f"IdentityFile {key}"))
    bed.channel().connect()
    moved = Path(f"{key}-cert.pub").rename(bed.folder / "elsewhere.pub")
    bed.configure(bed.alias(server, more=f"IdentityFile {key}\n  CertificateFile {moved}"))
    bed.channel().connect()


# --- hosts that do not answer


@pytest.mark.parametrize(
    ("said", "hangs_up", "expected"),
    [
        (b"", False, "it accepted the connection, but sent no SSH banner (it took more than 0.5 s"),
        (b"SSH-2.0-Silent\r\n", False, "the key exchange failed (it took more than 0.5 s"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", True, "is an SSH server listening on that port"),
    ],
    ids=["nothing", "a banner alone", "HTTP"],
)
def test_what_answers_at_the_port_is_told(
    bed: Bed, said: bytes, hangs_up: bool, expected: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        port = server.getsockname()[1]
        channel = bed.channel(f"ssh://root@127.0.0.1:{port}", connect_timeout=0.5)
        message = pool.submit(failure, channel)
        sock, _ = server.accept()
        with sock:
            sock.sendall(said)
            while not hangs_up and sock.recv(1000):
                pass
        assert f"snd (root@127.0.0.1:{port}): " in message.result(20)
        assert expected in message.result()


def test_an_agent_that_does_not_answer_is_skipped(
    bed: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "AGENT_SECONDS", 0.2)
    server = bed.serve()
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent"))
        silent.listen()
        bed.configure(bed.alias(server, more=f"IdentityAgent {tmp_path}/silent"))
        bed.channel().connect()


def test_a_host_whose_packets_vanish_is_given_up(bed: Bed) -> None:
    """A full backlog: the kernel drops what else wants to connect."""
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        began = time.monotonic()
        place = f"ssh://root@127.0.0.1:{full.getsockname()[1]}"
        message = failure(bed.channel(place, connect_timeout=0.5))
        assert time.monotonic() - began < 20
    assert "it does not answer; is the host up" in message
    closed = failure(bed.channel(f"ssh://root@127.0.0.1:{free_port()}"))
    assert "nothing listens on that port" in closed


def test_closing_leaves_nothing_behind(bed: Bed) -> None:
    before = threading.active_count()
    server, channel = bed.host()
    process = started(channel, ["sleep", "1000"])
    channel.close()
    wait_for(lambda: threading.active_count() == before)
    wait_for(lambda: not server.sessions())
    with pytest.raises(OSError, match="lost"):
        process.write(b"x")


def test_all_hosts_that_cannot_be_reached_are_named_at_once(bed: Bed) -> None:
    names = [f"h{i}" for i in range(4)]
    known = "\n".join(f"Host {name}\n  HostName no-such-{name}.invalid" for name in names[1:])
    bed.configure(f"{bed.alias(bed.serve(), name='h0')}\n{known}\n")
    hosts = ", ".join(f"{name}: {{ssh: {name}, address: 127.0.0.1}}" for name in names)
    pairs = ", ".join(f"{{sender: h0, receiver: {name}}}" for name in names[1:])
    text = f"netbench: 1\nname: f\nssh_config: {bed.config}\nhosts: {{{hosts}}}\npairs: [{pairs}]\ntransfer: {{duration: 1s}}\n"
    with WorkerPool(campaign.parse(text, "f.yaml")) as pool, pytest.raises(HostError) as lost:
        pool.start_all()
    said = str(lost.value)
    assert said.count("the name cannot be resolved") == 3
    assert [line.split()[0].rstrip(":") for line in said.splitlines()] == names[1:]


# --- Ctrl-C at the worst instant: right after paramiko took a lock


class InterruptingLock:
    """A lock; the first time that it is taken, Ctrl-C is pressed."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.pressed = False

    def acquire(self, *how: Any) -> bool:
        taken = bool(self.lock.acquire(*how))
        if not self.pressed:
            self.pressed = True
            os.kill(os.getpid(), signal.SIGINT)
        return taken

    def release(self) -> None:
        self.lock.release()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C as the command line takes it."""
    before = signal.signal(signal.SIGINT, lambda number, frame: held_back.interrupt())
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_write_leaves_no_lock_taken(channel: SshChannel, ctrl_c: None) -> None:
    process = started(channel, ["cat"])
    assert isinstance(process, SshProcess)
    packets = process._session.transport.packetizer
    lock = packets._Packetizer__write_lock = InterruptingLock(packets._Packetizer__write_lock)
    with pytest.raises(KeyboardInterrupt):
        process.write(b"one\n")
    assert lock.pressed
    again = threading.Thread(target=process.write, args=(b"two\n",), daemon=True)
    again.start()
    again.join(30)
    assert not again.is_alive()
    found = b""
    while found.count(b"\n") < 2:
        found += process.read(30)
    assert found == b"one\ntwo\n"
    process.abandon()


def test_what_is_held_back_comes_once_and_at_the_end(ctrl_c: None) -> None:
    steps = []

    @held_back
    def outer() -> None:
        with held_back:
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("inner")
        steps.append("outer")

    with pytest.raises(KeyboardInterrupt):
        outer()
    assert steps == ["inner", "outer"]
    with held_back:
        pass


def test_what_is_done_aside_answers_and_fails_as_if_it_were_done_here() -> None:
    assert aside(lambda: 3) == 3
    with pytest.raises(ValueError, match="its own"):
        aside(lambda: int("its own"))


# --- a guest's console


def test_a_slow_key_exchange_gets_more_time_by_the_attempt(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a guest: no byte of its server's arrives for longer than the first attempt waits."""
    server, slow = bed.serve(), 0.7
    delayed = f"ProxyCommand sh -c 'sleep {slow}; exec busybox nc 127.0.0.1 {server.port}'"
    known = f"HostKeyAlias [127.0.0.1]:{server.port}"
    bed.configure(bed.alias(server, name="lab-snd", more=f"{delayed}\n  {known}"))
    host = LabHost("snd", "lab-snd", "10.77.0.1", "", "data0", "ns", "127.0.0.1")
    lab = Lab("l", "qemu", tmp_path / "lab", {"snd": host}, bed.config)
    monkeypatch.setattr(sshd, "PORT", server.port)
    monkeypatch.setattr(guest_console, "_ATTEMPT_SECONDS", slow)
    monkeypatch.setattr(sshd, "servers", lambda *_: [1])  # there is no guest to look at
    guest_console.await_login(lab, host, find(("ssh",)), seconds=60)
