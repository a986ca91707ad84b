"""What a lab's guests run on: arguments of QEMU, CPUs, and where KVM does not boot a kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netbench.base.errors import LabError
from netbench.lab import guests, trial
from netbench.lab.accelerator import EMULATION, KVM, Accelerator, shares
from netbench.lab.command import Tools
from netbench.lab.lab import Lab, LabHost, LabKernel


@pytest.mark.parametrize(
    ("available", "guests", "expected"),
    [
        (range(8), 2, ((1, 2, 3), (4, 5, 6))),
        ((3, 5, 7), 2, ((5,), (7,))),
        (range(2), 2, ((1,), (1,))),
        (range(3), 5, ((1,), (2,), (1,), (2,), (1,))),
        ((4,), 2, ((4,), (4,))),  # there is none to leave
    ],
)
def test_the_first_cpu_is_the_controllers(
    available: range, guests: int, expected: tuple[tuple[int, ...], ...]
) -> None:
    assert shares(available, guests) == expected


def words(accelerator: Accelerator, number: int) -> str:
    """QEMU's arguments for the host of that number."""
    hosts = {name: LabHost(name, "", "", "", "", "", "") for name in ("a", "b")}
    lab = Lab("l", "qemu", Path("/f"), hosts, Path("/c"), accelerator=accelerator)
    return " ".join(guests.arguments(lab, list(hosts.values())[number]))


def test_kvm_is_asked_for_alone_and_so_is_emulation() -> None:
    alone = words(EMULATION, 0)
    assert "-accel tcg,thread=multi,tb-size=64 -cpu max -smp 1 " in alone
    assert "vhost" not in alone
    assert "kvm" not in alone
    assert "tsc=reliable random.trust_cpu=on mitigations=off" in EMULATION.append
    kvm = Accelerator(KVM, vhost=True, cpus=((1,), (2, 3)))
    one, two = words(kvm, 0), words(kvm, 1)
    assert "-accel kvm -cpu host -smp 1 " in one
    tap = "tap,id=data1,ifname=data1,script=no,downscript=no,vhost=on"
    assert f"{tap} -device virtio-net-pci,romfile=,netdev=data1," in one
    assert "mq=on" not in one
    assert "-accel kvm -cpu host -smp 2 " in two
    assert "tap,id=data2,ifname=data2,script=no,downscript=no,queues=2,vhost=on" in two
    assert "mac=52:54:00:6e:01:02,mq=on,vectors=6" in two
    assert "tcg" not in one + two
    assert "mitigations=off" not in kvm.append


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    """A fake accelerator, as KVM works on few machines: it opens, and QEMU boots nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    device = tmp_path / "kvm"
    device.touch()
    monkeypatch.setattr(trial, "DEVICE", device)
    monkeypatch.setattr(trial, "VHOST", tmp_path / "none")
    program = tmp_path / "qemu"
    program.write_text('#!/bin/sh\necho "no VMX in $PWD" >&2\nexit 1\n')
    program.chmod(0o755)
    return Tools({guests.PROGRAM: str(program)})


@pytest.fixture
def kernel(tmp_path: Path) -> LabKernel:
    (tmp_path / "root").write_bytes(b"")
    return LabKernel("6.1", "6.1.0", tmp_path / "image", tmp_path / "root")


def test_without_kvm_guests_are_emulated(
    tools: Tools, kernel: LabKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "kernel 6.1 ended: no VMX in /"
    assert trial.choose([kernel], 2, tools) == Accelerator(why=why)
    assert capsys.readouterr().err == (
        f"netbench: guests are emulated (QEMU TCG), without KVM: {why}\n"
    )
    alone = trial.choose([kernel], 1, tools)
    assert alone.cpus == (tuple(sorted(os.sched_getaffinity(0))),)
    assert f"-smp {len(alone.cpus[0])} " in " ".join(alone.machine(0))


def test_without_the_device_nothing_is_tried(
    tmp_path: Path, tools: Tools, kernel: LabKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.initrd.unlink()
    with pytest.raises(LabError, match="cannot try KVM"):  # that it is gone is no answer
        trial.choose([kernel], 2, tools)
    monkeypatch.setattr(trial, "DEVICE", tmp_path / "gone")
    why = f"{tmp_path}/gone: No such file or directory"
    assert trial.choose([kernel], 2, tools) == Accelerator(why=why)
