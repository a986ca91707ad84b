"""Labs of guests: real kernels under emulation, real logins, real kills."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from netbench import lab
from netbench.base.errors import LabRefused
from netbench.engine.worker import Worker
from netbench.lab import command, debian, sshd, state
from netbench.lab.accelerator import TCG
from netbench.lab.guest_console import await_login, console
from netbench.lab.guest_kernel import kernel_for
from netbench.lab.guests import boot
from netbench.lab.lab import Lab
from netbench.model import Host, Kernel
from netbench.run.worker_pool import open_channel
from netbench.settings.setting import fields
from tests.support.engine_pair import Pair
from tests.support.guests import FIRST, NAME, SECOND, ssh
from tests.support.local import netbench_argv, ran
from tests.support.running import wait_for

KERNELS = (FIRST, SECOND)


def ssh_try(here: Lab, host: str, *words: str) -> subprocess.CompletedProcess[str]:
    argv = ("ssh", "-F", str(here.ssh_config), here.hosts[host].ssh, *words)
    return ran(argv, timeout=30, stdin=subprocess.DEVNULL)


def boot_id(here: Lab, host: str) -> str:
    return ssh(here, host, "cat", "/proc/sys/kernel/random/boot_id")


def test_each_guest_is_a_machine_of_its_own_on_the_first_kernel(made: Lab) -> None:
    said = [ssh(made, host, "hostname; uname -r").split() for host in made.hosts]
    release = made.kernels[FIRST].release
    assert said == [["snd", release], ["rcv", release]]
    assert debian.fits(release, FIRST)
    assert debian.fits("6.1.0-44-cloud-amd64", "6.1")
    assert not debian.fits("6.12.5+deb12-cloud-amd64", "6.1"), "in whole numbers"
    assert boot_id(made, "snd") != boot_id(made, "rcv")
    assert not [d for d in made.folder.rglob("disk") if d.stat().st_mode & 0o077], "a key is in it"
    assert "1 packets received" in ssh(made, "snd", f"ping -c 1 -W 5 {made.hosts['rcv'].address}")
    block = yaml.safe_load(made.yaml())
    place = {"ssh": f"{NAME}-snd", "address": "10.77.0.1", "interface": "data0"}
    assert block["hosts"]["snd"] == {**place, "boot": {"qemu": NAME}}
    assert block["kernels"] == {word: {"release": made.kernels[word].release} for word in KERNELS}
    assert state.read(NAME) == made


def test_guests_run_on_what_the_trial_chose(made: Lab) -> None:
    chosen = made.accelerator
    assert (chosen.name == TCG) == bool(chosen.why)
    for host in made.hosts:
        assert f"ACCELERATOR='{chosen.fact}'" in ssh(made, host, "cat", "/etc/netbench.guest")
        cpu = ssh(made, host, "grep", "-m1", "model.name", "/proc/cpuinfo")
        assert ("TCG" in cpu) == (chosen.name == TCG)
        assert ssh(made, host, "nproc") == str(chosen.queues(list(made.hosts).index(host)))
    assert state.read(NAME) == made


def test_a_guest_has_an_ssh_server_and_a_shell_and_nothing_else(made: Lab) -> None:
    which = ssh_try(made, "snd", "which", "python3", "ethtool", "gcc", "perl", "apt-get")
    assert (which.returncode, which.stdout) == (1, "")
    sftp = ("sftp", "-F", str(made.ssh_config), "-b", "/dev/null", made.hosts["snd"].ssh)
    assert subprocess.run(sftp, capture_output=True, check=False, timeout=30).returncode
    modules = "tls tcp_bbr sch_netem veth nfsd"  # and as it was again, for other tests
    ssh(made, "snd", f"modprobe -a {modules} && modprobe -r {modules}")


@contextlib.contextmanager
def worker_on(here: Lab, name: str, duty: str = "mover") -> Iterator[Worker]:
    at = here.hosts[name]
    host = Host(name, at.ssh, at.address, at.interface, str(here.ssh_config))
    with contextlib.closing(open_channel(host)) as channel:
        process = channel.start_helper() if duty == "helper" else channel.start_mover()
        with contextlib.closing(Worker(process, name)) as worker:
            yield worker


def test_a_worker_switches_tso_of_the_data_link_and_back(made: Lab) -> None:
    tso = "tx-tcp-segmentation"
    with worker_on(made, "snd", "helper") as worker:
        before = worker.operate("features", "data0")[0]
        assert f"{tso}: on\n" in before
        off = worker.operate("features", "data0", f"{tso} off\n", hold=True)[1]
        assert fields(off or "")[tso] in ("off", "off [requested on]")
    with worker_on(made, "snd", "helper") as worker:
        assert worker.operate("features", "data0")[0] == before


def test_between_guests_nothing_that_is_lent_is_copied(made: Lab) -> None:
    """Over loopback all of it is: tests/engine/test_zerocopy.py and test_uring.py."""
    address = made.hosts["rcv"].address
    with worker_on(made, "snd") as sender, worker_on(made, "rcv") as receiver:
        pair = Pair(sender, receiver)
        for send, done in (("zerocopy", "completions"), ("uring_zc", "notifications")):
            assert not pair.sender.catalogue.send[send].row.why
            sent, received = pair.run(send, "read", bytes=8 << 20, address=address)
            assert received.moved("flow", "bytes") == 8 << 20
            assert sent.total(send, done) == sent.total(send, "zerocopy_sends") >= (8 << 20) / 65536
            assert sent.total(send, "copied") == 0, send


@pytest.mark.parametrize(
    "words", [(FIRST,), pytest.param((SECOND, FIRST), marks=pytest.mark.slow)], ids=str
)
def test_a_guest_is_booted_anew_and_on_the_other_kernel_and_back(
    made: Lab, words: tuple[str, ...]
) -> None:
    neighbour = boot_id(made, "snd")
    seen = {boot_id(made, "rcv")}
    ssh(made, "rcv", "echo kept > /boot/netbench/file; echo lost > /root/file; sync")
    for word in words:
        kernel = kernel_for(made, Kernel("x", release=word, append=f"word={word}"))
        boot(NAME, "rcv", kernel)
        await_login(made, made.hosts["rcv"], command.find(("ssh",)))
        assert ssh(made, "rcv", "uname", "-r") == made.kernels[word].release == kernel.release
        assert f"word={word}" in ssh(made, "rcv", "cat", "/proc/cmdline").split()
        seen.add(boot_id(made, "rcv"))
    assert len(seen) == 1 + len(words)
    assert ssh(made, "rcv", "cat", "/boot/netbench/file") == "kept"
    assert ssh_try(made, "rcv", "cat", "/root/file").returncode == 1
    assert boot_id(made, "snd") == neighbour
    assert "up" in {row["state"] for row in lab.status() if row["lab"] == NAME}


def test_the_console_shows_what_a_guest_says_last(made: Lab) -> None:
    ssh(made, "snd", r"printf 'one\r\n\033[1mtwo\033[0m\007\r\n\r\nthree\n' > /dev/console")
    wait_for(lambda: console(made, "snd", 9)[-1:] == ["three"] or "three" in console(made, "snd"))
    said = console(made, "snd")
    at = said.index("three")
    assert said[at - 2 : at + 1] == ["one", "two", "three"]
    assert len(console(made, "snd", 2)) == 2


def servers() -> dict[str, str]:
    """What `lab status` says of each guest."""
    return {row["host"]: row["server"] for row in lab.status() if row["lab"] == NAME}


def test_status_tells_a_guest_that_answers_from_one_that_does_not(made: Lab) -> None:
    assert servers() == {"snd": "answers", "rcv": "answers"}
    (qemu,) = sshd.servers(made.folder, "rcv")
    os.kill(qemu, signal.SIGSTOP)
    try:
        wait_for(lambda: servers() == {"snd": "answers", "rcv": "unresponsive"})
    finally:
        os.kill(qemu, signal.SIGCONT)
    wait_for(lambda: servers()["rcv"] == "answers")


def in_background(name: str) -> bool:
    """Whether the guest's QEMU has got there, alone: until then it may still give up."""
    said = [path.read_text().strip() for path in state.folder(name).glob("hosts/*/pid")]
    return said != [] and said == [str(pid) for pid in sshd.servers(state.folder(name))]


