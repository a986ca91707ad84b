"""The registry of facts: what is read from a host because a result depends on it. Reading is
hosts/probe.py's business.

`must_match`: runs made while a host differed in it are not pooled (analysis/epochs.py). No fact
holds a user's name, a key or the host's own identity. Sources: proc(5), mount_namespaces(7), the
kernel's Documentation/admin-guide/sysctl and Documentation/ABI, ethtool(8).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Parse = Callable[[str], str]
"""A text as a short one. Errors: ValueError with what it lacks."""

KERNEL, CPU, NETWORK, TCP, STORAGE = "kernel", "CPU", "network", "TCP", "storage"


def words(text: str) -> str:
    """The text with single spaces."""
    return " ".join(text.split())


@dataclass(frozen=True)
class FactSource:
    """One way to learn a fact: an operation of the worker, its target, and how its text becomes the
    fact.

    In the target `{interface}`, `{peer}`, `{source}` and `{sink}` stand for what the host has of
    them. Besides the worker's own operations there are `files` (every file of a directory, as lines
    `name: text`) and `mount` (a path, resolved, and then /proc/self/mountinfo). `failing`: words of
    an error that is an answer, and the fact that it stands for.
    """

    op: str
    target: tuple[str, ...]
    parse: Parse = words
    failing: tuple[str, str] | None = None


@dataclass(frozen=True)
class Fact:
    """One fact. `row` is where a report puts it together with others; `setting` the one that
    changes it.

    Its ways are tried in order; one without any is told by the worker's hello.
    """

    name: str
    about: str
    ways: tuple[FactSource, ...] = ()
    group: str = KERNEL
    row: str = ""
    must_match: bool = False
    varies: bool = False  # by itself, from one moment to the next
    setting: str = ""


def fields(text: str) -> dict[str, str]:
    """`key: value` lines; of equal keys the first."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), words(value))
    return found


def field(*keys: str) -> Parse:
    """The value of the first of these keys that the text has. Errors: ValueError."""

    def parse(text: str) -> str:
        found = fields(text)
        for key in keys:
            if found.get(key):
                return found[key]
        raise ValueError("it does not say")

    return parse


def first_words(count: int) -> Parse:
    return lambda text: " ".join(text.split()[:count])


def choice(meanings: Mapping[str, str]) -> Parse:
    """A word for a word of the kernel's. Errors: ValueError for another one."""

    def parse(text: str) -> str:
        if words(text) not in meanings:
            raise ValueError(f"it reads {words(text)[:20]!r}")
        return meanings[words(text)]

    return parse


_PRIVATE = re.compile(
    r"(?i)machine.?id|pass|secret|token|\bkeys?\b|user|cred|auth|initiator|hostname|domain|^[ug]id$"
)


def command_line(text: str) -> str:
    """The kernel's command line; values that may name somebody or open something are hidden."""
    hidden = []
    for word in text.split():
        name, equals, _ = word.partition("=")
        hidden.append(f"{name}=(hidden)" if equals and _PRIVATE.search(name) else word)
    return " ".join(hidden)


def _processors(text: str) -> list[dict[str, str]]:
    """The blocks of /proc/cpuinfo; lines of all CPUs without empty lines between (grep) are told
    apart by a key that returns.
    """
    found: list[dict[str, str]] = [{}]
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            continue
        if key.strip() in found[-1]:
            found.append({})
        found[-1][key.strip()] = words(value)
    return found


def cpu_model(text: str) -> str:
    """The CPU's name; on ARM the implementer's and the part's number. Errors: ValueError."""
    first = _processors(text)[0]
    for key in ("model name", "Processor", "cpu model", "cpu"):
        if first.get(key):
            return first[key]
    if "CPU part" in first:
        return f"implementer {first.get('CPU implementer', '?')} part {first['CPU part']}"
    raise ValueError("it names no CPU model")


NOT_EMULATED = "no"
_EMULATORS = {
    "qemu": "QEMU TCG",
    "bochs": "Bochs",
}  # as systemd-detect-virt(1) says: software alone; `kvm` is another word there
_HYPERVISOR_CLOCKS = (
    "kvm-clock",
    "hyperv",
    "xen",
)  # only of hypervisors that run a guest's instructions on the CPU itself


