"""Hosts made on this machine: network namespaces, or guests of QEMU."""

from netbench.lab.lab import HostStatus, Lab, LabHost, LabKernel, LabStatus
from netbench.lab.lifecycle import campaign_hosts, down, reap, require_lab, status, unused, up

__all__ = [
    "HostStatus",
    "Lab",
    "LabHost",
    "LabKernel",
    "LabStatus",
    "campaign_hosts",
    "down",
    "reap",
    "require_lab",
    "status",
    "unused",
    "up",
]
