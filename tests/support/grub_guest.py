"""A guest that its own GRUB boots: a disk with a boot loader, the lab's kernels as installed ones,
and Debian's menu.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import subprocess
from pathlib import Path

from netbench.lab import command as programs
from netbench.lab import debian, guests, qemu, sshd, userland
from netbench.lab.command import Tools
from netbench.lab.cpio import Archive
from netbench.lab.guest_console import await_login
from netbench.lab.lab import Lab, LabHost, LabKernel
from netbench.lab.userland import identity

_NEEDS = (*qemu.NEEDS, "mke2fs")
_SECTOR = 512
_PARTITION_AT = 2048  # sectors; what is before it holds GRUB's core
_MODULES = ("biosdisk", "part_msdos", "ext2", "normal")
_PROGRAMS = {
    "grub-common": ("usr/bin/grub-editenv", "usr/sbin/grub-probe"),
    "grub2-common": ("usr/sbin/grub-reboot",),
}
_LIBRARY = "usr/share/grub/grub-mkconfig_lib"
_ENVIRONMENT = b"# GRUB Environment Block\n".ljust(1024, b"#")
# As update-grub of Debian 12 writes it, but for graphics, and a console on the serial line.
_HEAD = """\
if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
if [ x"${feature_menuentry_id}" = xy ]; then
  menuentry_id_option="--id"
else
  menuentry_id_option=""
fi
export menuentry_id_option
serial --unit=0 --speed=115200
terminal_input serial
terminal_output serial
set timeout=0
"""
_SIMPLE = """\
menuentry 'Debian GNU/Linux' --class debian --class os $menuentry_id_option 'gnulinux-simple-test' {{
	echo	'Loading Linux {release} ...'
	linux	/vmlinuz-{release} {append}
	initrd	/initrd.img-{release}
}}
"""
_ADVANCED = """\
	menuentry 'Debian GNU/Linux, with Linux {release}' --class debian $menuentry_id_option 'gnulinux-{release}-advanced-test' {{
		linux	/vmlinuz-{release} {append}
		initrd	/initrd.img-{release}
	}}
	menuentry 'Debian GNU/Linux, with Linux {release} (recovery mode)' $menuentry_id_option 'gnulinux-{release}-recovery-test' {{
		linux	/vmlinuz-{release} {append} single
		initrd	/initrd.img-{release}
	}}
"""
_MOUNT = "#!/bin/sh\nmodprobe -a virtio_blk ext4\nmount -t ext4 /dev/vda1 /boot || mount -t ext2 /dev/vda1 /boot\n"


def move_in(lab: Lab, name: str) -> None:
    """Stop a guest of a lab and start it from a disk of its own, whose default entry is the lab's
    first kernel.

    Errors: LabRefused when a package cannot be had, LabError.
    """
    tools = programs.find(_NEEDS)
    packages = {package: debian.unpacked(package, tools) for package in (*_PROGRAMS, "grub-pc-bin")}
    host = lab.hosts[name]
    guests.stop(lab, host)
    here = sshd.place(lab.folder, name)
    image = here / "grub-disk"
    _disk(lab, host, packages, image, tools)
    guests.start_qemu(lab, host, ["-drive", f"if=virtio,format=raw,file={image}"], tools)
    await_login(lab, host, tools, 240.0)


def _disk(lab: Lab, host: LabHost, packages: dict[str, Path], image: Path, tools: Tools) -> None:
    content = image.with_name("grub-content")
    modules = packages["grub-pc-bin"] / "usr/lib/grub/i386-pc"
    shutil.copytree(
        modules, content / "grub" / "i386-pc", ignore=shutil.ignore_patterns("*.img", "*.module")
    )
    (content / "grub" / "grub.cfg").write_text(
        _menu(list(lab.kernels.values()), lab.accelerator.append)
    )
    (content / "grub" / "grubenv").write_bytes(_ENVIRONMENT)
    for kernel in lab.kernels.values():
        shutil.copyfile(kernel.image, content / f"vmlinuz-{kernel.release}")
        root = kernel.initrd.read_bytes() + identity(lab, host, False)
        root += _additions(host, packages, tools)
        (content / f"initrd.img-{kernel.release}").write_bytes(root)
    size = (
        sum(file.stat().st_size for file in content.rglob("*")) * 5 // 4 // _SECTOR
        + (16 << 20) // _SECTOR
    )
    with image.open("wb") as disk:
        disk.truncate((_PARTITION_AT + size) * _SECTOR)
    offset = f"offset={_PARTITION_AT * _SECTOR}"
    # ext2: what GRUB 2.06 reads whatever mke2fs's defaults are
    words = f"mke2fs -q -t ext2 -E {offset} -d {content} {image} {size * _SECTOR // 1024}k"
    tools.run(words.split())
    with image.open("r+b") as disk:
        disk.write(_first_sectors(packages, modules, size, image.with_name("core.img")))
    shutil.rmtree(content)


def _menu(kernels: list[LabKernel], append: str) -> str:
    advanced = "".join(
        _ADVANCED.format(release=kernel.release, append=append) for kernel in kernels
    )
    simple = _SIMPLE.format(release=kernels[0].release, append=append)
    title = "submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-test' {\n"
    return f"{_HEAD}{simple}{title}{advanced}}}\n"


def _first_sectors(packages: dict[str, Path], modules: Path, size: int, core: Path) -> bytes:
    """GRUB's first sector with a table of one partition, and its core after it: where boot.img
    looks by default.
    """
    maker = packages["grub-common"] / "usr/bin/grub-mkimage"
    libraries = str(packages["grub-common"] / "usr/lib/x86_64-linux-gnu")
    words = f"{maker} -d {modules} -O i386-pc -p (hd0,msdos1)/grub -o {core}".split()
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
    subprocess.run([*words, *_MODULES], check=True, capture_output=True, env=environment)
    boot = bytearray((modules / "boot.img").read_bytes()[:_SECTOR])
    boot[446:462] = struct.pack(
        "<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", _PARTITION_AT, size
    )
    boot[462:512] = bytes(48) + b"\x55\xaa"
    whole = bytes(boot) + core.read_bytes()
    assert len(whole) <= _PARTITION_AT * _SECTOR
    return whole


def _additions(host: LabHost, packages: dict[str, Path], tools: Tools) -> bytes:
    """What the guest has beside a lab's: GRUB's own programs, and its disk at /boot."""
    archive = Archive()
    libraries: dict[str, Path] = {}
    for package, paths in _PROGRAMS.items():
        for path in paths:
            file = packages[package] / path
            archive.file(path, file.read_bytes(), 0o755)
            if not file.read_bytes().startswith(b"#!"):
                found = userland._libraries(userland.Program(file, packages[package]), tools)
                libraries |= {library.name: library for library in found}
    for name, library in sorted(libraries.items()):
        folder = "usr/lib64" if name.startswith("ld-linux") else "usr/lib"
        archive.file(f"{folder}/{name}", library.read_bytes(), 0o755)
    mkconfig = (packages["grub-common"] / _LIBRARY, packages["grub2-common"] / _LIBRARY)
    with contextlib.suppress(StopIteration):
        archive.file(_LIBRARY, next(file for file in mkconfig if file.exists()).read_bytes())
    archive.file("usr/sbin/mount-boot", _MOUNT.encode(), 0o755)
    inittab = userland.INITTAB.format(management=host.management)
    archive.file("etc/inittab", f"::sysinit:/usr/sbin/mount-boot\n{inittab}".encode())
    return archive.whole()
