"""Guests of a lab: QEMU for each, in the switch's namespace, and booting one on another kernel."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from netbench.base.errors import LabError, LabRefused
from netbench.base.units import parse_size
from netbench.lab import command, sshd, state
from netbench.lab.command import Tools
from netbench.lab.lab import Lab, LabHost, LabKernel
from netbench.lab.userland import identity, mac

PROGRAM = "qemu-system-x86_64"
_DISK_SPARE = parse_size("64M")
_CPU_THREAD = re.compile(r"CPU (\d+)/")  # as `debug-threads=on` calls it
_DEADLINE = 60.0
_POLL = 0.01


def make_guest(lab: Lab, host: LabHost, first: LabKernel, disk: bool, tools: Tools) -> None:
    """Start a new guest, with a disk if asked for. Errors: LabError."""
    if disk:
        _make_disk(lab, host, tools)
    _start(lab, host, first, tools)


def find(name: str) -> Lab:
    """A lab of guests that is up. Errors: LabRefused."""
    lab = state.read(name)
    if lab is None:
        raise LabRefused(f"lab {name} is not up; see `lab status`")
    if lab.kind != "qemu":
        raise LabRefused(
            f"lab {name} is of kind {lab.kind}, whose hosts cannot be booted; use a lab of kind"
            " qemu"
        )
    return lab


def boot(lab_name: str, host: str, kernel: LabKernel) -> None:
    """Stop a guest and start it on a kernel; returns when it is started, not when it answers.
    Errors: LabRefused, LabError.
    """
    with state.locked() as lock:
        lab = find(lab_name)
        tools = command.find(("ip", PROGRAM), lock)
        here = lab.host(host)
        stop(lab, here)
        _start(lab, here, kernel, tools)


def stop(lab: Lab, host: LabHost) -> None:
    """Kill a guest's QEMU and wait until it is gone. Errors: LabError."""
    deadline = time.monotonic() + _DEADLINE
    while left := sshd.servers(lab.folder, host.name):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise LabError(f"{host.name}: cannot stop its QEMU {left}; run `lab down`")
        time.sleep(_POLL)


def _start(lab: Lab, host: LabHost, kernel: LabKernel, tools: Tools) -> None:
    """Start a guest. QEMU keeps the initramfs mapped: its file is removed. Errors: LabError."""
    here = sshd.place(lab.folder, host.name)
    root = here / "root.cpio"
    try:
        root.touch(0o600)
        root.write_bytes(_root(lab, host, kernel, (here / "disk").exists()))
        words = ["-kernel", str(kernel.image), "-initrd", str(root)]
        words += ["-append", f"{lab.accelerator.append} {kernel.append}".strip()]
        start_qemu(lab, host, words, tools._replace(inherited=()))  # not the labs' lock
    except OSError as error:
        raise LabError(
            f"{host.name}: cannot make its initramfs in {here}: {error}; free some space there, or"
            " run `lab down`, then `lab up`"
        ) from error
    finally:
        root.unlink(missing_ok=True)
    (here / "kernel").write_text(f"{kernel.name} {kernel.release}\n")


def start_qemu(lab: Lab, host: LabHost, words: Sequence[str], tools: Tools) -> None:
    """Start QEMU with these arguments beside those of the host; returns when the guest runs, CPUs
    of its own pinned. It keeps what `tools` inherit. Errors: LabError.
    """
    inside = ("ip", "netns", "exec", host.namespace)
    done = tools.attempt((*inside, tools.paths[PROGRAM], *arguments(lab, host), *words))
    if done.returncode:
        raise LabError(
            f"{host.name}: QEMU does not start (exit {done.returncode}):"
            f" {' '.join(done.stderr.split())}"
        )
    if cpus := lab.accelerator.of(lab.number(host) - 1):
        _pin(host.name, sshd.place(lab.folder, host.name) / "pid", cpus)


def arguments(lab: Lab, host: LabHost) -> Iterator[str]:
    """QEMU's arguments for a guest, but for what it boots: its process is known by its folder."""
    here, number, accelerator = sshd.place(lab.folder, host.name), lab.number(host), lab.accelerator
    yield from accelerator.machine(number - 1)
    yield from ("-name", f"{state.namespace_name(lab.name, host.name)},debug-threads=on")
    yield from ("-daemonize", "-pidfile", str(here / "pid"), "-serial", f"file:{here / 'console'}")
    yield from _link(f"mgmt{number}", mac(lab, host, 0))
    queues = accelerator.queues(number - 1)
    yield from _link(f"data{number}", mac(lab, host, 1), queues, accelerator.vhost)
    if (here / "disk").exists():
        yield from ("-drive", f"if=virtio,format=raw,file={here / 'disk'}")


def _link(tap: str, address: str, queues: int = 1, vhost: bool = False) -> tuple[str, ...]:
    """A virtio NIC at a tap device. Each pair of queues has two vectors, and configuration and
    control one each.
    """
    several = queues > 1
    words = f"tap,id={tap},ifname={tap},script=no,downscript=no"
    words += (f",queues={queues}" if several else "") + (",vhost=on" if vhost else "")
    device = f"virtio-net-pci,romfile=,netdev={tap},mac={address}"
    device += f",mq=on,vectors={2 * queues + 2}" if several else ""
    return "-netdev", words, "-device", device


def _pin(name: str, pid: Path, cpus: Sequence[int]) -> None:
    """Run each of a guest's CPUs on one of `cpus`, and the emulator's other threads on any of them
    (sched_setaffinity(2)): threads are named after what they run. Errors: LabError.
    """
    pinned = 0
    try:
        for task in Path(f"/proc/{pid.read_text().strip()}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                number = _CPU_THREAD.match((task / "comm").read_text())
                own = {cpus[int(number[1])]} if number else cpus
                os.sched_setaffinity(int(task.name), own)
                pinned += bool(number)
    except OSError as error:
        raise LabError(f"{name}: cannot pin its CPUs: {error}") from error
    if pinned < len(cpus):
        raise LabError(f"{name}: QEMU names {pinned} threads of {len(cpus)} CPUs")


def _root(lab: Lab, host: LabHost, kernel: LabKernel, disk: bool) -> bytes:
    return kernel.initrd.read_bytes() + identity(lab, host, disk)


def _make_disk(lab: Lab, host: LabHost, tools: Tools) -> None:
    """An ext4 image with every kernel of the lab as an installed one."""
    here = sshd.place(lab.folder, host.name)
    content = here / "boot"
    content.mkdir(mode=0o700)  # its host key is in there
    (content / "netbench").mkdir()
    try:
        for kernel in lab.kernels.values():
            shutil.copyfile(kernel.image, content / f"vmlinuz-{kernel.release}")
            (content / f"initrd.img-{kernel.release}").write_bytes(
                _root(lab, host, kernel, disk=True)
            )
        size = sum(file.stat().st_size for file in content.iterdir()) * 2 + _DISK_SPARE
        image = here / "disk"
        image.touch(0o600)
        tools.run(
            ("mke2fs", "-q", "-t", "ext4", "-d", str(content), str(image), f"{size // 1024}k")
        )
    except OSError as error:
        raise LabError(
            f"{host.name}: cannot make its disk in {here}: {error}; free some space there"
        ) from error
    finally:
        shutil.rmtree(content)
