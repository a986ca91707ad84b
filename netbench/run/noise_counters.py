"""Counters that tell noise, from the texts of the kernel and of a device.

Sources: proc(5), proc_net(5), the kernel's Documentation/networking/statistics.rst.
"""

from __future__ import annotations

import re

CPU_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
OF_INTERFACE = ("bytes", "packets", "errors", "dropped", "fifo", "frame", "compressed", "multicast")
OF_INTERFACE_OUT = (
    "bytes",
    "packets",
    "errors",
    "dropped",
    "fifo",
    "collisions",
    "carrier",
    "compressed",
)
USUAL = ("bytes", "packets", "compressed", "multicast")

# Counters of the protocols that stand still while all is well; what ends or probes a connection as
# it should is not among them.
TROUBLE = re.compile(
    "Retrans|Timeout|Loss|Lost|Drop|Discard|Err|Fail|Overflow|Prune|Collapsed|Reneg|Reorder|MemoryPressure|NoRoutes|Unreachs"
    "|TimeExcds|PAWS|Spurious|AbortOnMemory|AbortOnTimeout|AbortFailed|UnknownProtos|Filter|TooBig|RcvQDrop"
)
ALL_WELL = ("TCPLossProbes", "MemoryPressuresChrono")
OF_DEVICE = re.compile(
    "pause|drop|err|discard|miss|fifo|overrun|overflow|over_|crc|no_?buf|out_of_buf|timeout",
    re.IGNORECASE,
)


def cpu_states(text: str) -> dict[str, int]:
    """Ticks of all CPUs together by state, of /proc/stat. Errors: ValueError."""
    first = text.partition("\n")[0].split()
    if not first or first[0] != "cpu":
        raise ValueError("/proc/stat does not begin with the line of all CPUs")
    return dict(zip(CPU_STATES, map(int, first[1:]), strict=False))


def protocols(text: str) -> dict[str, int]:
    """Counters of /proc/net/snmp or /proc/net/netstat that should stand still:
    `TcpExt.TCPTimeouts`.
    """
    counters: dict[str, int] = {}
    lines = text.splitlines()
    for names, numbers in zip(lines[::2], lines[1::2], strict=False):
        group, _, rest = names.partition(":")
        for name, number in zip(rest.split(), numbers.partition(":")[2].split(), strict=False):
            if TROUBLE.search(name) and not name.endswith(ALL_WELL):
                counters[f"{group}.{name}"] = int(number)
    return counters


def interface(text: str, name: str) -> dict[str, int]:
    """Errors and drops of one interface in /proc/net/dev: `eth1.rx_dropped`. Errors: ValueError
    when it is not there.
    """
    for line in text.splitlines():
        key, colon, numbers = line.partition(":")
        if colon and key.strip() == name:
            values = [int(number) for number in numbers.split()]
            keys = [f"rx_{key}" for key in OF_INTERFACE] + [f"tx_{key}" for key in OF_INTERFACE_OUT]
            pairs = zip(keys, values, strict=False)
            return {
                f"{name}.{key}": value for key, value in pairs if key.partition("_")[2] not in USUAL
            }
    raise ValueError(f"/proc/net/dev has no {name}")


def device(text: str, name: str) -> dict[str, int]:
    """A device's own counters of drops, errors and pauses: `eth1.ethtool rx_pause`."""
    rows = (line.partition(":") for line in text.splitlines())
    return {
        f"{name}.ethtool {key.strip()}": int(value)
        for key, _, value in rows
        if OF_DEVICE.search(key) and value.strip().isdecimal()
    }


def softnet(text: str) -> dict[str, int]:
    """Packets that found a CPU's queue full, of /proc/net/softnet_stat (hexadecimal, a
    line a CPU).
    """
    return {
        "softnet.dropped": sum(
            int(line.split()[1], 16) for line in text.splitlines() if len(line.split()) > 1
        )
    }


def process(text: str) -> tuple[int, int]:
    """The number of a process, and the ticks that it and its children have used, of
    /proc/self/stat.
    """
    numbers = text.rpartition(")")[2].split()
    return int(text.split(maxsplit=1)[0]), sum(int(number) for number in numbers[11:15])
