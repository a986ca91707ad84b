"""The noise monitor: cheap readings of every host around each block, and what moved between them,
kept beside the records.

What is of a whole kernel is read once for all hosts that share it, what is of a network once for
all hosts in one namespace. A reading never ends a campaign: what cannot be read is said in the
entry. docs/records.md has the format, analysis/noise.py the meaning. Sources: proc(5), proc_net(5),
the kernel's Documentation/networking/statistics.rst and Documentation/ABI.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netbench.conductor.host_facts import data_interface
from netbench.conductor.worker_pool import WorkerPool
from netbench.engine.worker import Worker
from netbench.errors import EngineError, NetbenchError
from netbench.model import Campaign

Question = tuple[str, tuple[str, ...]]
CPUS = "/sys/devices/system/cpu"
IRQBALANCE: Question = ("list", ("/run/irqbalance",))  # where it keeps its socket
MOST_POLICIES = 4  # whose frequency is read
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
    found: dict[str, int] = {}
    lines = text.splitlines()
    for names, numbers in zip(lines[::2], lines[1::2], strict=False):
        group, _, rest = names.partition(":")
        for name, number in zip(rest.split(), numbers.partition(":")[2].split(), strict=False):
            if TROUBLE.search(name) and not name.endswith(ALL_WELL):
                found[f"{group}.{name}"] = int(number)
    return found


def interface(text: str, name: str) -> dict[str, int]:
    """Errors and drops of one interface in /proc/net/dev: `eth1.rx_dropped`. Errors: ValueError
    when it is not there.
    """
    for line in text.splitlines():
        found, colon, numbers = line.partition(":")
        if colon and found.strip() == name:
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


@dataclass
class Reading:
    """What one host read at a moment: counters by name, and gauges. `cpu` and `own` where it speaks
    for its kernel.
    """

    ns: int
    counters: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, Any] = field(default_factory=dict)
    cpu: dict[str, int] = field(default_factory=dict)
    workers: dict[int, int] = field(default_factory=dict)  # process -> ticks
    controller: int = 0  # ticks that this process has used, where it runs on that kernel
    missing: dict[str, str] = field(default_factory=dict)


Take = Callable[[Reading, str], None]


def _counted(parse: Callable[[str], Mapping[str, int]]) -> Take:
    return lambda reading, text: reading.counters.update(parse(text))


def _one(name: str) -> Take:
    return _counted(lambda text: {name: int(text)})


def _gauge(name: str, parse: Callable[[str], Any]) -> Take:
    def take(reading: Reading, text: str) -> None:
        reading.gauges[name] = parse(text)

    return take


def _frequency(reading: Reading, text: str) -> None:
    reading.gauges.setdefault("mhz", []).append(int(text) // 1000)


def _of_kernel() -> dict[Question, Take]:
    def file(path: str) -> Question:
        return "file", (path,)

    return {
        file("/proc/stat"): lambda reading, text: reading.cpu.update(cpu_states(text)),
        file("/proc/loadavg"): _gauge("load", lambda text: float(text.split()[0])),
        file("/proc/net/softnet_stat"): _counted(softnet),
        IRQBALANCE: _gauge("irqbalance", lambda text: "running" if ".sock" in text else ""),
        file(f"{CPUS}/cpu0/thermal_throttle/core_throttle_count"): _one("throttle.core"),
        file(f"{CPUS}/cpu0/thermal_throttle/package_throttle_count"): _one("throttle.package"),
    }


def _of_policies(names: str) -> dict[Question, Take]:
    """Frequencies of some CPUs, spread over all of them, and the governor of the first."""
    policies = sorted(
        (name for name in names.split() if name.startswith("policy")),
        key=lambda name: int(name[6:]),
    )
    chosen = policies[:: max(1, -(-len(policies) // MOST_POLICIES))]
    found: dict[Question, Take] = {
        ("file", (f"{CPUS}/cpufreq/{name}/scaling_cur_freq",)): _frequency for name in chosen
    }
    if chosen:
        found["file", (f"{CPUS}/cpufreq/{chosen[0]}/scaling_governor",)] = _gauge(
            "governor", str.strip
        )
    return found


def _of_network() -> dict[Question, Take]:
    return {
        ("file", ("/proc/net/snmp",)): _counted(protocols),
        ("file", ("/proc/net/netstat",)): _counted(protocols),
    }


def _of_interface(name: str) -> dict[Question, Take]:
    return {
        ("file", ("/proc/net/dev",)): _counted(lambda text: interface(text, name)),
        ("file", (f"/sys/class/net/{name}/carrier_changes",)): _one(f"{name}.carrier_changes"),
        ("statistics", (name,)): _counted(lambda text: device(text, name)),
    }


class Watch:
    """What is read on one host, with one request a worker. What cannot be read the first time is
    not asked for again.
    """

    def __init__(self, worker: Worker, name: str, kernel: bool, network: bool) -> None:
        """`name`: the data interface, "" where it is not known; `kernel`, `network`: whether the
        host speaks for these.
        """
        self.kernel = kernel
        self._takes: dict[Question, Take] = {}
        if kernel:
            policies = worker.ask([("list", (f"{CPUS}/cpufreq",))])[0]
            self._takes |= _of_kernel() | _of_policies(
                policies if isinstance(policies, str) else ""
            )
        if network:
            self._takes |= _of_network() | (_of_interface(name) if name else {})
        self._missing: dict[str, str] = (
            {}
            if name or not network
            else {"interface": "the host does not say which has its address"}
        )

    def read(self, workers: list[Worker]) -> Reading:
        """Errors: those of losing a worker."""
        reading = Reading(time.monotonic_ns(), missing=self._missing)
        self._missing = {}
        questions: list[Question] = [("file", ("/proc/self/stat",)), *self._takes]
        own, *answers = workers[0].ask(questions)
        for question, answer in zip(list(self._takes), answers, strict=True):
            self._take(reading, question, answer)
        for text in (own, *(worker.ask(questions[:1])[0] for worker in workers[1:])):
            if isinstance(text, str):
                reading.workers.update([process(text)])
        return reading

    def _take(self, reading: Reading, question: Question, answer: str | EngineError) -> None:
        what = " ".join(question[1])
        if (
            isinstance(answer, EngineError)
            and question == IRQBALANCE
            and answer.errno == errno.ENOENT
        ):
            answer = ""
        try:
            if isinstance(answer, EngineError):
                raise ValueError(answer.message.removeprefix(f"{what}: "))
            self._takes[question](reading, answer)
        except (ValueError, IndexError) as error:
            reading.missing[what] = str(error)
            del self._takes[question]


class Noise:
    """Readings around blocks. `keep` gets each entry of samples/noise.jsonl."""

    def __init__(
        self, campaign: Campaign, pool: WorkerPool, keep: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self._campaign = campaign
        self._pool = pool
        self._keep = keep
        known = campaign.roles
        self._roles = {host: known[host] for host in campaign.hosts if host in known}
        self._watches: dict[str, Watch] = {}
        self._last: dict[str, Reading] = {}
        self._lost: dict[str, str] = {}
        self._here = Path("/proc/sys/kernel/random/boot_id").read_text().strip()

    @contextmanager
    def around(self, block: int) -> Iterator[None]:
        """Read before a block and after it, also after one that is cut short, from hosts that still
        answer.
        """
        self.before()
        try:
            yield
        except BaseException:
            with suppress(NetbenchError, TimeoutError):  # why the block ends is what matters
                self.after(block)
            raise
        self.after(block)

    def forget(self) -> None:
        """Hosts are going to be booted: what was read of them is of no use any more."""
        self._watches.clear()
        self._last = {}

    def before(self) -> None:
        """Read, unless the end of the last block was just read."""
        if self._last.keys() != self._roles.keys():
            self._last = self._read()

    def after(self, block: int) -> None:
        """Read, and keep what moved since `before`: an entry a host."""
        before, self._last = self._last, self._read()
        kernels = self._kernels()
        for host in self._roles:
            entry: dict[str, Any] = {"block": block, "host": host, "ns": [0, 0]}
            if host not in self._last:
                missing = {"all": self._lost.get(host, "no worker is there")}
            elif host not in before:
                missing = {"all": "nothing was read before the block"}
            else:
                missing = before[host].missing | self._last[host].missing
                entry |= self._moved(
                    before, self._last, host, kernels.get(self._boot_id(host), [host])
                )
            self._keep(entry | ({"missing": missing} if missing else {}))

    def _moved(
        self,
        before: Mapping[str, Reading],
        after: Mapping[str, Reading],
        host: str,
        mates: list[str],
    ) -> dict[str, Any]:
        one, other = before[host], after[host]
        counters = {
            name: [one.counters[name], value]
            for name, value in other.counters.items()
            if name in one.counters and value > one.counters[name]
        }
        entry: dict[str, Any] = {"ns": [one.ns, other.ns], "counters": counters}
        if not self._watches[host].kernel:
            return entry
        entry["kernel"] = mates
        if one.cpu and other.cpu:
            entry["cpu"] = {
                name: [one.cpu[name], value] for name, value in other.cpu.items() if name in one.cpu
            }
        if self._same_processes(before, after, mates) and not self._fetches():
            entry["own"] = [self._own(readings, host, mates) for readings in (before, after)]
        entry["gauges"] = {
            name: [value, other.gauges[name]]
            for name, value in one.gauges.items()
            if name in other.gauges
        }
        return entry

    def _own(self, readings: Mapping[str, Reading], host: str, mates: list[str]) -> int:
        """Ticks of our workers on a kernel, and of this process if it runs there."""
        return readings[host].controller + sum(
            ticks for mate in mates if mate in readings for ticks in readings[mate].workers.values()
        )

    @staticmethod
    def _same_processes(
        before: Mapping[str, Reading], after: Mapping[str, Reading], mates: list[str]
    ) -> bool:
        """Whether no worker of a kernel was replaced: else nobody knows what the lost one used."""
        sets = [
            {(mate, pid) for mate in mates if mate in r for pid in r[mate].workers}
            for r in (before, after)
        ]
        return sets[0] == sets[1] and all(mate in before for mate in mates)

    def _fetches(self) -> bool:
        """Whether kernel threads move data in some cell: then what is not our workers' may be the
        transfer's all the same.
        """
        workers = self._pool.workers().values()
        send = next(iter(workers)).catalogue.send if workers else {}
        used = {
            cell.transfer.send for cell in self._campaign.cells if cell.transfer.tool.kind == "none"
        }
        return any(name in send and send[name].has("fetches") for name in used)

    def _workers(self, host: str) -> list[Worker]:
        """The workers that a host has now, the one that is asked about the host first."""
        there = self._pool.workers()
        first = there.get((host, self._roles[host]))
        others = [
            worker
            for (name, role), worker in there.items()
            if name == host and role != self._roles[host]
        ]
        return [first, *others] if first is not None else []

    def _boot_id(self, host: str) -> str:
        workers = self._workers(host)
        return workers[0].hello.boot_id if workers else ""

    def _kernels(self) -> dict[str, list[str]]:
        """Hosts by their kernel; the first of each speaks for it."""
        found: dict[str, list[str]] = {}
        for host in self._roles:
            found.setdefault(self._boot_id(host), []).append(host)
        return found

    def _read(self) -> dict[str, Reading]:
        """A reading of every host that has a worker, all at the same time."""
        found: dict[str, Reading] = {}
        self._lost = {}
        speakers = {hosts[0] for hosts in self._kernels().values()}
        local = [host for host in self._roles if self._campaign.hosts[host].local]

        def read(host: str) -> None:
            workers = self._workers(host)
            if not workers:
                return
            try:
                if host not in self._watches or self._watches[host].kernel != (host in speakers):
                    network = host not in local[1:]
                    self._watches[host] = Watch(
                        workers[0], self._interface(host), host in speakers, network
                    )
                found[host] = self._watches[host].read(workers)
                if workers[0].hello.boot_id == self._here:
                    found[host].controller = int(sum(os.times()[:4]) * workers[0].hello.clock_ticks)
            except (NetbenchError, TimeoutError) as error:
                self._lost[host] = str(error)

        if len(self._roles) == 1:
            read(next(iter(self._roles)))
        else:
            self._pool.each(read)
        return {host: found[host] for host in self._roles if host in found}

    def _interface(self, host: str) -> str:
        try:
            worker = self._pool.host_worker(host)
            return data_interface(self._campaign.hosts[host], worker, self._campaign.ip)
        except EngineError:
            return ""
