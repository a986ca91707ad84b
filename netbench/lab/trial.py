"""Whether KVM runs a lab's kernels: each is booted in it, for 10 s at most.

That /dev/kvm opens says little: on a machine that is itself a guest, a stock kernel may hang before
its first line. That KVM works is tried at each start of a lab, which takes a second. That a kernel
did not boot is kept for an hour, while nothing changes that the answer depends on: the machine's
boot, the kernel, QEMU's program and arguments, the device of the module kvm. What none of these
shows, a busy machine or another hypervisor that had the CPU, is tried again after the hour.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from netbench.base.errors import LabError
from netbench.lab import debian
from netbench.lab.accelerator import KVM, Accelerator, shares
from netbench.lab.command import SYSTEM_FOLDERS, Tools
from netbench.lab.cpio import Archive
from netbench.lab.guest_console import tail
from netbench.lab.guests import PROGRAM
from netbench.lab.kept import say
from netbench.lab.lab import LabKernel

NEEDS = ("timeout",)
DEVICE, VHOST = Path("/dev/kvm"), Path("/dev/vhost-net")
SECONDS = 10.0
KEPT_SECONDS = 3600.0
_MARK = "netbench: user space runs"
_INIT = f"""\
#!/bin/sh
/usr/bin/busybox mount -t devtmpfs devtmpfs /dev
echo "{_MARK}" > /dev/console
/usr/bin/busybox reboot -f
"""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)  # by `timeout`, whatever it says of itself


def choose(kernels: Iterable[LabKernel], guests: int, tools: Tools) -> Accelerator:
    """What so many guests run on, and a line that says so: KVM if it boots each of the kernels,
    else the emulator. Errors: LabError.
    """
    available = os.sched_getaffinity(0)
    kvm = Accelerator(KVM, vhost=not _why_closed(VHOST), cpus=shares(available, guests))
    why = _why_closed(DEVICE)
    for kernel in kernels:
        why = why or _why_not(kernel, kvm, tools)
    if why:
        say(f"guests are emulated (QEMU TCG), without KVM: {why}")
        # both ends are in a guest that is alone: `pin: apart` needs two CPUs
        return Accelerator(why=why, cpus=(tuple(sorted(available)),) if guests == 1 else ())
    own = f"{kvm.queues(0)} CPU{'s' if kvm.queues(0) > 1 else ''} each"
    say(f"guests run under {kvm.fact}, {own}: their costs are those of a virtual machine")
    return kvm


def _why_closed(device: Path) -> str:
    """Why a device cannot be opened; "" where it can."""
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{device}: {error.strerror}"
    return ""


def _why_not(kernel: LabKernel, kvm: Accelerator, tools: Tools) -> str:
    """Why KVM does not run a kernel, as it was kept or by a trial; "" where it does."""
    argv = _arguments(kernel, kvm, tools)
    kept = debian.cache() / "kvm" / _key(kernel, argv)
    with suppress(OSError):
        age = time.time() - kept.stat().st_mtime
        if 0 <= age < KEPT_SECONDS:
            return f"{kept.read_text()} (tried {age / 60:.0f} min ago)"
    why = try_boot(kernel, argv)
    if why:
        kept.parent.mkdir(exist_ok=True)
        draft = kept.with_name(f"{kept.name}.{os.getpid()}")
        draft.write_text(why)
        draft.rename(kept)
    return why


def _arguments(kernel: LabKernel, kvm: Accelerator, tools: Tools) -> list[str]:
    argv = [tools.paths["timeout"], "--signal=KILL", f"{SECONDS:.0f}"]
    argv += [tools.paths[PROGRAM], *kvm.machine(0), "-no-reboot"]
    return [*argv, "-kernel", str(kernel.image), "-append", f"{kvm.append} {kernel.append}".strip()]


def _key(kernel: LabKernel, argv: Sequence[str]) -> str:
    """Of all that the outcome of a trial depends on; the files of a kernel are named by their
    content.
    """
    device, program = DEVICE.stat(), Path(argv[3]).stat()
    parts = [_BOOT_ID.read_text(), str(kernel.initrd), *argv]
    parts += [f"{device.st_rdev} {device.st_ino} {device.st_ctime_ns}"]
    parts += [f"{program.st_size} {program.st_mtime_ns}"]
    return sha256("\0".join(parts).encode()).hexdigest()


def try_boot(kernel: LabKernel, argv: Sequence[str]) -> str:
    """Boot a kernel, with an init that says that it runs and ends it; why it did not run, "" where
    it did. `timeout` ends the guest of a netbench that was killed itself. Errors: LabError.
    """
    with tempfile.TemporaryDirectory(dir=debian.cache()) as scratch:
        root, console = Path(scratch, "root"), Path(scratch, "console")
        init = Archive()
        init.file("init", _INIT.encode(), 0o755)
        try:
            root.write_bytes(kernel.initrd.read_bytes() + init.whole())
            with subprocess.Popen(
                [*argv, "-initrd", str(root), "-serial", f"file:{console}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env={"PATH": os.pathsep.join(SYSTEM_FOLDERS), "LC_ALL": "C"},
                start_new_session=True,
            ) as process:
                try:
                    _, output = process.communicate()
                finally:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
        except OSError as error:
            raise LabError(f"cannot try KVM: {error}") from error
        lines = tail(console, 1000)
        if any(_MARK in line for line in lines):
            return ""
        last = "".join(lines[-1:]) or "its console is empty"
        if process.returncode in _KILLED:
            return (
                f"kernel {kernel.name} did not reach its user space within {SECONDS:.0f} s: {last}"
            )
        return f"kernel {kernel.name} ended: {' '.join(output.split()) or last}"
