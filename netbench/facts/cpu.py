"""Parsers for facts about the CPU. Sources: proc(5), systemd-detect-virt(1), the kernel's
Documentation/ABI/testing/sysfs-devices-system-cpu.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from netbench.facts.fact_text import fields, words

NOT_EMULATED = "no"
NO_GUEST = "no"
"""The fact `lab_guest` of all other hosts."""
GUEST_FILE = "/etc/netbench.guest"
_ACCELERATOR = re.compile(r"^ACCELERATOR='(.+)'$", re.MULTILINE)
_EMULATORS = {"qemu": "QEMU TCG", "bochs": "Bochs"}
"""Names that systemd-detect-virt(1) gives to emulators without hardware support (`kvm` differs)."""
_HYPERVISOR_CLOCKS = ("kvm-clock", "hyperv", "xen")
"""Clocks of hypervisors that execute a guest's instructions on the CPU itself."""


def _processors(text: str) -> list[dict[str, str]]:
    """The blocks of /proc/cpuinfo. A repeated key starts a block, since grep drops empty lines."""
    blocks: list[dict[str, str]] = [{}]
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            continue
        if key.strip() in blocks[-1]:
            blocks.append({})
        blocks[-1][key.strip()] = words(value)
    return blocks


def cpu_model(text: str) -> str:
    """The CPU's name; on ARM the implementer's and the part's number. Errors: ValueError."""
    first = _processors(text)[0]
    for key in ("model name", "Processor", "cpu model", "cpu"):
        if first.get(key):
            return first[key]
    if "CPU part" in first:
        return f"implementer {first.get('CPU implementer', '?')} part {first['CPU part']}"
    raise ValueError("no CPU model in it")


def cpu_quota(text: str) -> str:
    """The smallest of lines with a quota and its period: `0.6`; `none` where there is no quota."""
    rows = (line.split() for line in text.splitlines())
    quotas = [int(row[0]) / int(row[1]) for row in rows if row and row[0].isdecimal()]
    return f"{min(quotas):g}" if quotas else "none"


def sockets(text: str) -> str:
    """Packages with a CPU online. Errors: ValueError where /proc/cpuinfo has no topology."""
    return str(len({_socket_and_core(block)[0] for block in _processors(text)}))


def cores(text: str) -> str:
    """Cores with a CPU online. Errors: as sockets."""
    return str(len({_socket_and_core(block) for block in _processors(text)}))


def _socket_and_core(processor: Mapping[str, str]) -> tuple[str, str]:
    if "physical id" not in processor or "core id" not in processor:
        raise ValueError("no CPU topology in it")
    return processor["physical id"], processor["core id"]


def emulated_by_name(text: str) -> str:
    """The program that emulates the CPU, or NOT_EMULATED, from /proc/cpuinfo.

    QEMU's TCG calls its `max` CPU so on x86; on ARM it is part 0x051 of implementer 0x00. An x86
    CPU without the flag `hypervisor` is not a guest's. Errors: ValueError in any other case.
    """
    values = fields(text)
    arm = values.get("CPU implementer"), values.get("CPU part")
    if "TCG" in values.get("model name", "") or arm == ("0x00", "0x051"):
        return _EMULATORS["qemu"]
    if "flags" in values and "hypervisor" not in values["flags"].split():
        return NOT_EMULATED
    raise ValueError("the CPU model does not show it")


def emulated_by_detection(text: str) -> str:
    """The program that emulates the CPU, or NOT_EMULATED, from systemd-detect-virt(1)."""
    return _EMULATORS.get(words(text), NOT_EMULATED)


def emulated_by_clock(text: str) -> str:
    """NOT_EMULATED where a hypervisor offers its clock. Errors: ValueError: not known."""
    if any(name.startswith(_HYPERVISOR_CLOCKS) for name in text.split()):
        return NOT_EMULATED
    raise ValueError("no clock of a hypervisor in it")


def lab_guest(text: str) -> str:
    """What executes a lab's guest, in the words of the file that the lab has put there. Errors:
    ValueError where it does not say.
    """
    match = _ACCELERATOR.search(text)
    if not match:
        raise ValueError("no ACCELERATOR in it")
    return match[1]


def mitigations(text: str) -> str:
    """The mitigation of each vulnerability that affects this CPU, and the number of the others."""
    states = fields(text)
    affecting = {name: state for name, state in states.items() if state != "Not affected"}
    parts = [
        f"{name}: {state.removeprefix('Mitigation: ')}" for name, state in sorted(affecting.items())
    ]
    others = len(states) - len(affecting)
    if others:
        parts.append(f"{others} more do not affect it" if parts else f"none of {others} affects it")
    return "; ".join(parts)


def idle_states(text: str) -> str:
    """The idle states of CPU 0, each with the time that it takes to leave it. Source: the kernel's
    Documentation/ABI/testing/sysfs-devices-system-cpu.
    """
    keys = fields(text)
    names = {key: name for key, name in keys.items() if key.endswith("/name")}
    states = []
    for key, name in names.items():
        state = key.removesuffix("/name")
        off = " (off)" if keys.get(f"{state}/disable", "0") != "0" else ""
        states.append(f"{name} {keys[f'{state}/latency']} µs{off}")
    return ", ".join(states)
