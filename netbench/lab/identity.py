"""What makes a guest this one, as an archive: its name, addresses and keys."""

from __future__ import annotations

import base64
import struct

from netbench.lab.cpio import Archive
from netbench.lab.lab import Lab, LabHost
from netbench.lab.userland import INITTAB


def identity(lab: Lab, host: LabHost, disk: bool) -> bytes:
    """Names, addresses, the host key, and the key that may log in. With `disk`, /boot is on one."""
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
    archive.file("etc/inittab", INITTAB.format(management=host.management).encode())
    archive.file("etc/hostname", f"{host.name}\n".encode())
    names = "".join(f"{one.address} {one.name}\n" for one in lab.hosts.values())
    archive.file("etc/hosts", f"127.0.0.1 localhost\n{names}".encode())
    archive.folder("etc/dropbear", 0o700)
    archive.file("etc/dropbear/host_key", dropbear_key((here / "host_key").read_text()), 0o600)
    archive.folder("root", 0o700)
    archive.folder("root/.ssh", 0o700)
    archive.file("root/.ssh/authorized_keys", (lab.folder / "authorized_keys").read_bytes(), 0o600)
    return archive.whole()


def mac(lab: Lab, host: LabHost, link: int) -> str:
    """The address of a guest's network device: 0 management, 1 data."""
    return f"52:54:00:6e:{link:02x}:{lab.number(host):02x}"


def dropbear_key(openssh: str) -> bytes:
    """An ed25519 host key in dropbear's form, from OpenSSH's (PROTOCOL.key) without passphrase."""
    raw = base64.b64decode(
        "".join(line for line in openssh.splitlines() if not line.startswith("-"))
    )
    at = len(b"openssh-key-v1\0")
    for _ in range(3):  # cipher, key derivation and its options
        _, at = _string(raw, at)
    _, at = _string(raw, at + 4)
    private, _ = _string(raw, at)
    at = 8  # the same number twice
    kind, at = _string(private, at)
    _, at = _string(private, at)
    secret, _ = _string(private, at)
    return b"".join(struct.pack(">I", len(part)) + part for part in (kind, secret))


def _string(raw: bytes, at: int) -> tuple[bytes, int]:
    size = int.from_bytes(raw[at : at + 4], "big")
    return raw[at + 4 : at + 4 + size], at + 4 + size
