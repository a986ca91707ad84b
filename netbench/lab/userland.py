"""What a guest's root is made of, as archives: its programs (busybox, an SSH server and kexec), and
what makes it this guest.

A guest's initramfs is three archives one after the other
(Documentation/driver-api/early-userspace/buffer-format.rst): programs, its kernel's modules, and
its identity. It stays the guest's root: there is no Python, no ethtool, no sftp server in it.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from netbench.base.errors import LabError, LabRefused
from netbench.lab import debian
from netbench.lab.command import SYSTEM_FOLDERS, Tools
from netbench.lab.cpio import Archive
from netbench.lab.lab import Lab, LabHost

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
_INITTAB = """\
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


def userland(tools: Tools) -> bytes:
    """Programs and libraries, of this machine or of Debian's packages. Errors: LabRefused."""
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
    busybox, _ = programs.pop("busybox")
    archive.file("usr/bin/busybox", busybox.read_bytes(), 0o755)
    for name in sorted(set(tools.run((str(busybox), "--list")).split()) - set(_NOT_APPLETS)):
        archive.link(f"usr/bin/{name}", "busybox")
    for name in ("modprobe", "reboot", "init"):
        archive.link(f"usr/sbin/{name}", "../bin/busybox")
    libraries: dict[str, Path] = {}
    for name, (program, root) in programs.items():
        archive.file(f"usr/sbin/{name}", program.read_bytes(), 0o755)
        libraries |= {library.name: library for library in _libraries(program, root, tools)}
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


def _program(name: str, package: str, tools: Tools) -> tuple[Path, Path | None]:
    """A program as a file of this machine, and where its package was unpacked, None where it is
    installed. Errors: LabRefused.
    """
    here = shutil.which(name, path=os.pathsep.join(SYSTEM_FOLDERS))
    # one that needs no loader: ldd(1) then fails
    if here and (name != "busybox" or tools.attempt(("ldd", here)).returncode != 0):
        return Path(here), None
    root = debian.unpacked(package, tools)
    for folder in SYSTEM_FOLDERS:
        if (program := root / folder.lstrip("/") / name).is_file():
            return program, root
    raise LabRefused(
        f"the Debian package {package} lacks {name} at the expected path; install it: apt install"
        f" {package}"
    )


def _libraries(program: Path, root: Path | None, tools: Tools) -> list[Path]:
    folders = os.pathsep.join(str(root / folder) for folder in _LIBRARIES) if root else ""
    ldd = ("env", f"LD_LIBRARY_PATH={folders}", tools.paths["ldd"], str(program))
    output = tools.run(ldd)
    if "not found" in output:
        raise LabRefused(
            f"{program} needs a library that is not installed: {' '.join(output.split())};"
            " install its package with apt"
        )
    return [Path(path) for path in _LOADED.findall(output)]


def identity(lab: Lab, host: LabHost, disk: bool) -> bytes:
    """What makes a guest this one: names, addresses, the host key, and the key that may log in.
    With `disk`, /boot is on one.
    """
    here = lab.folder / "hosts" / host.name
    archive = Archive()
    words = {
        "NAME": host.name,
        "MANAGEMENT_MAC": mac(lab, host, 0),
        "MANAGEMENT": host.management,
        "DATA_MAC": mac(lab, host, 1),
        "DATA4": host.address,
        "DATA6": host.address6,
        "DISK": "1" if disk else "",
        "ACCELERATOR": lab.accelerator.fact,  # read as the fact `lab_guest`
    }
    archive.file(
        "etc/netbench.guest", "".join(f"{key}='{word}'\n" for key, word in words.items()).encode()
    )
    archive.file("etc/inittab", _INITTAB.format(management=host.management).encode())
    archive.file("etc/hostname", f"{host.name}\n".encode())
    names = "".join(f"{one.address} {one.name}\n" for one in lab.hosts.values())
    archive.file("etc/hosts", f"127.0.0.1 localhost\n{names}".encode())
    archive.folder("etc/dropbear", 0o700)
    archive.file("etc/dropbear/host_key", dropbear_key((here / "host_key").read_bytes()), 0o600)
    archive.folder("root", 0o700)
    archive.folder("root/.ssh", 0o700)
    archive.file("root/.ssh/authorized_keys", (lab.folder / "authorized_keys").read_bytes(), 0o600)
    return archive.whole()


def mac(lab: Lab, host: LabHost, link: int) -> str:
    """The address of a guest's network device: 0 management, 1 data."""
    return f"52:54:00:6e:{link:02x}:{lab.number(host):02x}"


def dropbear_key(openssh: bytes) -> bytes:
    """An ed25519 host key in dropbear's form, from OpenSSH's without passphrase: a string of its
    kind, and one of the secret and the public half.
    """
    key = serialization.load_ssh_private_key(openssh, None)
    if not isinstance(key, Ed25519PrivateKey):
        raise LabError(f"expected an ed25519 host key, got {type(key).__name__}")
    halves = key.private_bytes_raw() + key.public_key().public_bytes_raw()
    return b"".join(struct.pack(">I", len(part)) + part for part in (b"ssh-ed25519", halves))
