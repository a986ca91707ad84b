"""Labs of network namespaces: real links, SSH servers and kills; nothing of them is left."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from netbench import lab
from netbench.__main__ import main as cli
from netbench.base.errors import LabError, LabRefused
from netbench.lab import command, lifecycle, netns, sshd, state, teardown
from netbench.lab.lab import Lab, LabSpec
from tests.support.labs import FOLDERS, ON_LABS, made_lab
from tests.support.local import call, out
from tests.support.running import wait_for

pytestmark = ON_LABS
NAME = f"t{os.getpid()}"

Report = dict[str, Any]


def mine(name: str) -> bool:
    """Whether a name of the kernel is no other lab's (other tests run beside this one)."""
    return not name.startswith("nb-") or name.startswith(f"nb-{NAME}")


def machine() -> Report:
    """What a lab could leave on this machine, other labs apart."""
    links = json.loads(out("ip", "-json", "-details", "address", "show"))
    volatile = ("preferred_life_time", "valid_life_time")
    for address in (address for link in links for address in link["addr_info"]):
        for key in volatile:
            address.pop(key, None)
    routes = json.loads(out("ip", "-json", "route", "show", "table", "all"))
    servers = [
        entry.parent
        for entry in Path("/proc").glob("[0-9]*/comm")
        if f"/{NAME}/" in command_line(entry.parent)
    ]
    return {
        "links": [link for link in links if mine(link["ifname"])],
        "routes": [route for route in routes if mine(route.get("dev", ""))],
        "namespaces": sorted(space.name for space in state.NAMESPACES.glob(f"nb-{NAME}*")),
        "servers": servers,
        "mounts": [
            line
            for line in Path("/proc/self/mounts").read_text().splitlines()
            if f"nb-{NAME}" in line or "pam.d" in line
        ],
        "forwarding": {
            str(file): file.read_text()
            for file in Path("/proc/sys/net").glob("ipv?/conf/*/forwarding")
            if mine(file.parent.name)
        },
        "folder": state.folder(NAME).exists(),
    }


def command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine is after the test as it was before. Labs of other tests are out of sight."""
    before, every = machine(), state.names
    monkeypatch.setattr(state, "names", lambda: [n for n in every() if n.startswith(NAME)])
    try:
        yield
        assert machine() == before
    finally:
        lab.down(NAME)


@pytest.fixture(scope="module")
def pair() -> Iterator[Lab]:
    """Two hosts."""
    with made_lab(f"{NAME}p") as made:
        yield made


def ssh(here: Lab, host: str, *words: str, user: str = "") -> str:
    login = ("-l", user) if user else ()
    return out("ssh", "-n", "-F", str(here.ssh_config), *login, here.hosts[host].ssh, *words)


LISTEN = """
import socket, sys, time
s = socket.create_server((sys.argv[1], 0), family=socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET)
print(s.getsockname()[1], flush=True)
c, got, start = s.accept()[0], 0, time.monotonic()
while n := len(c.recv(1 << 20)):
    got += n
