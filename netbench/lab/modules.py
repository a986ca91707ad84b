"""Modules that a guest gets: what its devices need, and what a campaign may ask a kernel for."""

from __future__ import annotations

import gzip
import itertools
import lzma
import os
import re
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from netbench import kernels
from netbench.base.errors import RequestError
from netbench.base.opening import walk
from netbench.lab.cpio import Archive

# Below kernel/, without suffix; folders end with a slash.
WANTED = re.compile(
    r"drivers/(virtio/virtio(_pci|_ring)?|net/(virtio_net|veth|dummy|ifb|tun|tap|macvlan|macvtap|ipvlan/ipvlan|netconsole)"
    r"|block/(virtio_blk|loop|brd|null_blk/null_blk)|scsi/virtio_scsi|char/hw_random/virtio-rng)"
    r"|net/(tls/tls|sched/(sch|cls)_.+|sched/act_(mirred|police|gact|skbedit|bpf)|ipv4/(tcp_|udp_diag|inet_diag|raw_diag|ipip|ip_gre|gre|ip_tunnel|tunnel4|udp_tunnel).*|8021q/8021q"
    r"|unix/unix_diag|packet/af_packet_diag|sunrpc/(sunrpc|auth_gss/.+)|core/(pktgen|failover))"
    r"|fs/(nfs|nfsd|nfs_common|lockd|ext4)/.+"
    r"|crypto/(gcm|ghash.*|ccm|ctr|cmac|gf128mul|aes_generic|aes_ti|chacha.*|poly1305.*|cryptd|crypto_simd|crc32c_generic|cbc|seqiv)"
    r"|arch/x86/crypto/(aesni-intel|ghash-clmulni-intel|chacha-x86_64|poly1305-x86_64|crc32c-intel|crc32-pclmul)"
)
INDEX = ("modules.order", "modules.builtin", "modules.builtin.modinfo")
RECIPE = "4"  # changes with what `pack` makes of the same kernel
_COMPRESSED = re.compile(r"\.(gz|xz|zst)$", re.MULTILINE)


def pack(modules: Path, release: str) -> bytes:
    """An archive with /lib/modules/RELEASE: the wanted ones and what they need, not compressed,
    with their indices.

    Errors: RequestError when a module cannot be read.
    """
    archive = Archive()
    with tempfile.TemporaryDirectory() as scratch:
        mirror = Path(scratch, release)
        mirror.mkdir()
        for name in select(needs(modules)):
            file = mirror / _COMPRESSED.sub("", name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(_read(modules / name))
        for name in INDEX:
            if (modules / name).exists():
                shutil.copyfile(modules / name, mirror / name)
        if (order := mirror / "modules.order").exists():
            plain = _COMPRESSED.sub("", os.fsdecode(order.read_bytes()))
            order.write_bytes(os.fsencode(plain))
        kernels.index(mirror, release, release)
        for file in sorted(mirror.rglob("*")):
            if file.is_file():
                place = f"usr/lib/modules/{release}/{file.relative_to(mirror)}"
                archive.file(place, file.read_bytes())
    return archive.whole()


def needs(modules: Path) -> dict[str, tuple[str, ...]]:
    """Every module's file below a folder of modules, with those that it needs, from its
    `modules.dep`. Errors: RequestError, also for names that are of no file there.
    """
    try:
        lines = os.fsdecode((modules / "modules.dep").read_bytes()).splitlines()
    except OSError as error:
        raise RequestError(
            f"cannot read {error.filename}: {error.strerror}; run depmod for these modules"
        ) from error
    entries = (line.partition(":") for line in lines if ":" in line)
    known = {name: tuple(others.split()) for name, _, others in entries}
    files = {str(file.relative_to(modules)) for file in walk(modules)}
    if strange := {*known, *itertools.chain(*known.values())} - files:
        raise RequestError(
            f"{modules}: {min(strange)!r} of modules.dep is no file there; run depmod"
        )
    return known


def select(known: Mapping[str, Iterable[str]]) -> list[str]:
    """The wanted modules and all that they need, sorted."""
    chosen: set[str] = set()
    for name, others in known.items():
        plain = name.removeprefix("kernel/").partition(".ko")[0]
        if WANTED.fullmatch(plain):
            chosen |= {name, *others}
    return sorted(chosen)


def _read(file: Path) -> bytes:
    """A module, decompressed."""
    try:
        return _UNPACKERS.get(file.suffix, bytes)(file.read_bytes())
    except (OSError, EOFError, zlib.error, lzma.LZMAError, subprocess.CalledProcessError) as error:
        raise RequestError(f"cannot read the module {file}: {error}") from error


def _zstd(packed: bytes) -> bytes:
    return subprocess.run(("zstd", "-dc"), input=packed, capture_output=True, check=True).stdout


_UNPACKERS = {".xz": lzma.decompress, ".gz": gzip.decompress, ".zst": _zstd}
