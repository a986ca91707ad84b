"""File systems on devices of their own: an image on a loop device."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NEEDED = ("mkfs.ext4", "mount", "losetup")


def skip_without_loop_devices() -> None:
    """Skip a test where the machine has no loop devices, or no program that makes a file system."""
    for program in NEEDED:
        if shutil.which(program) is None and not Path("/usr/sbin", program).exists():
            pytest.skip(f"needs {program} (Debian: e2fsprogs, mount)")
    if not Path("/dev/loop-control").exists():
        pytest.skip("needs loop devices (/dev/loop-control): CONFIG_BLK_DEV_LOOP")


@contextmanager
def ext4_on(image: Path, folder: Path, size: int = 64 << 20) -> Iterator[Path]:
    """An ext4 of so many bytes, mounted on a folder as long as the context lives."""
    skip_without_loop_devices()
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(size)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def tmpfs_on(folder: Path, size: str) -> Iterator[Path]:
    """A file system of that size in memory, as long as the context lives."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-R", "-l", folder], check=True)
