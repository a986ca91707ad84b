"""Ways to bring a host up on another kernel: one small file each, found by name."""

from __future__ import annotations

from importlib import import_module

from netbench.boot.base import GLANCE_SECONDS, Machine, State, Target, Way

__all__ = ["GLANCE_SECONDS", "WAYS", "Machine", "State", "Target", "Way", "way"]

WAYS = {"kexec": "Kexec", "grub": "Grub", "qemu": "Qemu", "command": "Command"}


def way(kind: str) -> Way:
    """The way of that name."""
    made: Way = getattr(import_module(f"netbench.boot.{kind}"), WAYS[kind])()
    return made
