"""The hardware of a result in a line, from its facts: nothing that says whose it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from netbench.read.result import Result
from netbench.report.numbers import count
from netbench.stats.boots import KERNEL

LOOPBACK = "lo"
_NOISE = re.compile(r"\((?:R|TM|r|tm)\)|\bCPU\b|\bProcessor\b|@.*")


def hardware(result: Result) -> str:
    """`2x EPYC 9454, mlx5_core at 100 Gb/s, MTU 4096, 1 flow, sender and receiver apart`; sides
    that differ are told one by one.
    """
    facts = {host: entries[-1].facts for host, entries in result.hosts.items() if entries}
    machines: dict[str, list[str]] = {}
    for host, known in facts.items():
        one_kernel = KERNEL not in result.factors
        machines.setdefault(", ".join(_machine(known, one_kernel)), []).append(host)
    if len(machines) == 1:
        ((machine, hosts),) = machines.items()
        told = machine if len(hosts) == 1 else f"{len(hosts)} hosts, each {machine}"
    else:
        told = "; ".join(machines) or "hardware unknown"
    return ", ".join([told, *_cell(result)])


def releases(result: Result, kernels: Iterable[str]) -> str:
    """What each of the kernels that were booted calls itself: `old: Linux 6.1.9, new: Linux
    6.12.4`; "" where netbench booted none.
    """
    found: dict[str, dict[str, None]] = {kernel: {} for kernel in kernels}
    for entry in (entry for entries in result.hosts.values() for entry in entries):
        if entry.on in found and entry.facts.get("kernel"):
            found[entry.on][f"Linux {entry.facts['kernel']}"] = None
    return ", ".join(f"{level}: {' and '.join(names)}" for level, names in found.items() if names)


def _machine(facts: Mapping[str, Any], one_kernel: bool) -> Iterator[str]:
    """`one_kernel`: the same in all cells; else the table's levels tell kernels apart."""
    cpus = " ".join(_NOISE.sub("", str(facts.get("cpu_model") or "unknown CPU")).split())
    sockets = str(facts.get("sockets") or "1")
    cores = _number(facts.get("cores"))
    yield f"{sockets}x {cpus}" + (f" ({count(cores, 'core')})" if cores else "")
    if one_kernel:
        yield f"Linux {facts.get('kernel') or 'unknown'}"
    driver = facts.get("nic_driver")
    if facts.get("interface") == LOOPBACK:
        yield "loopback"
    elif driver:
        yield " ".join(_interface(facts))
    if facts.get("mtu"):
        yield f"MTU {facts['mtu']}"


def _interface(facts: Mapping[str, Any]) -> Iterator[str]:
    yield str(facts["nic_driver"])
    if speed := _number(facts.get("speed")):
        yield f"at {speed / 1000:g} Gb/s"
    if facts.get("nic_firmware"):
        yield f"firmware {facts['nic_firmware']}"
    if facts.get("pci_width"):
        yield f"PCIe x{facts['pci_width']} {facts.get('pci_speed') or ''}".strip()
    if facts.get("nic_numa_node") not in (None, "-1"):
        yield f"on NUMA node {facts['nic_numa_node']}"


def _number(value: object) -> int:
    """0 for what is none."""
    return int(str(value)) if str(value).isdigit() else 0


def _cell(result: Result) -> Iterator[str]:
    """What all cells have in common: flows, and where the sides run."""
    asked = {name.partition(".")[2]: word for name, word in (result.asked or {}).items()}
    if "streams" not in result.factors:
        yield count(int(asked.get("streams", "1")), "flow")
    if "pin" not in result.factors and asked.get("pin", "none") != "none":
        yield f"pinned: {asked['pin']}"
    if "congestion" not in result.factors and "congestion" in asked:
        yield asked["congestion"]
