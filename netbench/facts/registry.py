"""Every fact, one row each.

No fact holds a user's name, a key or the host's own identity. Sources: proc(5), ethtool(8), the
kernel's Documentation/admin-guide/sysctl and Documentation/ABI.
"""

from __future__ import annotations

from collections.abc import Mapping

from netbench.facts.cpu import (
    BANDWIDTH,
    CACHES,
    GUEST_FILE,
    NO_GUEST,
    NOT_EMULATED,
    bandwidth,
    caches,
    cores,
    cpu_model,
    emulated_by_clock,
    emulated_by_detection,
    emulated_by_name,
    lab_guest,
    mitigations,
    sockets,
)
from netbench.facts.fact import CPU, NETWORK, STORAGE, TCP, Fact, FactSource, Parse
from netbench.facts.fact_text import choice, field, first_line, first_words, not_zero, words
from netbench.facts.network import features, link_speed, of_maximum, qdiscs, route
from netbench.facts.storage import DEVICES, FREE, devices, free_space, mounted
from netbench.facts.system import KERNEL_CONFIG, command_line, engine_hash, irq_time_accounting

_V4 = "/proc/sys/net/ipv4/"
_CORE = "/proc/sys/net/core/"
_CPUS = "/sys/devices/system/cpu/"
_NIC = "/sys/class/net/{interface}/"
_CLOCKS = "/sys/devices/system/clocksource/clocksource0/"
_NAME_KEYS = "^(model name|flags|CPU implementer|CPU part)[[:space:]]*:"
_CPUINFO_KEYS = (
    "^(processor|model name|cpu model|CPU implementer|CPU part|microcode|physical id|core"
    " id)[[:space:]]*:"
)


def _file(path: str, parse: Parse = words) -> tuple[FactSource, ...]:
    return (FactSource("file", (path,), parse),)


def _cpuinfo(parse: Parse) -> tuple[FactSource, ...]:
    """The file of a host with hundreds of CPUs is longer than one operation reads: then grep."""
    grep = ("grep", "-E", _CPUINFO_KEYS, "/proc/cpuinfo")
    return FactSource("file", ("/proc/cpuinfo",), parse), FactSource("exec", grep, parse)


def _interface(op: str, parse: Parse = words) -> tuple[FactSource, ...]:
    return (FactSource(op, ("{interface}",), parse),)


def _script(script: str, subject: str, parse: Parse) -> tuple[FactSource, ...]:
    """A script of the shell about each of a host's subjects."""
    return (FactSource("exec", ("sh", "-c", script, "sh", f"{{{subject}}}"), parse),)


def _driver(key: str) -> tuple[FactSource, ...]:
    return _interface("driver", field(key))


def _sysctl(folder: str, name: str, about: str, fact: str = "", setting: str = "") -> Fact:
    path = (folder + name).removeprefix("/proc/sys/").replace("/", ".")
    changed_by = setting or f"sysctl.{path}"
    return Fact(fact or name, about, _file(folder + name), TCP, "sysctls", setting=changed_by)


