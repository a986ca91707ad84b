"""The programs of a guest, as an archive: busybox, an SSH server and kexec.

A guest's initramfs is three archives one after the other
(Documentation/driver-api/early-userspace/buffer-format.rst): this one, its kernel's modules, and
its identity. It stays the guest's root: there is no Python, no ethtool, no sftp server in it.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from netbench.base.errors import LabRefused
from netbench.lab import debian
from netbench.lab.command import SYSTEM_FOLDERS, Tools
from netbench.lab.cpio import Archive

PROGRAMS = {
    "busybox": "busybox-static",
    "dropbear": "dropbear-bin",
    "kexec": "kexec-tools",
}  # and the Debian packages
NEEDS = ("ldd", *debian.NEEDS)
_FOLDERS = "proc sys dev run boot mnt srv etc usr/sbin usr/lib usr/lib64 var/log"
_LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")
_LOADED = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x", re.MULTILINE)
_LOADER = re.compile(r"ld-linux\S*\.so")
_NOT_APPLETS = ("busybox", "dpkg", "dpkg-deb", "rpm")  # nothing may take a guest for a Debian

_INIT = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
for place in /dev/shm /tmp /run; do mount -t tmpfs -o mode=1777 tmpfs $place; done
exec </dev/null >/dev/console 2>&1
. /etc/netbench.guest
hostname "$NAME"
modprobe -a virtio_pci virtio_net ${DISK:+virtio_blk ext4} 2>/dev/null
quiet() {
  [ ! -d /proc/sys/net/ipv6 ] || for key in "addr_gen_mode 1" "accept_dad 0" "accept_ra 0"; do
    echo ${key#* } > /proc/sys/net/ipv6/conf/$1/${key% *}; done; }
ip link set lo up
for link in /sys/class/net/*; do
    case $(cat $link/address) in
        "$MANAGEMENT_MAC") ip link set ${link##*/} name mgmt0; quiet mgmt0
            ip addr add $MANAGEMENT/24 dev mgmt0; ip link set mgmt0 up ;;
        "$DATA_MAC") ip link set ${link##*/} name data0; quiet data0
            ip addr add $DATA4/24 dev data0; ip link set data0 up
            [ ! -d /proc/sys/net/ipv6 ] || ip -6 addr add $DATA6/64 dev data0 ;;
    esac
done
[ -e /sys/class/net/mgmt0 ] ||
    echo "netbench: no network device: this kernel ($(uname -r)) needs virtio_pci and virtio_net"
if [ -n "$DISK" ]; then
    mount -o noatime /dev/vda /boot || echo "netbench: /boot cannot be mounted"
    mkdir -p /boot/netbench
fi
for part in 1 2 3 4 5 6 7 8; do cat /usr/bin/busybox; done > /srv/image
exec init
"""
INITTAB = """\
::respawn:/usr/sbin/dropbear -F -E -s -W 1048576 -r /etc/dropbear/host_key -p {management}:22
::ctrlaltdel:/sbin/reboot
::shutdown:/bin/umount -a -r
"""
# Called as initramfs-tools' program of that name is; it packs this root again, with the modules of
# another kernel.
_MKINITRAMFS = """\
#!/bin/sh
out= release=$(uname -r)
while [ $# -gt 0 ]; do
    case $1 in
        -o) out=$2; shift ;;
        -*) ;;
        *) release=$1 ;;
    esac
    shift
done
[ -n "$out" ] || { echo "usage: mkinitramfs -o FILE [RELEASE]" >&2; exit 2; }
cd / || exit
{
    find . -xdev -path './usr/lib/modules/*' -prune -o -path "./boot/*" -prune -o -print
    find "./usr/lib/modules/$release" 2>/dev/null
} | cpio -o -H newc > "$out" 2>/dev/null
"""


@dataclass(frozen=True)
class Program:
    """A program as a file of this machine; `root` is where its package was unpacked, None where it
    is installed.
    """

    path: Path
    root: Path | None


def userland(tools: Tools) -> bytes:
    """The archive of programs and their libraries, from this machine or from Debian's packages.
    Errors: LabRefused.
    """
    programs = {name: _program(name, package, tools) for name, package in PROGRAMS.items()}
    archive = Archive()
    archive.folder(".")
    for link in ("bin", "sbin", "lib", "lib64"):
        archive.link(link, f"usr/{link}")
    for folder in _FOLDERS.split():
        archive.folder(folder)
    archive.folder("root", 0o700)
    archive.folder("tmp", 0o1777)
    archive.folder("var/tmp", 0o1777)
    archive.link("var/run", "../run")
    busybox = programs.pop("busybox")
    archive.file("usr/bin/busybox", busybox.path.read_bytes(), 0o755)
    for name in sorted(set(tools.run((str(busybox.path), "--list")).split()) - set(_NOT_APPLETS)):
        archive.link(f"usr/bin/{name}", "busybox")
    for name in ("modprobe", "reboot", "init"):
        archive.link(f"usr/sbin/{name}", "../bin/busybox")
    libraries: dict[str, Path] = {}
    for name, program in programs.items():
        archive.file(f"usr/sbin/{name}", program.path.read_bytes(), 0o755)
        libraries |= {library.name: library for library in _libraries(program, tools)}
    for name, library in sorted(libraries.items()):
        archive.file(
            f"usr/lib64/{name}" if _LOADER.match(name) else f"usr/lib/{name}",
            library.read_bytes(),
            0o755,
        )
    archive.file("init", _INIT.encode(), 0o755)
    archive.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    archive.file("etc/group", b"root:x:0:\n")
    archive.file("etc/nsswitch.conf", b"passwd: files\ngroup: files\nshadow: files\n")
    archive.file("etc/shells", b"/bin/sh\n")
    archive.file("usr/sbin/mkinitramfs", _MKINITRAMFS.encode(), 0o755)
    return archive.whole()


def _program(name: str, package: str, tools: Tools) -> Program:
    here = shutil.which(name, path=os.pathsep.join(SYSTEM_FOLDERS))
    if here and (name != "busybox" or _is_static(here, tools)):
        return Program(Path(here), None)
    root = debian.unpacked(package, tools)
    for folder in SYSTEM_FOLDERS:
        if (program := root / folder.lstrip("/") / name).is_file():
            return Program(program, root)
    raise LabRefused(
        f"the Debian package {package} lacks {name} at the expected path; install it: apt install"
        f" {package}"
    )


def _is_static(program: str, tools: Tools) -> bool:
    """Whether a program needs no loader: ldd(1) then fails."""
    return tools.attempt(("ldd", program)).returncode != 0


def _libraries(program: Program, tools: Tools) -> list[Path]:
    folders = [str(program.root / folder) for folder in _LIBRARIES] if program.root else []
    output = tools.run(
        (
            "env",
            f"LD_LIBRARY_PATH={os.pathsep.join(folders)}",
            tools.paths["ldd"],
            str(program.path),
        )
    )
    if "not found" in output:
        raise LabRefused(
            f"{program.path} needs a library that is not installed: {' '.join(output.split())};"
            " install its package with apt"
        )
    return [Path(path) for path in _LOADED.findall(output)]
