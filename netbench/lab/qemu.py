"""Hosts that are guests of QEMU, each with a kernel of its own: under KVM, or under software
emulation.

    root namespace            nb-LAB-switch                                guest
    nb-LAB  ----------------  uplink [bridge mgmt] mgmt1 (tap) - QEMU ---  mgmt0   SSH
                                     [bridge data] data1 (tap) - QEMU ---  data0   data

A rate or a delay is on the switch's ports, towards each guest. A guest's root is in its memory:
what it writes is lost with its next boot, except /boot of a lab with disks, which also holds the
lab's kernels as installed ones (vmlinuz-RELEASE, initrd.img-RELEASE).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netbench.base.errors import LabRefused
from netbench.lab import debian, guest_kernel, guests, netns, sshd, trial
from netbench.lab.command import Tools, together
from netbench.lab.guest_console import await_login
from netbench.lab.lab import Kind, Lab, LabSpec
from netbench.lab.state import SWITCH, namespace_name
from netbench.lab.userland import userland
from netbench.model import Kernel

NEEDS = ("ip", "ssh", "ssh-keygen", guests.PROGRAM, *trial.NEEDS, *guest_kernel.NEEDS)
TUN = Path("/dev/net/tun")


def _needs(spec: LabSpec) -> Sequence[str]:
    return (*NEEDS, *(("mke2fs",) if spec.disk else ()), *netns.shaping(spec))


def prepare(spec: LabSpec, tools: Tools) -> LabSpec:
    """Find or build everything that the guests start from, and try KVM with it. Errors: LabRefused,
    LabError; RequestError about a kernel's files.
    """
    if not TUN.exists():
        raise LabRefused(f"guests need {TUN}, which does not exist; run `modprobe tun`")
    programs = userland(tools)
    release = "" if spec.kernels else debian.newest(tools)
    kernels = spec.kernels or (Kernel(debian.series(release), release=release),)
    ready = {kernel.name: guest_kernel.build(kernel, programs, tools) for kernel in kernels}
    accelerator = trial.choose(ready.values(), len(spec.hosts), tools)
    return spec._replace(ready=ready, accelerator=accelerator)


def make(spec: LabSpec, folder: Path, tools: Tools) -> Lab:
    """Make keys, links and guests. Errors: LabError; `remove` then deletes what was made."""
    switch = namespace_name(spec.name, SWITCH)
    network = netns.management_network(netns.networks_in_use(tools))
    hosts = netns.lab_hosts(spec, network, ipv6=True, space=switch)
    config = sshd.keys(folder, hosts.values(), tools)
    lab = Lab(spec.name, spec.kind, folder, hosts, config, dict(spec.ready), spec.accelerator)
    taps = []
    for number in range(1, len(hosts) + 1):
        several = " multi_queue" if spec.accelerator.queues(number - 1) > 1 else ""
        taps.append(f"tuntap add dev mgmt{number} mode tap vnet_hdr")
        taps.append(f"tuntap add dev data{number} mode tap vnet_hdr{several}")
    tools.batch(("ip",), [f"netns add {switch}"])
    tools.batch(("ip", "-n", switch), ["link set lo up", *taps])
    netns.connect(spec, network, tools)
    first = next(iter(lab.kernels.values()))
    together(lambda host: guests.make_guest(lab, host, first, spec.disk, tools), hosts.values())
    together(lambda host: await_login(lab, host, tools), hosts.values())
    return lab


QEMU = Kind(_needs, make, prepare)
