"""Guests under KVM: a real trial; where it fails, QEMU's emulator in place of KVM."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from netbench import lab
from netbench.lab import command, guests, sshd, trial
from netbench.lab.accelerator import KVM, Accelerator
from netbench.lab.guest_console import await_login
from netbench.lab.guests import boot
from netbench.lab.lab import Lab
from netbench.model import Kernel
from tests.support.guests import FIRST, NAME, ssh

FAKE = """\
#!/bin/sh
[ "$1" != --version ] || exec {qemu} --version
echo "$@" >> {log}
for word; do
    shift
    case $word in
        kvm) word=tcg,thread=multi ;;
        host) word=max ;;
        tap,*) word=${{word%,vhost=on}} ;;
    esac
    set -- "$@" "$word"
done
exec {qemu} "$@"
"""
needs_kvm = pytest.mark.skipif(not os.access(trial.DEVICE, os.R_OK | os.W_OK), reason="no /dev/kvm")


@pytest.mark.slow
@needs_kvm
def test_a_trial_ends_in_its_time_and_leaves_nothing(made: Lab) -> None:
    tools = command.find((guests.PROGRAM, *trial.NEEDS))
    mark = "netbench.trial=1"
    kernel = made.kernels[FIRST]._replace(append=mark)
    started = time.monotonic()
    why = trial.try_boot(kernel, Accelerator(KVM, cpus=((0,),)), tools)
    took = time.monotonic() - started
    assert subprocess.call(["pgrep", "-f", mark]) == 1, "it is ended"
    assert took < trial.SECONDS * 6  # a machine that others use kills late; unbounded, it hangs
    if "did not reach its user space within 6 s" in why:
        assert took >= trial.SECONDS
    else:
        assert why == "" or " ended: " in why
        assert took < trial.SECONDS


@pytest.mark.slow
def test_the_path_of_kvm_with_a_fake_accelerator(
    made: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All but KVM and vhost-net is real: the trial's boot, queues of the link, affinities."""
    own = sorted(os.sched_getaffinity(0))[:2]
    if len(own) < 2:
        pytest.skip("a guest with several queues needs two CPUs")
    log, fake = tmp_path / "log", tmp_path / guests.PROGRAM
    fake.write_text(FAKE.format(qemu=shutil.which(guests.PROGRAM), log=log))
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(trial, "DEVICE", Path("/dev/null"))
    monkeypatch.setattr(trial, "VHOST", Path("/dev/null"))
    monkeypatch.setattr(trial, "SECONDS", 60.0)  # an emulator is slower than what it stands for
    monkeypatch.setattr(trial, "shares", lambda cpus, guests: (tuple(own),) * guests)
    name = f"{NAME}k"
    here = lab.up("qemu", ["a", "b"], name=name, kernels=[Kernel(FIRST, release=FIRST)])
    try:
        assert here.accelerator == Accelerator(KVM, vhost=True, cpus=(tuple(own),) * 2)
        assert capsys.readouterr().err == (
            "netbench: guests run under KVM, vhost-net, 2 CPUs each: their costs are those of a"
            " virtual machine\n"
        )
        first, *started = log.read_text().splitlines()
        assert "-accel kvm -cpu host -smp 2" in first
        assert "-name" not in first
        assert len(started) == 2
        assert all("vhost=on" in line and "mq=on,vectors=6" in line for line in started)
        boot(name, "b", here.kernels[FIRST])
        await_login(here, here.hosts["b"], command.find(("ssh",)))
        for host in here.hosts:
            assert ssh(here, host, "nproc") == "2"
            queues = ssh(here, host, "ls", "/sys/class/net/data0/queues").split()
            assert queues == ["rx-0", "rx-1", "tx-0", "tx-1"]
            assert "'KVM, vhost-net'" in ssh(here, host, "cat", "/etc/netbench.guest")
        assert "1 packets received" in ssh(
            here, "a", "ping", "-c", "1", "-W", "5", here.hosts["b"].address
        )
        for pid in sshd.servers(here.folder):
            tasks = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
            allowed = [os.sched_getaffinity(task) for task in tasks]
            assert all(cpus <= set(own) for cpus in allowed)
            assert {own[0]} in allowed
            assert {own[1]} in allowed
    finally:
        lab.down(name)
