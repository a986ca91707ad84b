"""Guests of a lab: starting one, booting it on another kernel, its disk."""

from __future__ import annotations

import shutil

from netbench.base.errors import LabError, LabRefused
from netbench.base.units import parse_size
from netbench.kernels.cache import locks
from netbench.lab import command, emulator, sshd, state
from netbench.lab.command import Tools
from netbench.lab.identity import identity, mac
from netbench.lab.lab import Lab, LabHost, LabKernel

USER_NETWORK = "restrict=on,ipv6=off"
_DISK_SPARE = parse_size("64M")


def make_guest(lab: Lab, host: LabHost, first: LabKernel, disk: bool, tools: Tools) -> None:
    """Start a new guest, with a disk if asked for. Errors: LabError."""
    if disk:
        _make_disk(lab, host, tools)
    _start(lab, host, first, tools)


def described(lab: Lab, host: LabHost) -> emulator.Guest:
    """The emulator's specification of a host's guest."""
    here = sshd.place(lab.folder, host.name)
    disk = here / "disk"
    number = list(lab.hosts).index(host.name)
    return emulator.Guest(
        lab=lab.name,
        name=host.name,
        folder=here,
        port=host.port,
        macs=(mac(lab, host, 0), mac(lab, host, 1)),
        namespace=state.NAMESPACES / host.namespace,
        tap=tap_name(number + 1),
        number=number,
        accelerator=lab.accelerator,
        disk=disk if disk.exists() else None,
    )


def _start(lab: Lab, host: LabHost, kernel: LabKernel, tools: Tools) -> None:
    """Start a guest that does not run. QEMU keeps the initramfs mapped: its file is removed. As
    long as it runs, the lab's kernels are not pruned from the cache.
    """
    kernels = (kernel, *lab.kernels.values())
    entries = [place for one in kernels for place in (one.image.parent, one.initrd)]
    spec = described(lab, host)
    root = spec.folder / "root.cpio"
    try:
        with locks(entries) as held:
            root.write_bytes(_root(lab, host, kernel, spec.disk is not None))
            program = tools.paths[emulator.PROGRAM]
            emulator.start(spec, program, kernel.image, root, kernel.append, USER_NETWORK, held)
    except OSError as error:
        raise LabError(
            f"{host.name}: cannot write its initramfs in {spec.folder}: {error.strerror}; free some"
            " space there"
        ) from error
    finally:
        root.unlink(missing_ok=True)
    (spec.folder / "kernel").write_text(f"{kernel.name} {kernel.release}\n")


def _root(lab: Lab, host: LabHost, kernel: LabKernel, disk: bool) -> bytes:
    try:
        return kernel.initrd.read_bytes() + identity(lab, host, disk)
    except FileNotFoundError as error:
        raise LabError(
            f"{error.filename} was removed from the cache; run `lab down`, then `lab up`"
        ) from error


def _make_disk(lab: Lab, host: LabHost, tools: Tools) -> None:
    """An ext4 image with every kernel of the lab as an installed one."""
    here = sshd.place(lab.folder, host.name)
    content = here / "boot"
    (content / "netbench").mkdir(parents=True)
    try:
        for kernel in lab.kernels.values():
            shutil.copyfile(kernel.image, content / f"vmlinuz-{kernel.release}")
            (content / f"initrd.img-{kernel.release}").write_bytes(
                _root(lab, host, kernel, disk=True)
            )
        size = sum(file.stat().st_size for file in content.iterdir()) * 2 + _DISK_SPARE
        image = here / "disk"
        tools.run(
            ("mke2fs", "-q", "-t", "ext4", "-d", str(content), str(image), f"{size // 1024}k")
        )
    except OSError as error:
        raise LabError(
            f"{host.name}: cannot create its disk in {here}: {error.strerror}; free some space"
            " there"
        ) from error
    finally:
        shutil.rmtree(content)


def tap_name(number: int) -> str:
    """The data link's device of the lab's host of that number, counted from 1."""
    return f"data{number}"


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
        tools = command.find((emulator.PROGRAM,), lock)
        here = lab.host(host)
        emulator.end(lab.name, lab.folder, host)
        _start(lab, here, kernel, tools)
