"""Ways to bring a host up on another kernel: one small file each, found by name."""

from __future__ import annotations

from importlib import import_module

from netbench.boot.base import GLANCE_SECONDS, BootMethod, Machine, State, Target

__all__ = ["GLANCE_SECONDS", "METHODS", "BootMethod", "Machine", "State", "Target", "way"]

METHODS = {"kexec": "Kexec", "grub": "Grub", "qemu": "Qemu", "command": "Command"}


def way(kind: str) -> BootMethod:
    """The way of that name."""
    made: BootMethod = getattr(import_module(f"netbench.boot.{kind}"), METHODS[kind])()
    return made