print(got, time.monotonic() - start)
"""
SEND = "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2]))); s.sendall(bytes(int(sys.argv[3])))"


def transfer(sender: str, receiver: str, address: str, size: int) -> tuple[int, float]:
    """Send bytes from one namespace to another; what arrived, in how many seconds."""
    inside = ("ip", "netns", "exec")
    with subprocess.Popen(
        (*inside, receiver, sys.executable, "-c", LISTEN, address),
        stdout=subprocess.PIPE,
        text=True,
    ) as listener:
        assert listener.stdout
        port = listener.stdout.readline().strip()
        out(*inside, sender, sys.executable, "-c", SEND, address, port, str(size))
        got, seconds = listener.stdout.readline().split()
    return int(got), float(seconds)


def sent(here: Lab, host: str) -> dict[str, int]:
    """Bytes sent by a host, an interface."""
    links = links_of(here.hosts[host].namespace, "-statistics")
    return {link["ifname"]: link["stats64"]["tx"]["bytes"] for link in links}


def links_of(space: str, *more: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(out("ip", "-n", space, "-json", *more, "link"))
    return found


def test_every_host_is_reached_over_ssh_and_is_a_machine_of_its_own(pair: Lab) -> None:
    for host in ("snd", "rcv"):
        interfaces = ssh(pair, host, "id", "-un", ";", "ls", "/sys/class/net").split()
        assert interfaces[0] == "root"
        found = links_of(pair.hosts[host].namespace)
        assert set(interfaces[1:]) == {link["ifname"] for link in found}
        assert {"lo", "data0", "mgmt0"} <= set(interfaces[1:])
    assert len({ssh(pair, host, "readlink", "/proc/self/ns/net") for host in pair.hosts}) == 2
    # bash that sshd starts reads ~/.bashrc unless SHLVL says that another shell is above it
    assert int(ssh(pair, "snd", "bash", "-c", "'echo $SHLVL'")) >= 2


def test_data_goes_over_the_data_link_alone(pair: Lab, tmp_path: Path) -> None:
    snd, rcv = pair.hosts["snd"], pair.hosts["rcv"]
    before = sent(pair, "snd")
    assert transfer(snd.namespace, rcv.namespace, rcv.address, 4 << 20)[0] == 4 << 20
    after = sent(pair, "snd")
    assert after["data0"] - before["data0"] >= 4 << 20
    assert after["mgmt0"] - before["mgmt0"] < 1 << 20
    if rcv.address6:
        assert transfer(snd.namespace, rcv.namespace, rcv.address6, 1 << 20)[0] == 1 << 20
    (file := tmp_path / "c.yaml").write_text(f"netbench: 1\nname: c\n{pair.yaml()}")
    told = call("check", file, "--set", "hosts.rcv.address=127.0.0.1").stdout
    assert "error: rcv: 127.0.0.1 as data address reaches no other" in " ".join(told.split())


def test_links_have_their_addresses_and_lead_no_further(pair: Lab) -> None:
    for host in pair.hosts.values():
        words = ("-json", "address", "show", "dev", host.interface)
        (link,) = json.loads(out("ip", "-n", host.namespace, *words))
        known = [address for address in (host.address, host.address6) if address]
        assert [address["local"] for address in link["addr_info"]] == known
        routes = json.loads(out("ip", "-n", host.namespace, "-json", "route"))
        management = str(IPv4Network(f"{host.management}/24", strict=False))
        assert {route["dst"] for route in routes} == {"10.77.0.0/24", management}
        assert ssh(pair, host.name, "cat", "/proc/sys/net/ipv4/ip_forward").strip() == "0"
        (way,) = json.loads(out("ip", "-json", "route", "get", host.management))
        assert way["dev"] == f"nb-{pair.name}"
    snd = pair.hosts["snd"]
    listening = out("ip", "netns", "exec", snd.namespace, "ss", "-Hltn").splitlines()
    assert [line.split()[3] for line in listening] == [f"{snd.management}:22"]
    assert yaml.safe_load(pair.yaml()) == {
        "hosts": {
            name: {"ssh": f"{pair.name}-{name}", "address": host.address, "interface": "data0"}
            for name, host in pair.hosts.items()
        },
        "ssh_config": f"/run/netbench/lab/{pair.name}/ssh_config",
    }
    off = Path("/proc/sys/net/ipv6/conf", f"nb-{pair.name}", "disable_ipv6")
    assert not off.exists() or off.read_text() == "1\n", "no host becomes this machine's router"


def test_only_the_labs_key_and_known_hosts_are_used(pair: Lab, tmp_path: Path) -> None:
    out("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "client_key"))
    keys = [line.split(" ", 1) for line in (pair.folder / "known_hosts").read_text().splitlines()]
    assert keys[0][1] != keys[1][1]
    (tmp_path / "known_hosts").write_text(f"{keys[0][0]} {keys[1][1]}\n")
    for file, said in (
        ("client_key", "Permission denied (publickey)"),
        ("known_hosts", "REMOTE HOST IDENTIFICATION HAS CHANGED"),
    ):
        config = pair.ssh_config.read_text()
        changed = config.replace(str(pair.folder / file), str(tmp_path / file))
        (tmp_path / "config").write_text(changed)
        assert changed != config
        argv = ("ssh", "-F", tmp_path / "config", "-oBatchMode=yes", pair.hosts["snd"].ssh, "true")
        assert said in subprocess.run(argv, capture_output=True, text=True, check=False).stderr
    secrets = [pair.folder / "client_key", *pair.folder.glob("hosts/*/host_key")]
    assert [file.stat().st_mode & 0o077 for file in secrets] == [0, 0, 0]


def test_any_account_with_a_shell_logs_in(pair: Lab) -> None:
    """One that has no password, so that it counts as locked, and no home."""
    if not shutil.which("useradd", path=FOLDERS):
        pytest.skip("needs useradd (Debian package passwd)")
    name = f"nb{NAME}"
    out("useradd", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/bin/sh", name)
    try:
        assert ssh(pair, "rcv", "id", "-un", user=name).strip() == name
    finally:
        gone = partial(subprocess.run, ("userdel", name), capture_output=True, check=False)
        wait_for(lambda: gone().returncode == 0)  # once logged out


def named(name: str) -> list[dict[str, str]]:
    return [row for row in lab.status() if row["lab"] == name]


def state_of(name: str) -> str:
    (known,) = {row["state"] for row in named(name)}
    return known


def test_status_tells_what_is_up_and_what_broke(
    untouched: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "ANSWER_SECONDS", 1.0)
    assert named(NAME) == []
    here = lab.up("netns", 2, name=NAME)
    head = {"lab": NAME, "kind": "netns", "state": "up", "folder": str(here.folder)}
    assert named(NAME) == [
        head
        | {"host": host.name, "address": host.address, "interface": "data0", "server": "answers"}
        for host in here.hosts.values()
    ]
    assert state.namespaces(NAME) == [f"nb-{NAME}-{name}" for name in ("h1", "h2", "switch")]
    (server,) = sshd.servers(here.folder, "h2")
    os.kill(server, signal.SIGSTOP)
    wait_for(lambda: named(NAME)[1]["server"] == "unresponsive")
    assert state_of(NAME) == "unresponsive"
    os.kill(server, signal.SIGKILL)
    wait_for(lambda: state_of(NAME) == "broken")
    assert [row["server"] for row in named(NAME)] == ["answers", "gone"]
    lab.down(NAME)
    assert named(NAME) == []


def test_down_without_a_name_asks_which_and_says_what_it_removed(
    untouched: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lab with a name may be another user's; those of campaigns that run stay."""
    own = lifecycle.own_name()
    for name in (NAME, own):
        lab.up("netns", ["a"], name=name)
    there = [NAME, own]
    monkeypatch.setattr(state, "names", lambda: [n for n in there if state.folder(n).exists()])
    try:
        assert cli(["lab", "down"]) == 2
        said = capsys.readouterr().err
        assert f"there are {NAME}, perhaps of other users" in said
        assert f"`lab down --name {NAME}`, or all of them by `lab down --all`" in said
        assert state.folder(NAME).exists()
        assert cli(["lab", "down", "--all", "--name", NAME]) == 2
        assert cli(["lab", "down", "--all"]) == 0
        gone = [line.removeprefix("removed ") for line in capsys.readouterr().out.splitlines()]
        assert [line for line in gone if not line.startswith("process ")] == [
            f"interface nb-{NAME}",
            f"namespace nb-{NAME}-a",
            f"namespace nb-{NAME}-switch",
            f"folder /run/netbench/lab/{NAME}",
        ]
        assert any(line.endswith("(sshd)") for line in gone)
        assert lab.down(NAME) == []
        assert state.read(own) is not None
    finally:
        assert lab.down(own)