def emulated_by_name(text: str) -> str:
    """Which program emulates the CPU, or NOT_EMULATED, by what /proc/cpuinfo says. Errors:
    ValueError where that does not tell.

    QEMU's TCG calls its `max` so on x86, and is part 0x051 of no implementer on ARM. Without the
    flag `hypervisor` an x86 CPU is no guest's.
    """
    found = fields(text)
    arm = found.get("CPU implementer"), found.get("CPU part")
    if "TCG" in found.get("model name", "") or arm == ("0x00", "0x051"):
        return _EMULATORS["qemu"]
    if "flags" in found and "hypervisor" not in found["flags"].split():
        return NOT_EMULATED
    raise ValueError("the CPU's name does not tell")


def emulated_by_clock(text: str) -> str:
    """NOT_EMULATED where a hypervisor offers its clock. Errors: ValueError where none does, which
    shows nothing.
    """
    if any(name.startswith(_HYPERVISOR_CLOCKS) for name in text.split()):
        return NOT_EMULATED
    raise ValueError("no clock of a hypervisor is there")


def emulated(entry: Mapping[str, Any]) -> bool:
    """Whether an entry of facts.json says that the host's CPU is software: what it measures is then
    no speed of any machine.
    """
    return (entry.get("facts", {}).get("emulated") or NOT_EMULATED) != NOT_EMULATED


def sockets(text: str) -> str:
    """Packages that have a CPU online. Errors: ValueError where /proc/cpuinfo does not tell."""
    return str(len({_place(block)[0] for block in _processors(text)}))


def cores(text: str) -> str:
    """Cores that have a CPU online. Errors: as sockets."""
    return str(len({_place(block) for block in _processors(text)}))


def _place(processor: Mapping[str, str]) -> tuple[str, str]:
    if "physical id" not in processor or "core id" not in processor:
        raise ValueError("it does not say which socket and core a CPU belongs to")
    return processor["physical id"], processor["core id"]


def mitigations(text: str) -> str:
    """What the kernel does about each vulnerability; those that do not affect this CPU
    are counted.
    """
    found = fields(text)
    affected = {name: state for name, state in found.items() if state != "Not affected"}
    said = [
        f"{name}: {state.removeprefix('Mitigation: ')}" for name, state in sorted(affected.items())
    ]
    rest = len(found) - len(affected)
    return "; ".join(
        [*said, f"{rest} more do not affect it" if said else f"none of {rest} affects it"]
        if rest
        else said
    )


def features(text: str) -> str:
    """The features that are on, then those that are off and could be on."""
    on, off = [], []
    for name, state in fields(text).items():
        if state.startswith("on"):
            on.append(name)
        elif "[fixed]" not in state:
            off.append(name)
    return f"on: {' '.join(on) or 'none'}; off: {' '.join(off) or 'none'}"


def of_most(text: str) -> str:
    """`rx: 256` and `rx_max: 4096` as `rx 256 of 4096`; what the device has none of is left out."""
    found = fields(text)
    said = []
    for name, value in found.items():
        most = found.get(f"{name}_max", "")
        if not name.endswith("_max") and (value not in ("0", "") or most not in ("0", "")):
            said.append(f"{name} {value} of {most}" if most not in ("0", "") else f"{name} {value}")
    return ", ".join(said) or "none"


def not_zero(text: str) -> str:
    """`key value` of each line whose value is not 0."""
    return (
        ", ".join(
            f"{key} {value}" for key, value in fields(text).items() if value not in ("0", "off")
        )
        or "all 0"
    )


def qdiscs(text: str) -> str:
    """The kinds of an interface's qdiscs, the root's first; options that are not the kind's own
    word show as a digest.
    """
    lines = [line.split() for line in text.splitlines() if line.strip()]
    kinds = Counter((place == "root", _qdisc(rest)) for place, *rest in lines)
    said = [
        f"{kind} x{n}" if n > 1 else kind
        for (_, kind), n in sorted(kinds.items(), key=lambda item: not item[0][0])
    ]
    if not said:
        raise ValueError("the interface has no qdisc")
    return ", ".join(said)


def _qdisc(rest: list[str]) -> str:
    options = "".join(rest[2:])
    digest = hashlib.sha256(options.encode()).hexdigest()[:8]
    return f"{rest[0]} (options {digest})" if options else rest[0]