# As pidof(8), which looks at more of each process: too long where hundreds of hosts share a kernel.
# cat fails where a process has ended meanwhile, and by more where it was not run.
_STATE = """command -v "$0" >/dev/null || { echo not installed; exit; }
names=$(cat /proc/[0-9]*/comm 2>/dev/null)
[ $? -lt 126 ] || exit 1
case "
$names
" in *"
$0
"*) echo running;; *) echo not running;; esac
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
        (FactSource("exec", ("sh", "-c", KERNEL_CONFIG), irq_time_accounting),),
        row="ticks",
    ),
    Fact("clock_source", "clock source", _file(_CLOCKS + "current_clocksource")),
    Fact(
        "mitigations",
        "mitigations of the CPU's vulnerabilities",
        (FactSource("files", (_CPUS + "vulnerabilities",), mitigations),),
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
    Fact("cpu_model", "CPU model", _cpuinfo(cpu_model), CPU),
    Fact(
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
        CPU,
    ),
    Fact(
        "lab_guest",
        "what executes a guest of netbench's lab: KVM, with vhost-net or without, or QEMU TCG",
        (FactSource("file", (GUEST_FILE,), lab_guest, ("No such file", NO_GUEST)),),
        CPU,
    ),
    Fact("microcode", "microcode revision", _cpuinfo(field("microcode")), CPU, "topology"),
    Fact("cpus_online", "CPUs online", _file(_CPUS + "online"), CPU, "topology"),
    Fact("sockets", "CPU packages", _cpuinfo(sockets), CPU, "topology"),
    Fact("cores", "CPU cores", _cpuinfo(cores), CPU, "topology"),
    Fact(
        "smt",
        "simultaneous multithreading",
        _file(_CPUS + "smt/active", choice({"1": "on", "0": "off"})),
        CPU,
        "topology",
    ),
    Fact(
        "caches",
        "caches of CPU 0, and their associativity",
        (FactSource("exec", ("sh", "-c", CACHES), caches),),
        CPU,
        "topology",
    ),
    Fact(
        "memory_bandwidth",
        "how fast one CPU fills 64 MiB of memory, measured when the campaign began",
        _script(BANDWIDTH, "memory", bandwidth),
        CPU,
        varies=True,
        must_match=False,
    ),
    Fact("numa_nodes", "NUMA nodes", _file("/sys/devices/system/node/online"), CPU, "topology"),
    Fact(
        "memory",
        "memory",
        _file("/proc/meminfo", field("MemTotal")),
        CPU,
        "topology",
        must_match=False,
    ),
    Fact(
        "governor",
        "frequency governor of CPU 0",
        _file(_CPUS + "cpu0/cpufreq/scaling_governor"),
        CPU,
        "frequency",
        setting="governor",
    ),
    Fact(
        "turbo",
        "frequencies above the nominal one",
        (
            FactSource("file", (_CPUS + "intel_pstate/no_turbo",), choice({"0": "on", "1": "off"})),
            FactSource("file", (_CPUS + "cpufreq/boost",), choice({"1": "on", "0": "off"})),
        ),
        CPU,
        "frequency",
        setting="turbo",
    ),
    Fact(
        "irqbalance",
        "whether irqbalance moves interrupts between CPUs",
        (FactSource("exec", ("sh", "-c", _STATE, "irqbalance")),),
        CPU,
    ),
    Fact(
        "interface", "interface of the data address", _interface("name"), NETWORK, must_match=False
    ),
    Fact("nic_driver", "driver of the interface", _driver("driver"), NETWORK, "driver"),
    Fact("nic_driver_version", "version of the driver", _driver("version"), NETWORK, "driver"),
    Fact("nic_firmware", "firmware of the device", _driver("firmware"), NETWORK, "driver"),
    Fact("nic_bus", "bus address of the device", _driver("bus"), NETWORK, "bus", must_match=False),
    Fact(
        "nic_numa_node", "NUMA node of the device", _file(_NIC + "device/numa_node"), NETWORK, "bus"
    ),
    Fact(
        "pci_speed",
        "speed of the PCI link",
        _file(_NIC + "device/current_link_speed"),
        NETWORK,
        "bus",
    ),
    Fact(
        "pci_width",
        "lanes of the PCI link",
        _file(_NIC + "device/current_link_width"),
        NETWORK,
        "bus",
    ),
    Fact("speed", "speed of the link in Mb/s", _interface("driver", link_speed), NETWORK, "link"),
    Fact("duplex", "duplex of the link", _driver("duplex"), NETWORK, "link"),
    Fact(
        "mtu",
        "MTU of the interface",
        (FactSource("link", ("{interface}", "mtu")), FactSource("file", (_NIC + "mtu",))),
        NETWORK,
        "link",
        setting="mtu",
    ),
    Fact(
        "channels",
        "queues of the device",
        _interface("channels", of_maximum),
        NETWORK,
        setting="channels",
    ),
    Fact("rings", "ring sizes", _interface("rings", of_maximum), NETWORK, setting="rings"),
    Fact(
        "coalesce",
        "interrupt coalescing",
        _interface("coalesce", not_zero),
        NETWORK,
        setting="coalesce",
    ),
    Fact("features", "offloads", _interface("features", features), NETWORK),
    Fact("qdisc", "queueing disciplines", _interface("qdisc", qdiscs), NETWORK, setting="qdisc"),
    Fact("route", "route to the peer", (FactSource("route", ("{peer}",), route),), NETWORK),
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
    Fact(
        "tcp_metrics",
        "addresses that TCP had learnt something of when the campaign began",
        (FactSource("tcp_metrics", ("addresses",)),),
        TCP,
        varies=True,
        must_match=False,
    ),
    _sysctl(_V4, "tcp_limit_output_bytes", "bytes of a socket that may wait in qdisc and device"),
    _sysctl(_CORE, "netdev_budget", "packets that a softirq polls at most"),
    _sysctl(_CORE, "netdev_max_backlog", "packets that wait for a CPU's softirq at most"),
    _sysctl(_CORE, "busy_poll", "busy polling in poll and select"),
    _sysctl(_CORE, "busy_read", "busy polling in reads"),
    _sysctl(_CORE, "default_qdisc", "queueing discipline of new interfaces"),
    _sysctl(_CORE, "rps_sock_flow_entries", "receive flow steering entries"),
    Fact(
        "source_mount",
        "file system of the source",
        (FactSource("mount", ("{source}",), mounted),),
        STORAGE,
    ),
    Fact(
        "sink_mount",
        "file system of the sink",
        (FactSource("mount", ("{sink}",), mounted),),
        STORAGE,
    ),
    Fact(
        "source_disk",
        "what the source's blocks are on",
        _script(DEVICES, "source", devices),
        STORAGE,
    ),
    Fact("sink_disk", "what the sink's blocks are on", _script(DEVICES, "sink", devices), STORAGE),
    *(
        Fact(
            f"{end}_free",
            f"free space of the {end}'s file system when the campaign began",
            _script(FREE, end, free_space),
            STORAGE,
            varies=True,
            must_match=False,
        )
        for end in ("source", "sink")
    ),
    Fact(
        "load",
        "load averages when the campaign began",
        _file("/proc/loadavg", first_words(3)),
        CPU,
        varies=True,
        must_match=False,
    ),
    Fact(
        "uptime",
        "seconds since boot",
        _file("/proc/uptime", first_words(1)),
        varies=True,
        must_match=False,
    ),
)
BY_NAME: Mapping[str, Fact] = {fact.name: fact for fact in FACTS}