def test_a_rate_holds_the_data_link_and_leaves_the_hosts_qdisc_alone(untouched: None) -> None:
    """Of all hosts that meet at the switch."""
    a, b, c = lab.up("netns", 3, name=NAME, rate=80_000_000).hosts.values()
    for sender, receiver in ((a, c), (c, b)):
        got, seconds = transfer(sender.namespace, receiver.namespace, receiver.address, 4 << 20)
        assert got * 8 / seconds < 80_000_000 * 1.2
    assert {link["ifname"]: link["qdisc"] for link in links_of(a.namespace)}["data0"] == "noqueue"
    lab.down(NAME)


def has_netem() -> bool:
    space = f"nb-{NAME}-try"
    out("ip", "netns", "add", space)
    try:
        argv = ("tc", "-n", space, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0
    finally:
        out("ip", "netns", "delete", space)


def test_a_delay_is_real_or_refused(untouched: None) -> None:
    asked: dict[str, Any] = {"name": NAME, "rate": 10**9, "delay": 5_000_000}
    words = netns.shape(LabSpec("netns", NAME, ("a", "b"), 10**9, 5_000_000))
    assert words.startswith("netem delay 5000000ns rate 1000000000bit ")
    if has_netem():
        lab.up("netns", ["a", "b"], **asked)
        qdiscs = json.loads(out("tc", "-json", "-n", f"nb-{NAME}-switch", "qdisc", "show"))
        kinds = {q["dev"]: q["kind"] for q in qdiscs if q["kind"] != "noqueue"}
        assert kinds == {"data1": "netem", "data2": "netem"}
        lab.down(NAME)
        return
    with pytest.raises(LabRefused) as refusal:
        lab.up("netns", ["a", "b"], **asked)
    assert str(refusal.value).startswith("rate and delay: this kernel has no netem qdisc (tc: ")
    assert str(refusal.value).endswith("; leave them out, or load sch_netem")


def begun(function: Callable[[], object]) -> tuple[int, int]:
    """Run a function in a child of this process; its id, and a pipe that gets what it raises."""
    said, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            function()
        except BaseException as error:
            os.write(into, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(into)
    return child, said


def ended(child: int, pipe: int) -> tuple[int, str]:
    """The wait status of such a child, and what it raised."""
    with open(pipe) as said:
        text = said.read()
    return os.waitpid(child, 0)[1], text


def forked(function: Callable[[], object]) -> tuple[int, str]:
    """Both at once."""
    return ended(*begun(function))


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_a_kill_before_any_of_its_commands_leaves_nothing_after_down(
    untouched: None, step: int
) -> None:
    before = machine()
    ends = []
    for n in range(1, 100, step):
        status, said = until(n, partial(lab.up, "netns", 2, name=NAME))
        assert said == ""
        ends.append(status)
        if status == 0:
            break
        assert state_of(NAME) == "unfinished"
        incomplete = "is incomplete, because its `lab up` did not finish; run `lab down`"
        with pytest.raises(LabRefused, match=incomplete):
            lab.up("netns", 2, name=NAME)
        assert lab.down(NAME) != []
        assert before == machine()
    assert len(ends) > 10 // step
    assert set(ends[:-1]) == {signal.SIGKILL}
    lab.down(NAME)


def until(n: int, function: Callable[[], object]) -> tuple[int, str]:
    """Do this in a child that dies by SIGKILL instead of running the n-th command."""
    return forked(lambda: (die_at(n), function()))


def die_at(n: int) -> None:
    left = iter(range(n - 1))
    attempt = command.Tools.attempt

    def counted(self: command.Tools, *arguments: Any) -> subprocess.CompletedProcess[str]:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return attempt(self, *arguments)

    command.Tools.attempt = counted  # type: ignore[assignment,method-assign]


def test_a_killed_down_can_be_repeated(untouched: None) -> None:
    lab.up("netns", 2, name=NAME)
    assert [until(n, partial(lab.down, NAME))[0] for n in (1, 2, 3)] == [signal.SIGKILL] * 3
    assert state_of(NAME) == "broken"
    assert f"folder /run/netbench/lab/{NAME}" in lab.down(NAME)


def test_labs_that_come_up_at_once_do_not_meet(untouched: None) -> None:
    """Four processes, two names: each name is had once, and both labs work."""
    names = [NAME, f"{NAME}y"]
    try:
        children = [begun(partial(lab.up, "netns", 2, name=name)) for name in names * 2]
        said = [ended(*child)[1] for child in children]
        assert sorted(text.split(":")[0] for text in said) == ["", "", "LabRefused", "LabRefused"]
        labs = [one for name in names if (one := state.read(name))]
        assert len({one.hosts["h1"].management for one in labs}) == 2
        assert [ssh(one, "h2", "echo", one.name) for one in labs] == [f"{name}\n" for name in names]
    finally:
        lab.down(names[1])
    lab.down(NAME)


def test_down_waits_for_the_children_of_a_killed_up(
    untouched: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "ip"
    real = shutil.which("ip", path=FOLDERS)
    slow.write_text(
        f'#!/bin/sh\n[ "$1" = -batch ] || exec {real} "$@"\ncat >{tmp_path}/orders\n'
        f'touch {tmp_path}/begun\nsleep 0.5\n{real} "$@" <{tmp_path}/orders\ntouch {tmp_path}/ended\n'
    )
    slow.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        child, said = begun(partial(lab.up, "netns", 2, name=NAME))
    wait_for((tmp_path / "begun").exists)
    os.kill(child, signal.SIGKILL)
    assert ended(child, said) == (signal.SIGKILL, "")
    gone = lab.down(NAME)
    wait_for((tmp_path / "ended").exists)
    assert [line for line in gone if line.startswith("namespace")] == [
        f"namespace nb-{NAME}-{n}" for n in ("h1", "h2", "switch")
    ]


@pytest.mark.parametrize("account", [0, 65534])
def test_who_calls_itself_a_server_of_a_lab_is_none(untouched: None, account: int) -> None:
    """By a name that root's `sleep` has, or a copy of it that is another account's."""
    with TemporaryDirectory() as place:
        program = Path(place) / "sshd"
        Path(place).chmod(0o755)
        (shutil.copy if account else os.symlink)(shutil.which("sleep") or "", program)
        words = [f"{state.folder(NAME)}/hosts/h1/", "60"]
        with subprocess.Popen(words, executable=program, user=account) as process:
            wait_for(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sshd\n")
            found = sshd.servers(state.folder(NAME))
            process.kill()
    assert found == []


def test_what_fails_on_the_way_up_is_taken_away_and_told(
    untouched: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does not start, and an interrupt."""

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    broken = "NoSuchOption {address} {place} {folder} {pam}\n"
    with monkeypatch.context() as patch:
        patch.setattr(sshd, "_SERVER", broken)
        said = r"^h1: sshd did not start: .*Bad configuration option: NoSuchOption"
        with pytest.raises(LabError, match=said):
            lab.up("netns", 1, name=NAME)
    monkeypatch.setattr(sshd, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lab.up("netns", 1, name=NAME)


def test_an_interface_of_someone_else_stays(untouched: None) -> None:
    out("ip", "link", "add", f"nb-{NAME}", "type", "veth", "peer", "name", f"nb-{NAME}z")
    try:
        with pytest.raises(LabError, match=rf"File exists \(in `link add nb-{NAME} type veth "):
            lab.up("netns", 2, name=NAME)
        assert lab.down(NAME) == []
    finally:
        out("ip", "link", "delete", f"nb-{NAME}")


def test_programs_on_a_host_may_put_things_back_before_they_are_killed(
    untouched: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that stay for longer than they are given are killed."""
    here = lab.up("netns", ["a"], name=NAME)
    script, pipe = f"echo on; cat; sleep 0.2; touch {tmp_path}/back", subprocess.PIPE
    argv = ("ssh", "-q", "-F", here.ssh_config, here.hosts["a"].ssh, script)
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe) as session:
        assert session.stdout
        assert session.stdout.readline() == b"on\n"
        lab.down(NAME)
        assert (tmp_path / "back").exists()
    monkeypatch.setattr(teardown, "_GRACE", 0.05)
    here = lab.up("netns", ["a"], name=NAME)
    sleeping = ("ip", "netns", "exec", here.hosts["a"].namespace, "sleep", "60")
    with subprocess.Popen(sleeping) as stubborn:
        wait_for(lambda: "sleep" in command_line(Path(f"/proc/{stubborn.pid}")).split("\0")[:1])
        assert f"process {stubborn.pid} (sleep)" in lab.down(NAME)
        assert stubborn.wait(5) == -signal.SIGKILL


def as_nobody(function: Callable[[], object]) -> str:
    """What a function raises where a user without root calls it."""

    def change() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        function()

    return forked(change)[1]


@pytest.mark.parametrize("umask", [0o077, 0])
def test_root_makes_and_removes_labs_and_anybody_looks_at_them(untouched: None, umask: int) -> None:
    """And writes nothing of them, whatever root's umask is."""

    def look() -> None:
        raise LookupError(state_of(NAME))

    assert as_nobody(lambda: lab.up("netns", 2, name=NAME)) == (
        "LabRefused: making a lab needs root, and this is user 65534; run it as root, for example with sudo"
    )
    assert as_nobody(lambda: lab.down(NAME)).startswith("LabRefused: removing a lab needs root")
    before = os.umask(umask)
    try:
        made = lab.up("netns", 2, name=NAME).folder
        assert not [each for each in made.rglob("*") if each.lstat().st_mode & 0o22]
        assert as_nobody(look) == "LookupError: up"
        lab.down(NAME)
    finally:
        os.umask(before)


@pytest.mark.parametrize("lost", ["folder", "name"])
def test_what_was_lost_of_a_lab_hides_nothing_else_of_it(untouched: None, lost: str) -> None:
    here = lab.up("netns", ["a"], name=NAME)
    if lost == "folder":
        shutil.rmtree(here.folder)
    else:
        out("ip", "netns", "delete", here.hosts["a"].namespace)
    assert state_of(NAME) == ("unfinished" if lost == "folder" else "broken")
    removed = lab.down(NAME)
    assert any("(sshd" in line for line in removed)
    assert f"namespace nb-{NAME}-switch" in removed


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"kind": "xen"}, "expected a kind of lab (netns, qemu), got 'xen'"),
    ({"name": "../../etc"}, "digits and underscores, got '../../etc'"),
    ({"name": "a\n"}, "digits and underscores, got 'a\\n'"),
    ({"hosts": []}, "expected 1 to 250 hosts in a lab, got 0"),
    ({"hosts": 251}, "expected 1 to 250 hosts in a lab, got 251"),
    ({"hosts": ["a", "b", "a"]}, "expected each host once, got a again"),
    ({"hosts": "ab"}, "expected a list of hosts or their number, got 'ab'"),
    ({"rate": 0}, "expected a rate above 0, got 0"),
    ({"delay": -1}, "expected a delay above 0, got -1"),
    *(
        ({"hosts": ["ok", name]}, f"not switch, got {name!r}")
        for name in ("switch", "a\nb", "$(a)", "", "../a", "a" * 64)
    ),
]


def test_wrong_requests_are_refused(untouched: None) -> None:
    for wrong, said in REFUSED:
        asked: dict[str, Any] = {"kind": "netns", "hosts": 2, "name": NAME} | wrong
        with pytest.raises(LabRefused, match=f"{re.escape(said)}$") as refusal:
            lab.up(asked.pop("kind"), asked.pop("hosts"), **asked)
        assert refusal.value.exit_code == 2


@pytest.mark.parametrize(
    ("used", "chosen"),
    [
        (("0.0.0.0/1", "128.0.0.0/1"), "198.18.0.0/24"),
        (("198.18.0.0/24", "198.18.1.77/32"), "198.18.2.0/24"),
        (("198.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10"), "172.30.0.0/24"),
    ],
)
def test_management_takes_a_network_that_nobody_uses(used: tuple[str, ...], chosen: str) -> None:
    networks = [IPv4Network(word) for word in used]
    assert str(netns.management_network(networks)) == chosen
    every = [*networks, *map(IPv4Network, ("198.18.0.0/15", "10.0.0.0/8", "100.64.0.0/10"))]
    with pytest.raises(LabError, match="no /24 is free for the management link"):
        netns.management_network([*every, IPv4Network("172.16.0.0/12")])
