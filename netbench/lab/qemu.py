"""Hosts that are guests of QEMU, each with a kernel of its own: under KVM, or under software
emulation.

    root namespace                        nb-LAB-switch                guest
    127.0.0.1:PORT - QEMU's user network ----------------------------  mgmt0   SSH
                                          [bridge data] data1 (tap) -  data0   data

A rate or a delay is on the switch's ports, towards each guest. A guest's root is in its memory:
what it writes is lost with its next boot, except /boot of a lab with disks, which also holds the
lab's kernels as installed ones (vmlinuz-RELEASE, initrd.img-RELEASE).
"""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from netbench.base.errors import LabError, LabRefused
from netbench.kernels.cache import prune
from netbench.lab import emulator, guest_kernel, guests, netns, sshd, trial
from netbench.lab.command import Tools, together
from netbench.lab.kept import say
from netbench.lab.lab import Kind, Lab, LabHost, LabSpec
from netbench.lab.login import await_login
from netbench.lab.names import SWITCH, namespace_name
from netbench.lab.userland import Userland, userland

LOCAL = "127.0.0.1"
NEEDS = ("ip", "ssh", "ssh-keygen", emulator.PROGRAM, *trial.NEEDS, *guest_kernel.NEEDS)
_PORTS = (20000, 32000)  # below Linux' ephemeral ports
_DISK_NEEDS = ("mke2fs",)


def _needs(spec: LabSpec) -> Sequence[str]:
    return (*NEEDS, *(_DISK_NEEDS if spec.disk else ()), *netns.shaping(spec))


def require(tools: Tools) -> Userland:
    """The programs of guests, which take seconds at most to find. Errors: LabRefused for what this
    machine lacks; LabError.
    """
    if not emulator.TUN.exists():
        raise LabRefused(f"guests need {emulator.TUN}, which does not exist; run `modprobe tun`")
    return userland(tools)


def prepare(spec: LabSpec, tools: Tools) -> LabSpec:
    """Find or build everything that the guests start from, and try KVM with it. Errors: LabRefused,
    LabError; RequestError about a kernel's files.
    """
    programs = require(tools)
    wanted = spec.kernels or (guest_kernel.newest_kernel(tools),)
    ready = {kernel.name: guest_kernel.build(kernel, programs, tools) for kernel in wanted}
    prune(say)
    versions = programs.versions | {"qemu": _version(tools)}
    accelerator = trial.choose(ready.values(), len(spec.hosts), tools)
    return replace(spec, ready=ready, versions=versions, accelerator=accelerator)


def _version(tools: Tools) -> str:
    return tools.run((emulator.PROGRAM, "--version")).splitlines()[0]


def make(spec: LabSpec, folder: Path, tools: Tools) -> Lab:
    """Make keys, the data link and the guests. Errors: LabError; `remove` then deletes what was
    made.
    """
    ports = _free_ports(len(spec.hosts))
    hosts = {
        name: _host(spec.name, i, name, port)
        for i, (name, port) in enumerate(zip(spec.hosts, ports, strict=True), 1)
    }
    config = sshd.keys(folder, hosts.values(), tools)
    ready, versions = dict(spec.ready), dict(spec.versions)
    lab = Lab(spec.name, spec.kind, folder, hosts, config, ready, versions, spec.accelerator)
    _links(spec, tools)
    first = next(iter(lab.kernels.values()))
    together(lambda host: guests.make_guest(lab, host, first, spec.disk, tools), hosts.values())
    together(lambda host: await_login(lab, host, tools), hosts.values())
    return lab


def _process(folder: Path, host: str) -> int | None:
    return next((one.pid for one in emulator.running(folder.name, folder, host)), None)


QEMU = Kind(_needs, make, _process, prepare, require)


def _free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that are free. Errors: LabError."""
    ports: list[int] = []
    for port in random.sample(range(*_PORTS), _PORTS[1] - _PORTS[0]):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((LOCAL, port))
            ports.append(port)
        if len(ports) == count:
            return ports
    raise LabError(f"fewer than {count} ports of {LOCAL} are free in {_PORTS[0]}..{_PORTS[1]}")


def _host(lab: str, number: int, name: str, port: int) -> LabHost:
    data4, data6 = netns.data_addresses(number)
    return LabHost(
        name, f"{lab}-{name}", data4, data6, netns.DATA, namespace_name(lab, SWITCH), LOCAL, port
    )


def _links(spec: LabSpec, tools: Tools) -> None:
    switch = namespace_name(spec.name, SWITCH)
    ports = [guests.tap_name(i) for i in range(1, len(spec.hosts) + 1)]
    tools.batch(("ip",), [f"netns add {switch}"])
    netns.probe(spec, switch, tools)
    ipv6 = netns.has_ipv6()
    lines = [
        "link set lo up",
        "link add data type bridge stp_state 0 mcast_snooping 0",
        *netns.configure("data", "", ipv6),
    ]
    for i, port in enumerate(ports):
        several = " multi_queue" if spec.accelerator.queues(i) > 1 else ""
        lines += [
            f"tuntap add dev {port} mode tap vnet_hdr{several}",
            f"link set {port} master data",
            *netns.configure(port, "", ipv6),
        ]
    tools.batch(("ip", "-n", switch), lines)
    netns.shape_ports(spec, switch, ports, tools)
