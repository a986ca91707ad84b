"""Kernels copied to a host: in netbench's own folder, once per content, never in /boot."""

from __future__ import annotations

import re
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netbench.base.errors import BootError, RequestError
from netbench.base.names import RELEASE
from netbench.kernels.boot.installed import Installed
from netbench.kernels.boot.machine import Machine
from netbench.kernels.boot.state import State
from netbench.kernels.source import digest, locate, unpack
from netbench.model import Kernel

SEND_SECONDS = 600.0
INITRD_SECONDS = 600.0
_DONE = "whole"  # a file that is written last
_FOLDER = (
    'umask 077; folder=${XDG_CACHE_HOME:-$HOME/.cache}/netbench/kernels/$0; mkdir -p "$folder" &&'
    ' cd "$folder" && pwd'
)


def release_of(machine: Machine, image: str) -> str:
    """The release that a bzImage on a host calls itself (Documentation/arch/x86/boot.rst,
    kernel_version). Errors: BootError.
    """
    try:
        low, high = _bytes(machine, image, 0x20E, 2)
        words = _bytes(machine, image, 0x200 + low + 256 * high, 128).split(b"\0")[0]
        text = words.decode("ascii", "replace")
    except ValueError:
        raise BootError(
            f"{machine.name}: {image} is not an x86 kernel image (bzImage); give another image, or"
            " use `release:`"
        ) from None
    match = re.match(RELEASE, text)
    if not match:
        raise BootError(
            f"{machine.name}: cannot read the kernel release in {image}; is it a bzImage?"
        )
    return match[0]


def _bytes(machine: Machine, path: str, at: int, count: int) -> bytes:
    """Some bytes of a file. Errors: ValueError when it is shorter."""
    done = machine.attempt(
        "od", "-A", "n", "-v", "-t", "x1", "-j", str(at), "-N", str(count), path, root=True
    )
    read = bytes.fromhex("".join(done.stdout.split()))
    if done.status or len(read) < 2:
        raise ValueError(path)
    return read


def bring(machine: Machine, kernel: Kernel, original_kernel: State) -> Installed:
    """Copy a kernel of this machine (`deb`, `tree`) to a host, which makes an initrd for it.
    Errors: BootError, HostError.
    """
    with _as_boot_error(machine):
        name = digest(locate(kernel))[:16]
    folder = machine.run("sh", "-c", _FOLDER, name).strip()
    image, initrd, mark = f"{folder}/vmlinuz", f"{folder}/initrd", f"{folder}/{_DONE}"
    if machine.exists(mark):
        return Installed(machine.run("cat", mark).strip(), image, initrd)
    with tempfile.TemporaryDirectory(prefix="netbench-kernel-") as scratch:
        with _as_boot_error(machine):
            files = unpack(kernel, Path(scratch))
        if files.modules is None:
            raise BootError(
                f"{kernel.name}: {kernel.deb or kernel.tree} contains no modules; put an image and"
                " an initrd on the host, and name them with `image:` and `initrd:`"
            )
        packed = Path(scratch) / "netbench-modules.tar"
        with tarfile.open(packed, "w") as tar:
            tar.add(files.modules, arcname=files.release)
        try:
            machine.channel.put(files.image, image)
            machine.channel.put(packed, f"{folder}/modules.tar")
            _make_initrd(machine, folder, files.release)
            done = Path(scratch) / f"netbench-{_DONE}"
            done.write_text(f"{files.release}\n")
            machine.channel.put(done, mark)
        except BaseException:
            machine.attempt("rm", "-r", "-f", folder, root=True)
            raise
    return Installed(files.release, image, initrd)


@contextmanager
def _as_boot_error(machine: Machine) -> Iterator[None]:
    """Errors about the kernel's files as BootError."""
    try:
        yield
    except RequestError as error:
        raise BootError(f"{machine.name}: {error}") from error


def _make_initrd(machine: Machine, folder: str, release: str) -> None:
    """An initrd with the copied modules, by the host's own tool."""
    machine.run("tar", "-x", "-f", f"{folder}/modules.tar", "-C", folder, seconds=SEND_SECONDS)
    machine.run("rm", f"{folder}/modules.tar")
    place = f"/lib/modules/{release}"
    # A folder of another build with that release is covered for as long as it takes.
    with machine.showing_modules(f"{folder}/{release}", place):
        if not machine.has("mkinitramfs"):
            raise BootError(
                f"{machine.name}: the host has no mkinitramfs to make an initrd; install"
                " initramfs-tools, or put an image and its initrd on the host, and name them with"
                " `image:` and `initrd:`"
            )
        initrd = f"{folder}/initrd"
        machine.run("mkinitramfs", "-o", initrd, release, seconds=INITRD_SECONDS, root=True)
