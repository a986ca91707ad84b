"""Boot methods, one file each, found by name."""

from __future__ import annotations

from importlib import import_module

from netbench.kernels.boot.boot_method import BootMethod

METHODS = {"kexec": "Kexec", "grub": "Grub", "qemu": "Qemu", "command": "Command"}


def boot_method(kind: str) -> BootMethod:
    """The boot method of that name."""
    method: BootMethod = getattr(import_module(f"netbench.kernels.boot.{kind}"), METHODS[kind])()
    return method
