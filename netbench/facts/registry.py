"""Every fact, one row each.

No fact holds a user's name, a key or the host's own identity. Sources: proc(5), ethtool(8), the
kernel's Documentation/admin-guide/sysctl and Documentation/ABI.
"""

from __future__ import annotations

from collections.abc import Mapping

from netbench.facts.cpu import (
    GUEST_FILE,
    NO_GUEST,
    NOT_EMULATED,
    cores,
    cpu_model,
    cpu_quota,
    emulated_by_clock,
    emulated_by_detection,
    emulated_by_name,
    idle_states,
    lab_guest,
    mitigations,
    sockets,
)
from netbench.facts.fact import CPU, KERNEL, NAME, NETWORK, STORAGE, TCP, Fact, FactSource, Parse
from netbench.facts.fact_text import choice, field, first_line, first_words, not_zero, words
from netbench.facts.network import features, link_speed, of_maximum, qdiscs, route
from netbench.facts.storage import MOUNTS, mounted
from netbench.facts.system import KERNEL_CONFIG, command_line, engine_hash, irq_time_accounting

_V4 = "/proc/sys/net/ipv4/"
_CORE = "/proc/sys/net/core/"
_CPUS = "/sys/devices/system/cpu/"
_NIC = "/sys/class/net/{interface}/"
_CLOCKS = "/sys/devices/system/clocksource/clocksource0/"
_AUTOGROUPS = "/proc/sys/kernel/sched_autogroup_enabled"
_ON, _OFF = choice({"1": "on", "0": "off"}), choice({"0": "on", "1": "off"})
_NAME_KEYS = "^(model name|flags|CPU implementer|CPU part)[[:space:]]*:"
_CPUINFO_KEYS = (
    "^(processor|model name|cpu model|CPU implementer|CPU part|microcode|physical id|core"
    " id)[[:space:]]*:"
)


def _file(path: str, parse: Parse = words) -> tuple[FactSource, ...]:
    return (FactSource("file", (path,), parse),)


def _cpuinfo(parse: Parse) -> tuple[FactSource, ...]:
    """The file of a host with hundreds of CPUs is longer than one operation reads."""
    return (FactSource("exec", ("grep", "-E", _CPUINFO_KEYS, "/proc/cpuinfo"), parse),)


def _interface(op: str, parse: Parse = words) -> tuple[FactSource, ...]:
    return (FactSource(op, ("{interface}",), parse),)


def _script(script: str, parse: Parse, subject: str = "") -> tuple[FactSource, ...]:
    """A script of the shell, about each of a host's subjects where there is one."""
    words = ("sh", f"{{{subject}}}") if subject else ()
    return (FactSource("exec", ("sh", "-c", script, *words), parse),)


def _driver(key: str) -> tuple[FactSource, ...]:
    return _interface("driver", field(key))


def _sysctl(folder: str, name: str, about: str, fact: str = "", setting: str = "") -> Fact:
    path = (folder + name).removeprefix("/proc/sys/").replace("/", ".")
    changed_by = setting or f"sysctl.{path}"
    return Fact(fact or name, about, _file(folder + name), TCP, "sysctls", setting=changed_by)


def _cpu(
    name: str, about: str, sources: tuple[FactSource, ...], row: str = "", setting: str = ""
) -> Fact:
    return Fact(name, about, sources, CPU, row, setting=setting)


def _nic(
    name: str, about: str, sources: tuple[FactSource, ...], row: str = "", setting: str = ""
) -> Fact:
    return Fact(name, about, sources, NETWORK, row, setting=setting)


def _begun(name: str, about: str, sources: tuple[FactSource, ...], group: str = KERNEL) -> Fact:
    """What it was when the campaign began: it changes by itself."""
    about = f"{about} when the campaign began"
    return Fact(name, about, sources, group, varies=True, must_match=False)


# Of each group above it, of cgroup v2 and v1.
_QUOTA = """cat /proc/self/cgroup 2>/dev/null | while IFS=: read -r _ names path; do
case ",$names," in ,, | *,cpu,*) ;; *) continue ;; esac
while for root in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/cpu; do cd "$root$path" &&
echo $(cat cpu.max cpu.cfs_quota_us cpu.cfs_period_us)
done 2>/dev/null; [ "${path%/}" ]; do path=${path%/*}; done; done"""
# As pidof(8), which looks at more of each process: too long where hundreds of hosts share a kernel.
# grep fails where a process has ended meanwhile, and by more where it was not run. Root's count.
_STATE = """command -v "$0" >/dev/null || { echo not installed; exit; }
of=$(grep -slx "$0" /proc/[0-9]*/comm)
[ $? -lt 126 ] || exit 1
for of in $of; do grep -qs '^Uid:[[:space:]]*0[[:space:]]' "${of%comm}status" && break; of=; done
[ "$of" ] && echo running || echo not running
"""

