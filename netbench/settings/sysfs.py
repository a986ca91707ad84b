"""Any file below /sys: sysfs.kernel/mm/transparent_hugepage/enabled."""

from __future__ import annotations

from netbench.settings.file import KernelFile


class Sysfs(KernelFile):
    name = "sysfs."
    about = "Any file below /sys, such as sysfs.kernel/mm/transparent_hugepage/enabled."

    def path(self, what: str) -> str:
        name = what.removeprefix("/sys/").lstrip("/")
        if ".." in name.split("/") or not name:
            raise ValueError("a path below /sys such as class/net/eth1/gro_flush_timeout")
        return f"/sys/{name}"

    def is_whole_kernel(self, what: str) -> bool:
        return not self.path(what).startswith("/sys/class/net/")
