"""The registry of facts: what is read from a host because a result depends on it. Reading is hosts/probe.py's business.

`must_match`: results whose hosts differ in it are not pooled.
Sources: proc(5), the kernel's Documentation/admin-guide/sysctl and Documentation/ABI.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """One fact: its name, the file of /proc or /sys that holds it, and how its text becomes a word."""

    name: str
    file: str
    about: str
    must_match: bool = False
    varies: bool = False  # by itself, from one moment to the next
    parse: Callable[[str], str] = lambda text: " ".join(text.split())


def _field(key: str) -> Callable[[str], str]:
    """The value of the first `key : value` line, as in /proc/cpuinfo and /proc/meminfo. Errors: ValueError."""

    def parse(text: str) -> str:
        for line in text.splitlines():
            name, colon, value = line.partition(":")
            if colon and name.strip() == key:
                return " ".join(value.split())
        raise ValueError(f"it has no line {key!r}")

    return parse


def _first_words(count: int) -> Callable[[str], str]:
    return lambda text: " ".join(text.split()[:count])


_V4 = "/proc/sys/net/ipv4/"
_CORE = "/proc/sys/net/core/"
_CPU = "/sys/devices/system/cpu/"

FACTS: tuple[Fact, ...] = (
    Fact("kernel", "/proc/sys/kernel/osrelease", "kernel release", must_match=True),
    Fact("kernel_build", "/proc/sys/kernel/version", "kernel build", must_match=True),
    Fact("command_line", "/proc/cmdline", "kernel command line", must_match=True),
    Fact("cpu_model", "/proc/cpuinfo", "CPU model", must_match=True, parse=_field("model name")),
    Fact("cpus_online", _CPU + "online", "CPUs online", must_match=True),
    Fact("smt", _CPU + "smt/active", "simultaneous multithreading: 1 active"),
    Fact("numa_nodes", "/sys/devices/system/node/online", "NUMA nodes"),
    Fact("memory", "/proc/meminfo", "memory", parse=_field("MemTotal")),
    Fact("governor", _CPU + "cpu0/cpufreq/scaling_governor", "frequency governor of CPU 0"),
    Fact("turbo_off", _CPU + "intel_pstate/no_turbo", "1: turbo is off"),
    Fact("clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource", "clock source", must_match=True),
    Fact("spectre_v2", _CPU + "vulnerabilities/spectre_v2", "mitigation of Spectre v2", must_match=True),
    Fact("meltdown", _CPU + "vulnerabilities/meltdown", "mitigation of Meltdown", must_match=True),
    Fact("congestion_default", _V4 + "tcp_congestion_control", "default congestion control"),
    Fact("congestion_available", _V4 + "tcp_available_congestion_control", "available congestion controls"),
    Fact("tcp_rmem", _V4 + "tcp_rmem", "TCP receive buffer: least, default, most"),
    Fact("tcp_wmem", _V4 + "tcp_wmem", "TCP send buffer: least, default, most"),
    Fact("rmem_max", _CORE + "rmem_max", "most that SO_RCVBUF can ask for"),
    Fact("wmem_max", _CORE + "wmem_max", "most that SO_SNDBUF can ask for"),
    Fact("tcp_timestamps", _V4 + "tcp_timestamps", "TCP timestamps"),
    Fact("tcp_sack", _V4 + "tcp_sack", "TCP selective acknowledgements"),
    Fact("busy_poll", _CORE + "busy_poll", "busy polling"),
    Fact("rps_sock_flow_entries", _CORE + "rps_sock_flow_entries", "receive flow steering entries"),
    Fact("load", "/proc/loadavg", "load averages when the campaign began", varies=True, parse=_first_words(3)),
    Fact("uptime", "/proc/uptime", "seconds since boot", varies=True, parse=_first_words(1)),
)
