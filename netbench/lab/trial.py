"""Whether KVM runs a lab's kernels: each is booted in it, for a few seconds at most.

That /dev/kvm opens says little: on a machine that is itself a guest, a stock kernel may hang before
its first line. So it is tried at each start of a lab, which takes a second where it works.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from netbench.base.errors import LabError
from netbench.lab import debian
from netbench.lab.accelerator import KVM, Accelerator, shares
from netbench.lab.command import TimedOut, Tools, say
from netbench.lab.cpio import Archive
from netbench.lab.guest_console import tail
from netbench.lab.guests import PROGRAM
from netbench.lab.lab import LabKernel

NEEDS = ("setpriv",)
DEVICE, VHOST = Path("/dev/kvm"), Path("/dev/vhost-net")
SECONDS = 6.0
_MARK = "netbench: user space runs"
_INIT = f"""\
#!/bin/sh
/usr/bin/busybox mount -t devtmpfs devtmpfs /dev
echo "{_MARK}" > /dev/console
/usr/bin/busybox reboot -f
"""


def choose(kernels: Iterable[LabKernel], guests: int, tools: Tools) -> Accelerator:
    """What so many guests run on, and a line that says so: KVM if it boots each of the kernels,
    else the emulator. Errors: LabError.
    """
    available = os.sched_getaffinity(0)
    kvm = Accelerator(KVM, vhost=not _why_closed(VHOST), cpus=shares(available, guests))
    why = _why_closed(DEVICE)
    for kernel in kernels:
        why = why or try_boot(kernel, kvm, tools)
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


def try_boot(kernel: LabKernel, kvm: Accelerator, tools: Tools) -> str:
    """Boot a kernel, with an init that says that it runs and ends it; why it did not run, "" where
    it did. Errors: LabError.
    """
    with tempfile.TemporaryDirectory(dir=debian.cache()) as scratch:
        root, console = Path(scratch, "root"), Path(scratch, "console")
        init = Archive()
        init.file("init", _INIT.encode(), 0o755)
        try:
            root.write_bytes(kernel.initrd.read_bytes() + init.whole())
        except OSError as error:
            raise LabError(f"cannot try KVM: {error}") from error
        argv = ["setpriv", "--pdeathsig", "KILL"]  # a netbench that is killed leaves no guest
        argv += [tools.paths[PROGRAM], *kvm.machine(0), "-no-reboot", "-kernel", str(kernel.image)]
        argv += ["-append", f"{kvm.append} {kernel.append}".strip()]
        argv += ["-initrd", str(root), "-serial", f"file:{console}"]
        try:
            output = tools.attempt(argv, seconds=SECONDS).stderr
        except TimedOut:
            output = None
        lines = tail(console, 1000)
        if any(_MARK in line for line in lines):
            return ""
        last = "".join(lines[-1:]) or "its console is empty"
        if output is None:
            return (
                f"kernel {kernel.name} did not reach its user space within {SECONDS:.0f} s: {last}"
            )
        return f"kernel {kernel.name} ended: {' '.join(output.split()) or last}"