FACTS: tuple[Fact, ...] = (
    Fact("kernel", "kernel release", _file("/proc/sys/kernel/osrelease"), row="kernel"),
    Fact("kernel_build", "kernel build", _file("/proc/sys/kernel/version"), row="kernel"),
    Fact("command_line", "kernel command line", _file("/proc/cmdline", command_line)),
    Fact("tick_rate", "ticks of the kernel a second (CONFIG_HZ)", row="ticks"),
    Fact(
        "irq_time_accounting",
        "whether the kernel measures time in interrupts (CONFIG_IRQ_TIME_ACCOUNTING), or samples it"
        " at ticks",
        _script(KERNEL_CONFIG, irq_time_accounting),
        row="ticks",
    ),
    Fact("clock_source", "clock source", _file(_CLOCKS + "current_clocksource")),
    Fact(
        "mitigations",
        "mitigations of the CPU's vulnerabilities",
        _script(f"cd {_CPUS}vulnerabilities && grep . * /dev/null", mitigations),
    ),
    Fact("engine", "version of the engine", row="engine"),
    Fact(
        "tools",
        "versions of the built-in tools that cells have",
        (FactSource("exec", ("{tool}", "--version"), first_line),),
        row="engine",
    ),
    Fact("layout", "digest of what the engine declares", row="engine"),
    Fact(
        "engine_hash",
        "digest of the worker's file",
        _file("/proc/self/maps", engine_hash),
        row="engine",
    ),
    _cpu("cpu_model", "CPU model", _cpuinfo(cpu_model)),
    _cpu(
        "emulated",
        "which program emulates the CPU",
        (
            FactSource(
                "exec", ("grep", "-m", "4", "-E", _NAME_KEYS, "/proc/cpuinfo"), emulated_by_name
            ),
            FactSource(
                "exec",
                ("systemd-detect-virt", "--vm"),
                emulated_by_detection,
                ("exit status 1:", NOT_EMULATED),  # none
            ),
            FactSource("file", (_CLOCKS + "available_clocksource",), emulated_by_clock),
        ),
    ),
    _cpu(
        "lab_guest",
        "what executes a guest of netbench's lab: KVM, with vhost-net or without, or QEMU TCG",
        (FactSource("file", (GUEST_FILE,), lab_guest, ("No such file", NO_GUEST)),),
    ),
    _cpu("microcode", "microcode revision", _cpuinfo(field("microcode")), "topology"),
    _cpu("cpus_online", "CPUs online", _file(_CPUS + "online"), "topology"),
    _cpu("sockets", "CPU packages", _cpuinfo(sockets), "topology"),
    _cpu("cores", "CPU cores", _cpuinfo(cores), "topology"),
    _cpu("smt", "simultaneous multithreading", _file(_CPUS + "smt/active", _ON), "topology"),
    _cpu("autogroups", "whether sessions share CPUs as groups", _file(_AUTOGROUPS, _ON)),
    _cpu("numa_nodes", "NUMA nodes", _file("/sys/devices/system/node/online"), "topology"),
    Fact(
        "memory",
        "memory",
        _file("/proc/meminfo", field("MemTotal")),
        CPU,
        "topology",
        must_match=False,
    ),
    _cpu(
        "governor",
        "frequency governor of CPU 0",
        _file(_CPUS + "cpu0/cpufreq/scaling_governor"),
        "frequency",
        "governor",
    ),
    _cpu(
        "idle_states",
        "idle states of CPU 0, and how long leaving one takes",
        _script(
            f"cd {_CPUS}cpu0/cpuidle && grep . state*/name state*/latency state*/disable",
            idle_states,
        ),
        "frequency",
    ),
    _cpu(
        "turbo",
        "frequencies above the nominal one",
        (*_file(_CPUS + "intel_pstate/no_turbo", _OFF), *_file(_CPUS + "cpufreq/boost", _ON)),
        "frequency",
        "turbo",
    ),
    _cpu("cpu_quota", "CPUs that the worker's cgroups let it use", _script(_QUOTA, cpu_quota)),
    _cpu(
        "irqbalance",
        "whether irqbalance moves interrupts between CPUs",
        (FactSource("exec", ("sh", "-c", _STATE, "irqbalance")),),
    ),
    Fact("interface", "interface of the data address", _interface(NAME), NETWORK, must_match=False),
    _nic("nic_driver", "driver of the interface", _driver("driver"), "driver"),
    _nic("nic_driver_version", "version of the driver", _driver("version"), "driver"),
    _nic("nic_firmware", "firmware of the device", _driver("firmware"), "driver"),
    Fact("nic_bus", "bus address of the device", _driver("bus"), NETWORK, "bus", must_match=False),
    _nic("nic_numa_node", "NUMA node of the device", _file(_NIC + "device/numa_node"), "bus"),
    _nic("pci_speed", "speed of the PCI link", _file(_NIC + "device/current_link_speed"), "bus"),
    _nic("pci_width", "lanes of the PCI link", _file(_NIC + "device/current_link_width"), "bus"),
    _nic("speed", "speed of the link in Mb/s", _interface("driver", link_speed), "link"),
    _nic("duplex", "duplex of the link", _driver("duplex"), "link"),
    _nic(
        "mtu",
        "MTU of the interface",
        (FactSource("link", ("{interface}", "mtu")), *_file(_NIC + "mtu")),
        "link",
        "mtu",
    ),
    _nic("channels", "queues of the device", _interface("channels", of_maximum), "", "channels"),
    _nic("rings", "ring sizes", _interface("rings", of_maximum), "", "rings"),
    _nic("coalesce", "interrupt coalescing", _interface("coalesce", not_zero), "", "coalesce"),
    _nic("features", "offloads", _interface("features", features)),
    _nic("qdisc", "queueing disciplines", _interface("qdisc", qdiscs), "", "qdisc"),
    _nic("route", "route to the peer", (FactSource("route", ("{peer}",), route),)),
    _sysctl(_V4, "tcp_congestion_control", "default congestion control", "congestion_default"),
    Fact(
        "congestion_available",
        "available congestion controls",
        _file(_V4 + "tcp_available_congestion_control"),
        TCP,
        must_match=False,
    ),
    _sysctl(_V4, "tcp_rmem", "TCP receive buffer: least, default, most"),
    _sysctl(_V4, "tcp_wmem", "TCP send buffer: least, default, most"),
    _sysctl(_CORE, "rmem_max", "most that SO_RCVBUF can ask for"),
    _sysctl(_CORE, "wmem_max", "most that SO_SNDBUF can ask for"),
    _sysctl(_V4, "tcp_timestamps", "TCP timestamps"),
    _sysctl(_V4, "tcp_sack", "TCP selective acknowledgements"),
    _sysctl(_V4, "tcp_window_scaling", "TCP window scaling"),
    _sysctl(_V4, "tcp_mtu_probing", "path MTU probing"),
    _sysctl(_V4, "tcp_slow_start_after_idle", "slow start after an idle period"),
    _sysctl(_V4, "tcp_moderate_rcvbuf", "autotuning of receive buffers"),
    _sysctl(
        _V4,
        "tcp_no_metrics_save",
        "whether TCP drops what it has learnt of an address, not kept for its next connection",
        setting="tcp_metrics",
    ),
    _begun(
        "tcp_metrics",
        "addresses that TCP had learnt something of",
        (FactSource("tcp_metrics", ("addresses",)),),
        TCP,
    ),
    _sysctl(_V4, "tcp_limit_output_bytes", "bytes of a socket that may wait in qdisc and device"),
    _sysctl(_CORE, "netdev_budget", "packets that a softirq polls at most"),
    _sysctl(_CORE, "netdev_max_backlog", "packets that wait for a CPU's softirq at most"),
    _sysctl(_CORE, "busy_poll", "busy polling in poll and select"),
    _sysctl(_CORE, "busy_read", "busy polling in reads"),
    _sysctl(_CORE, "default_qdisc", "queueing discipline of new interfaces"),
    _sysctl(_CORE, "rps_sock_flow_entries", "receive flow steering entries"),
    *(
        Fact(f"{end}_mount", f"file system of the {end}", _script(MOUNTS, mounted, end), STORAGE)
        for end in ("source", "sink")
    ),
    _begun("load", "load averages", _file("/proc/loadavg", first_words(3)), CPU),
    Fact(
        "uptime",
        "seconds since boot",
        _file("/proc/uptime", first_words(1)),
        varies=True,
        must_match=False,
    ),
)
BY_NAME: Mapping[str, Fact] = {fact.name: fact for fact in FACTS}