def route(text: str) -> str:
    """`eth1`, or `eth1 via 10.0.0.254`. Errors: ValueError."""
    found = fields(text)
    if not found.get("interface"):
        raise ValueError("it names no interface")
    return (
        f"{found['interface']} via {found['gateway']}"
        if found.get("gateway")
        else found["interface"]
    )


def _unescaped(word: str) -> str:
    """A path of mountinfo: spaces and the like are written as three octal digits (proc(5))."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)


def mounted(text: str) -> str:
    """File system, device and options of the mount that holds a path: the text's first line; the
    rest is /proc/self/mountinfo.

    Options that name somebody, and sources that are no device, are left out. Errors: ValueError.
    """
    path, _, table = text.partition("\n")
    best, found = "", ""
    for line in table.splitlines():
        before, separator, after = line.partition(" - ")
        place = before.split()
        if not separator or len(place) < 6:
            continue
        point = _unescaped(place[4])
        below = path == point or path.startswith(point.rstrip("/") + "/")
        if below and len(point) >= len(best):  # of two at one place the later hides the earlier
            kind, source, options = (*after.split(), "", "")[:3]
            best, found = point, _mount(kind, _unescaped(source), f"{place[5]},{options}")
    if not found:
        raise ValueError(f"no mount holds {path}")
    return found


def _mount(kind: str, source: str, options: str) -> str:
    kept = [
        word
        for word in dict.fromkeys(options.split(","))
        if word and not _PRIVATE.search(word.partition("=")[0])
    ]
    where = f" on {source}" if source.startswith("/dev/") else ""
    return f"{kind}{where}: {','.join(kept)}"


def engine_hash(text: str) -> str:
    """SHA-256 of the worker that was copied to the host (or of the source that it was built from
    there), by its file's name.
    """
    found = re.search(r"/(worker|built)-([0-9a-f]{64})", text)
    if not found:
        raise ValueError("the worker's file is not named after its content")
    return found[2][:16] if found[1] == "worker" else f"source {found[2][:16]}"


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
    """Of hundreds of CPUs the whole file is more than an operation reads."""
    return FactSource("file", ("/proc/cpuinfo",), parse), FactSource(
        "exec", ("grep", "-E", _CPUINFO_KEYS, "/proc/cpuinfo"), parse
    )


def _driver(key: str) -> tuple[FactSource, ...]:
    return (FactSource("driver", ("{interface}",), field(key)),)


def _sysctl(folder: str, name: str, about: str, fact: str = "") -> Fact:
    path = (folder + name).removeprefix("/proc/sys/").replace("/", ".")
    return Fact(
        fact or name,
        about,
        _file(folder + name),
        TCP,
        "sysctls",
        must_match=True,
        setting=f"sysctl.{path}",
    )


_IRQBALANCE = ("exit status 1:", "not running")

FACTS: tuple[Fact, ...] = (
    Fact(
        "kernel",
        "kernel release",
        _file("/proc/sys/kernel/osrelease"),
        row="kernel",
        must_match=True,
    ),
    Fact(
        "kernel_build",
        "kernel build",
        _file("/proc/sys/kernel/version"),
        row="kernel",
        must_match=True,
    ),
    Fact(
        "command_line", "kernel command line", _file("/proc/cmdline", command_line), must_match=True
    ),
    Fact(
        "clock_source",
        "clock source",
        _file(_CLOCKS + "current_clocksource"),
        must_match=True,
    ),
    Fact(
        "mitigations",
        "mitigations of the CPU's vulnerabilities",
        (FactSource("files", (_CPUS + "vulnerabilities",), mitigations),),
        must_match=True,
    ),
    Fact("engine", "version of the engine", row="engine", must_match=True),
    Fact("layout", "digest of what the engine declares", row="engine", must_match=True),
    Fact(
        "engine_hash",
        "digest of the worker's file",
        _file("/proc/self/maps", engine_hash),
        row="engine",
        must_match=True,
    ),
    Fact("cpu_model", "CPU model", _cpuinfo(cpu_model), CPU, must_match=True),
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
                lambda text: _EMULATORS.get(words(text), NOT_EMULATED),
                ("exit status 1:", NOT_EMULATED),  # none
            ),
            FactSource("file", (_CLOCKS + "available_clocksource",), emulated_by_clock),
        ),
        CPU,
        must_match=True,
    ),
    Fact(
        "microcode",
        "microcode revision",
        _cpuinfo(field("microcode")),
        CPU,
        "topology",
        must_match=True,
    ),
    Fact("cpus_online", "CPUs online", _file(_CPUS + "online"), CPU, "topology", must_match=True),
    Fact("sockets", "CPU packages", _cpuinfo(sockets), CPU, "topology", must_match=True),
    Fact("cores", "CPU cores", _cpuinfo(cores), CPU, "topology", must_match=True),
    Fact(
        "smt",
        "simultaneous multithreading",
        _file(_CPUS + "smt/active", choice({"1": "on", "0": "off"})),
        CPU,
        "topology",
        must_match=True,
    ),
    Fact(
        "numa_nodes",
        "NUMA nodes",
        _file("/sys/devices/system/node/online"),
        CPU,
        "topology",
        must_match=True,
    ),
    Fact("memory", "memory", _file("/proc/meminfo", field("MemTotal")), CPU, "topology"),
    Fact(
        "governor",
        "frequency governor of CPU 0",
        _file(_CPUS + "cpu0/cpufreq/scaling_governor"),
        CPU,
        "frequency",
        must_match=True,
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
        must_match=True,
        setting="turbo",
    ),
    Fact(
        "irqbalance",
        "whether irqbalance moves interrupts between CPUs",
        (
            FactSource("exec", ("pidof", "irqbalance"), lambda text: "running", _IRQBALANCE),
            FactSource("exec", ("pgrep", "-x", "irqbalance"), lambda text: "running", _IRQBALANCE),
        ),
        CPU,
        must_match=True,
    ),
    Fact(
        "interface",
        "interface of the data address",
        (FactSource("name", ("{interface}",)),),
        NETWORK,
    ),
    Fact(
        "nic_driver",
        "driver of the interface",
        _driver("driver"),
        NETWORK,
        "driver",
        must_match=True,
    ),
    Fact(
        "nic_driver_version",
        "version of the driver",
        _driver("version"),
        NETWORK,
        "driver",
        must_match=True,
    ),
    Fact(
        "nic_firmware",
        "firmware of the device",
        _driver("firmware"),
        NETWORK,
        "driver",
        must_match=True,
    ),
    Fact("nic_bus", "bus address of the device", _driver("bus"), NETWORK, "bus"),
    Fact(
        "nic_numa_node",
        "NUMA node of the device",
        _file(_NIC + "device/numa_node"),
        NETWORK,
        "bus",
        must_match=True,
    ),
    Fact(
        "pci_speed",
        "speed of the PCI link",
        _file(_NIC + "device/current_link_speed"),
        NETWORK,
        "bus",
        must_match=True,
    ),
    Fact(
        "pci_width",
        "lanes of the PCI link",
        _file(_NIC + "device/current_link_width"),
        NETWORK,
        "bus",
        must_match=True,
    ),
    Fact("speed", "speed of the link in Mb/s", _driver("speed"), NETWORK, "link", must_match=True),
    Fact("duplex", "duplex of the link", _driver("duplex"), NETWORK, "link", must_match=True),
    Fact(
        "mtu",
        "MTU of the interface",
        (FactSource("link", ("{interface}", "mtu")), FactSource("file", (_NIC + "mtu",))),
        NETWORK,
        "link",
        must_match=True,
        setting="mtu",
    ),
    Fact(
        "channels",
        "queues of the device",
        (FactSource("channels", ("{interface}",), of_most),),
        NETWORK,
        must_match=True,
        setting="channels",
    ),
    Fact(
        "rings",
        "ring sizes",
        (FactSource("rings", ("{interface}",), of_most),),
        NETWORK,
        must_match=True,
        setting="rings",
    ),
    Fact(
        "coalesce",
        "interrupt coalescing",
        (FactSource("coalesce", ("{interface}",), not_zero),),
        NETWORK,
        must_match=True,
        setting="coalesce",
    ),
    Fact(
        "features",
        "offloads",
        (FactSource("features", ("{interface}",), features),),
        NETWORK,
        must_match=True,
    ),
    Fact(
        "qdisc",
        "queueing disciplines",
        (FactSource("qdisc", ("{interface}",), qdiscs),),
        NETWORK,
        must_match=True,
        setting="qdisc",
    ),
    Fact(
        "route",
        "route to the peer",
        (FactSource("route", ("{peer}",), route),),
        NETWORK,
        must_match=True,
    ),
    _sysctl(_V4, "tcp_congestion_control", "default congestion control", "congestion_default"),
    Fact(
        "congestion_available",
        "available congestion controls",
        _file(_V4 + "tcp_available_congestion_control"),
        TCP,
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
        must_match=True,
    ),
    Fact(
        "sink_mount",
        "file system of the sink",
        (FactSource("mount", ("{sink}",), mounted),),
        STORAGE,
        must_match=True,
    ),
    Fact(
        "load",
        "load averages when the campaign began",
        _file("/proc/loadavg", first_words(3)),
        CPU,
        varies=True,
    ),
    Fact("uptime", "seconds since boot", _file("/proc/uptime", first_words(1)), varies=True),
)
BY_NAME: Mapping[str, Fact] = {fact.name: fact for fact in FACTS}
_LONG = 60  # characters
_OWN = ("engine", "layout")  # beside the facts in an entry of facts.json


def of_entry(entry: Mapping[str, Any]) -> dict[str, str]:
    """What is known by one entry of facts.json, by fact."""
    own = {name: entry[name] for name in _OWN if entry.get(name) is not None}
    return {
        name: str(value)
        for name, value in {**own, **entry.get("facts", {})}.items()
        if value is not None
    }


def must_match(handled: Iterable[str] = ()) -> list[str]:
    """Facts in which runs that are pooled must agree: all but those that the campaign's own factors
    and settings change.
    """
    named = {name.removeprefix("sender.").removeprefix("receiver.") for name in handled}
    of_kernel = {"kernel", "kernel_build", "command_line"} if "kernel" in named else set[str]()
    return [
        fact.name
        for fact in FACTS
        if fact.must_match and fact.setting not in named and fact.name not in named | of_kernel
    ]


def differences(
    a: Mapping[str, str | None], b: Mapping[str, str | None], handled: Iterable[str] = ()
) -> list[tuple[str, str, str]]:
    """The facts that must match and do not, as (fact, in a, in b). What one of them does not know
    is no difference.
    """
    found = []
    for name in must_match(handled):
        one, other = a.get(name), b.get(name)
        if one is not None and other is not None and one != other:
            found.append((name, one, other))
    return found


def same(name: str, one: str | None, other: str | None) -> bool:
    """Whether two values of a fact are the same for a reader: what a kernel keeps of the memory for
    itself differs by boot.
    """
    if name != "memory" or one is None or other is None:
        return one == other
    sizes = [int(digits) for value in (one, other) if (digits := value.partition(" ")[0]).isdigit()]
    return one == other or (len(sizes) == 2 and abs(sizes[0] - sizes[1]) < max(sizes) / 100)


def change(name: str, was: str, now: str) -> str:
    """A change in words."""
    was, now = apart(was, now)
    return f"{name} was {was}, then {now}"


def held_by(name: str) -> str:
    """What a user whose host comes up otherwise than before can do about it: ` (hold it: settings:
    {mtu: VALUE})`, or "".
    """
    setting = next(fact.setting for fact in FACTS if fact.name == name)
    return f" (hold it: settings: {{{setting}: VALUE}})" if setting else ""


def apart(one: str, other: str) -> tuple[str, str]:
    """Two values of a fact that differ; of long ones only what is between their equal beginnings
    and ends.
    """
    return (
        _middles(one.split(), other.split()) if max(len(one), len(other)) > _LONG else (one, other)
    )


def _middles(one: list[str], other: list[str]) -> tuple[str, str]:
    ahead = _common(one, other)
    behind = _common(one[ahead:][::-1], other[ahead:][::-1])
    said = []
    for parts in (one, other):
        middle = " ".join(parts[ahead : len(parts) - behind]) or "without it"
        cut = middle if len(middle) <= 2 * _LONG else f"{middle[: 2 * _LONG]} ..."
        said.append(f"{'... ' if ahead else ''}{cut}{' ...' if behind else ''}")
    return said[0], said[1]


def _common(one: list[str], other: list[str]) -> int:
    """How many words two texts begin with together."""
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
