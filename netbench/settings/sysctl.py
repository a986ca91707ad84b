"""Any sysctl by its name: sysctl.net.ipv4.tcp_sack."""

from __future__ import annotations

from netbench.settings.file import KernelFile


class Sysctl(KernelFile):
    name = "sysctl."
    about = "Any sysctl by its name, such as sysctl.net.ipv4.tcp_sack."

    def path(self, what: str) -> str:
        # As sysctl(8): where a slash comes first, dots are part of the names
        # (net/ipv4/conf/eth0.1/forwarding).
        name = (
            what
            if "/" in what.split(".", 1)[0]
            else what.replace("/", "\0").replace(".", "/").replace("\0", ".")
        )
        if ".." in name.split("/") or name.startswith("/"):
            raise ValueError("the name of a sysctl such as net.ipv4.tcp_sack")
        return f"/proc/sys/{name}"

    def is_whole_kernel(self, what: str) -> bool:
        return not self.path(what).startswith("/proc/sys/net/")