def _unless_gone(_: object, path: str, error: tuple[object, BaseException, object]) -> None:
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]


@pytest.mark.parametrize("how", [pytest.param("killed", marks=pytest.mark.slow), "left"])
def test_down_removes_all_that_a_dead_maker_left(how: str, made: Lab) -> None:
    name = f"{NAME}{how[0]}"
    argv = netbench_argv(["lab", "up", "qemu", "--hosts", "1", "--name", name, "--kernels", FIRST])
    with subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    ) as maker:
        try:
            wait_for(lambda: in_background(name))
            os.kill(maker.pid, signal.SIGKILL)
            maker.wait()
            there = sshd.servers(state.folder(name))
            if how == "left":
                # QEMU removes its own file of the pid where it ends meanwhile.
                shutil.rmtree(state.folder(name) / "hosts", onerror=_unless_gone)
            removed = lab.down(name)
        finally:
            maker.kill()
            lab.down(name)
    assert there
    assert f"process {there[0]} (qemu-system-x86)" in removed
    assert sshd.servers(state.folder(name)) == []
    assert state.namespaces(name) == []
    assert not state.folder(name).exists()
    assert len(sshd.servers(made.folder)) == 2


PACKAGE = "linux-image-6.9.1-cloud-amd64_6.9.1-2_amd64.deb"
APT_GET = f"""\
#!/bin/sh
case "$*" in *--print-uris*) echo "'http://deb.example/x' {PACKAGE} 8 SHA256:0"; exit ;; esac
{{}}
"""


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> command.Tools:
    """An apt that knows a kernel and cannot download it, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    known = tmp_path / "apt-cache"
    known.write_text(
        "#!/bin/sh\ncase $1 in pkgnames) echo linux-image-6.9.1-cloud-amd64 ;; *) exit 100 ;; esac\n"
    )
    away = tmp_path / "apt-get"
    away.write_text(APT_GET.format("echo 'E: Could not resolve deb.example' >&2; exit 100"))
    for program in (known, away):
        program.chmod(0o755)
    return command.Tools({"apt-cache": str(known), "apt-get": str(away)})


def test_a_package_is_downloaded_once_and_without_a_network_one_that_was_kept_is_taken(
    offline: command.Tools,
) -> None:
    with pytest.raises(LabRefused) as error:
        debian.kernel("6.9", offline)
    assert str(error.value) == (
        "cannot download linux-image-6.9.1-cloud-amd64=6.9.1-2: Could not resolve deb.example; "
        "if the network is there, run `apt-get update` and try again"
    )
    names = [f"linux-image-{release}-cloud-amd64_1_amd64.deb" for release in ("6.9.0", "6.8.5")]
    for name in names:
        (debian.cache() / name).write_text(name)
    assert debian.kernel("6.9", offline).name == names[0]
    apt = Path(offline.paths["apt-get"])
    apt.write_text(APT_GET.format(f"printf 'a kernel' > {PACKAGE}"))
    package = debian.kernel("6.9", offline)
    assert package.read_text() == "a kernel"
    apt.write_text(APT_GET.format("exit 100"))
    assert debian.kernel("6.9", offline) == package


def test_without_lists_of_apt_the_remedy_is_named(offline: command.Tools) -> None:
    Path(offline.paths["apt-cache"]).write_text("#!/bin/sh\nexit 100\n")
    said = "apt has no linux-image-cloud-amd64, .*; run `apt-get update`, or use a kernel"
    with pytest.raises(LabRefused, match=said):
        debian.newest(offline)


def test_a_cache_that_others_may_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    debian.cache().chmod(0o777)
    with pytest.raises(LabRefused, match=r"others may write .*; or set XDG_CACHE_HOME"):
        debian.cache()


def one(release: str, name: str = FIRST) -> Kernel:
    return Kernel(name, release=release)


def test_what_guests_do_not_have_is_said(made: Lab) -> None:
    with pytest.raises(LabRefused, match=r"expected each kernel once, got 6\.12 again"):
        lab.up("qemu", 2, name=NAME, kernels=[one(FIRST), one(SECOND)])
    with pytest.raises(LabRefused, match=r"3\.2: Debian's cloud kernels on this machine are 6\.1"):
        kernel_for(made, one("3.2", "old"))
    with pytest.raises(LabRefused, match="lab none is not up"):
        boot("none", "snd", made.kernels[FIRST])
    with pytest.raises(LabRefused, match="has no host x, only snd, rcv"):
        boot(NAME, "x", made.kernels[FIRST])
