"""A kernel that a lab's guests start from: an image, and an initramfs of programs and modules, both
kept in the cache by content.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from netbench.base.errors import LabRefused
from netbench.kernels import source
from netbench.lab import command, debian, modules
from netbench.lab import userland as guest_programs
from netbench.lab.command import Tools
from netbench.lab.lab import Lab, LabKernel
from netbench.lab.userland import userland
from netbench.model import Kernel

NEEDS = ("depmod", *guest_programs.NEEDS)


def build(kernel: Kernel, programs: bytes, tools: Tools) -> LabKernel:
    """A kernel's image and first root, cached or made. Errors: LabRefused, RequestError."""
    if kernel.release:
        kernel = kernel._replace(deb=str(debian.kernel(kernel.release, tools)))
    place = source.locate(kernel)
    parts = _parts(kernel, place)
    release = (parts / "release").read_text()
    initrd = Path(kernel.initrd).expanduser() if kernel.initrd else None
    content = _read(initrd, kernel) if initrd else b""
    content += programs + (parts / "modules.cpio").read_bytes()
    root = debian.cache() / "roots" / f"{sha256(content).hexdigest()}.cpio"
    if not root.exists():
        root.parent.mkdir(exist_ok=True)
        draft = root.with_name(f"{root.name}.{os.getpid()}")
        draft.touch(0o600)  # as an `initrd` may be
        draft.write_bytes(content)
        draft.rename(root)
    return LabKernel(kernel.name, release, parts / "image", root, kernel.append, str(place))


def _read(file: Path, kernel: Kernel) -> bytes:
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise LabRefused(
            f"kernel {kernel.name}: cannot read its initrd {file}: {error.strerror}"
        ) from error
    return raw + b"\0" * (-len(raw) % 512)


def _parts(kernel: Kernel, place: Path) -> Path:
    """A folder of the cache with `image`, `release` and `modules.cpio`, by the content that they
    are made from.
    """
    cached = _cached(source.digest(place))
    if cached.exists():
        return cached
    cached.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cached.parent) as scratch:
        raw, draft = Path(scratch, "raw"), Path(scratch, "draft")
        raw.mkdir()
        draft.mkdir(mode=0o755)
        files = source.unpack(kernel, raw)
        cached = _cached(files.content)  # whatever it was when it was looked for
        shutil.copyfile(files.image, draft / "image")
        (draft / "modules.cpio").write_bytes(
            modules.pack(files.modules, files.release) if files.modules else b""
        )
        (draft / "release").write_text(files.release)
        with contextlib.suppress(OSError):  # another lab made it first
            draft.rename(cached)
    return cached


def _cached(content: str) -> Path:
    return debian.cache() / "kernels" / f"{content[:32]}-{modules.RECIPE}"


def kernel_for(lab: Lab, kernel: Kernel) -> LabKernel:
    """A kernel of any source, ready to be booted by a lab's guests: one of its own, that of this
    name first, or made and kept in the cache.

    Errors: LabRefused, RequestError about a kernel's files.
    """
    if kernel.release:
        fitting = [own for own in lab.kernels.values() if debian.fits(own.release, kernel.release)]
        fitting.sort(key=lambda own: debian.order(own.release), reverse=True)
        for own in sorted(fitting, key=lambda own: own.name != kernel.name):
            return replace(own, name=kernel.name, append=kernel.append)
    tools = command.find(NEEDS)
    return build(kernel, userland(tools), tools)
