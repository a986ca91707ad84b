"""Hosts made on this machine: network namespaces, or guests of QEMU."""

from netbench.lab.lab import Lab, LabHost, LabKernel
from netbench.lab.lifecycle import campaign_hosts, down, reap, require_lab, status, unused, up

__all__ = [
    "Lab",
    "LabHost",
    "LabKernel",
    "campaign_hosts",
    "down",
    "reap",
    "require_lab",
    "status",
    "unused",
    "up",
]
