"""The noise monitor: cheap readings of every host around each block, and what moved between them,
kept beside the records. One request a worker.

What is of a whole kernel is read once for all hosts that share it, what is of a network once for
all hosts in one namespace. A reading never ends a campaign: what cannot be read is said in the
entry. docs/records.md has the format, read/noise_labels.py the meaning. Sources: proc(5),
proc_net(5), the kernel's Documentation/networking/statistics.rst.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netbench.base.errors import EngineError, NetbenchError, ProtocolError
from netbench.engine.worker import Worker
from netbench.model import Campaign
from netbench.read.noise_labels import OF_ALL, TCP_PAGES
from netbench.run.host_facts import data_interface, own_boot_id
from netbench.run.worker_pool import WorkerPool

Question = tuple[str, tuple[str, ...]]
"""An operation of a worker that only reads, and its target."""
Take = tuple[str, Callable[[str], Mapping[str, int]]]
"""Where the values of a text go (`counters` or `cpu`), and the parser."""
Answer = str | EngineError
CPU_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
OF_INTERFACE = (  # columns of /proc/net/dev; "": what moves while all is well
    *("rx_bytes", "", "rx_errors", "rx_dropped", "rx_fifo", "rx_frame", "", ""),
    *("tx_bytes", "", "tx_errors", "tx_dropped", "tx_fifo", "tx_collisions", "tx_carrier", ""),
)
# Counters of the protocols that stand still while all is well; what ends or probes a connection as
# it should is not among them.
TROUBLE = re.compile(
    "Retrans|Timeout|Loss|Lost|Drop|Discard|Err|Fail|Overflow|Prune|Collapsed|Reneg|Reorder|MemoryPressure|NoRoutes|Unreachs"
    "|TimeExcds|PAWS|Spurious|AbortOnMemory|AbortOnTimeout|AbortFailed|UnknownProtos|Filter|TooBig|RcvQDrop"
)
TCP_MEM = "/proc/sys/net/ipv4/tcp_mem"
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
    """Counters of /proc/net/snmp or netstat that should stand still: `TcpExt.TCPTimeouts`."""
    counters: dict[str, int] = {}
    lines = text.splitlines()
    for names, numbers in zip(lines[::2], lines[1::2], strict=False):
        group, _, rest = names.partition(":")
        for name, number in zip(rest.split(), numbers.partition(":")[2].split(), strict=False):
            if TROUBLE.search(name) and not name.endswith(ALL_WELL):
                counters[f"{group}.{name}"] = int(number)
    return counters


def interface(text: str, name: str) -> dict[str, int]:
    """Bytes, errors and drops of one interface in /proc/net/dev: `eth1.rx_dropped`. Errors:
    ValueError when it is not there.
    """
    for line in text.splitlines():
        key, colon, numbers = line.partition(":")
        if colon and key.strip() == name:
            columns = zip(OF_INTERFACE, numbers.split(), strict=False)
            return {f"{name}.{column}": int(number) for column, number in columns if column}
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
    """Packets that found a CPU's queue full, of /proc/net/softnet_stat (hexadecimal lines)."""
    columns = [line.split() for line in text.splitlines()]
    return {"softnet.dropped": sum(int(row[1], 16) for row in columns if len(row) > 1)}


def tcp_pages(text: str) -> dict[str, int]:
    """Pages that TCP holds in all namespaces, of /proc/net/sockstat."""
    return {TCP_PAGES[0]: int(text.partition("TCP:")[2].partition(" mem ")[2].split()[0])}


def _tcp_few(text: str) -> dict[str, int]:
    return {TCP_PAGES[1]: int(text.split(maxsplit=1)[0])}


def process(text: str) -> tuple[int, int]:
    """The number of a process, and the ticks of it and its children, of /proc/self/stat."""
    numbers = text.rpartition(")")[2].split()
    return int(text.split(maxsplit=1)[0]), sum(int(number) for number in numbers[11:15])


@dataclass
class Reading:
    """What one host read: counters by name; `cpu`, `kernel` where it speaks for its kernel."""

    ns: int
    counters: dict[str, int] = field(default_factory=dict)
    cpu: dict[str, int] = field(default_factory=dict)
    own: dict[tuple[str, int], int] = field(default_factory=dict)  # ticks, by host and process
    kernel: list[str] = field(default_factory=list)  # hosts of the kernel that it speaks for
    missing: dict[str, str] = field(default_factory=dict)


def _file(path: str) -> Question:
    return "file", (path,)


def _number(name: str) -> Take:
    return "counters", lambda text: {name: int(text)}


def _of_kernel() -> dict[Question, Take]:
    throttle = "/sys/devices/system/cpu/cpu0/thermal_throttle"
    return {
        _file("/proc/stat"): ("cpu", cpu_states),
        _file("/proc/net/softnet_stat"): ("counters", softnet),
        _file("/proc/net/sockstat"): ("counters", tcp_pages),
        _file(TCP_MEM): ("counters", _tcp_few),
        _file(f"{throttle}/core_throttle_count"): _number("throttle.core"),
        _file(f"{throttle}/package_throttle_count"): _number("throttle.package"),
    }


def _of_network(name: str) -> dict[Question, Take]:
    """`name`: the data interface, "" where it is not known."""
    takes: dict[Question, Take] = {
        _file("/proc/net/snmp"): ("counters", protocols),
        _file("/proc/net/netstat"): ("counters", protocols),
    }
    if name:
        carrier = _file(f"/sys/class/net/{name}/carrier_changes")
        takes |= {
            _file("/proc/net/dev"): ("counters", lambda text: interface(text, name)),
            carrier: _number(f"{name}.carrier_changes"),
            ("statistics", (name,)): ("counters", lambda text: device(text, name)),
        }
    return takes


def _take(takes: dict[Question, Take], reading: Reading, what: Question, answer: Answer) -> None:
    """Put an answer into a reading. What cannot be read the first time is not asked for again."""
    path, (where, parse) = " ".join(what[1]), takes[what]
    try:
        if isinstance(answer, EngineError):
            raise ValueError(answer.message.removeprefix(f"{path}: "))
        getattr(reading, where).update(parse(answer))
    except (ValueError, IndexError) as error:
        reading.missing[path] = str(error)
        del takes[what]


def _both(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, list[int]]:
    """What is in two readings, as [before, after]."""
    return {name: [one[name], value] for name, value in other.items() if name in one}


class NoiseMonitor:
    """Readings around blocks. `keep` gets each entry of samples/noise.jsonl."""

    def __init__(
        self, campaign: Campaign, pool: WorkerPool, keep: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self._campaign = campaign
        self._pool = pool
        self._keep = keep
        self._hosts = [host for host in campaign.hosts if host in campaign.roles]
        self._takes: dict[str, tuple[bool, dict[Question, Take]]] = {}
        """By host, whether it speaks for its kernel, and what is read there."""
        self._last: dict[str, Reading] = {}
        self._lost: dict[str, str] = {}
        self._here = own_boot_id()

    @contextmanager
    def around(self, block: int) -> Iterator[None]:
        """Read before a block, unless the end of the last one was just read, and after it, also
        where it is cut short, from hosts that still answer.
        """
        if self._last.keys() != set(self._hosts):
            self._last = self._read()
        try:
            yield
        except BaseException:
            with suppress(NetbenchError, TimeoutError):  # why the block ends is what matters
                self._keep_entries(block)
            raise
        self._keep_entries(block)

    def forget(self) -> None:
        """Drop what was read: the hosts are going to be booted."""
        self._takes.clear()
        self._last = {}

    def _keep_entries(self, block: int) -> None:
        """Read, and keep what moved since the last reading: an entry a host."""
        before, self._last = self._last, self._read()
        for host in self._hosts:
            entry = bare = {"block": block, "host": host, "ns": [0, 0]}
            if host not in self._last:
                missing = {"all": self._lost.get(host, "no worker is there")}
            elif host not in before:
                missing = {"all": "nothing was read before the block"}
            else:
                missing = before[host].missing | self._last[host].missing
                entry = bare | self._moved(before[host], self._last[host])
            try:
                self._keep(entry | ({"missing": missing} if missing else {}))
            except ProtocolError as error:
                self._keep(bare | {"missing": {"all": str(error)}})

    def _moved(self, before: Reading, after: Reading) -> dict[str, Any]:
        pairs = _both(before.counters, after.counters)
        entry: dict[str, Any] = {"ns": [before.ns, after.ns]}
        entry["counters"] = {
            name: pair for name, pair in pairs.items() if pair[1] > pair[0] or name.endswith(OF_ALL)
        }
        if not after.kernel:
            return entry
        entry["kernel"] = after.kernel
        if before.cpu and after.cpu:
            entry["cpu"] = _both(before.cpu, after.cpu)
        # A worker that was replaced hides the lost one's CPU time.
        if after.own and before.own.keys() == after.own.keys() and not self._fetches():
            entry["own"] = [sum(before.own.values()), sum(after.own.values())]
        return entry

    def _fetches(self) -> bool:
        """Whether kernel threads move data in some cell: CPU of others may be the transfer's."""
        workers = list(self._pool.workers().values())
        send = workers[0].catalogue.send if workers else {}
        methods = {c.transfer.send for c in self._campaign.cells if not c.transfer.tool.external}
        return any(name in send and send[name].has("fetches") for name in methods)

    def _read(self) -> dict[str, Reading]:
        """A reading of every host that has a worker, all at the same time."""
        readings: dict[str, Reading] = {}
        self._lost = {}
        workers: dict[str, list[Worker]] = {}
        for (host, _), worker in self._pool.workers().items():
            workers.setdefault(host, []).append(worker)
        asked = {
            host: self._pool.host_worker(host)
            for host in self._hosts
            if (host, self._campaign.roles[host]) in self._pool.workers()
        }
        kernels: dict[str, list[str]] = {}  # hosts of each; the first speaks for it
        for host, worker in asked.items():
            kernels.setdefault(worker.hello.boot_id, []).append(host)
        speakers = {hosts[0]: hosts for hosts in kernels.values()}

        def read(host: str) -> None:
            try:
                speaks = host in speakers
                readings[host] = self._read_host(host, asked[host], workers[host], speaks)
            except (NetbenchError, TimeoutError) as error:
                self._lost[host] = str(error)

        self._pool.each(read, asked)
        for host, hosts in speakers.items():
            if host in readings:
                self._speak(readings, hosts, asked[host])
        return {host: readings[host] for host in self._hosts if host in readings}

    def _speak(self, readings: Mapping[str, Reading], hosts: list[str], worker: Worker) -> None:
        """Give the first host of a kernel the ticks of our processes on all, if all are known."""
        first = readings[hosts[0]]
        first.kernel = hosts
        own = [readings[host].own for host in hosts if host in readings]
        first.own = {process: ticks for of_host in own for process, ticks in of_host.items()}
        if worker.hello.boot_id == self._here:
            with suppress(OSError):  # a lab's namespaces have none
                first.counters |= _tcp_few(Path(TCP_MEM).read_text())
            first.own["", os.getpid()] = int(sum(os.times()[:4]) * worker.hello.clock_ticks)
        if len(own) < len(hosts):
            first.own = {}

    def _read_host(
        self, host: str, asked: Worker, workers: Sequence[Worker], speaks: bool
    ) -> Reading:
        """One host's reading, with one request to the worker that is asked about it. `speaks`: for
        its kernel. Errors: those of losing a worker.
        """
        reading = Reading(0)
        if self._takes.get(host, (None,))[0] != speaks:
            interface = self._interface(host)
            takes = {} if interface is None else _of_network(interface)
            if interface == "":
                reading.missing["interface"] = "the host does not say which has its address"
            if speaks:
                takes |= _of_kernel()
            self._takes[host] = speaks, takes
        takes = self._takes[host][1]
        own = [_file(f"/proc/{worker.hello.pid}/stat") for worker in workers]
        reading.ns = time.monotonic_ns()
        answers = asked.ask([*own, *takes])
        for question, answer in zip(list(takes), answers[len(own) :], strict=True):
            _take(takes, reading, question, answer)
        for text in answers[: len(own)]:
            if isinstance(text, str):
                with suppress(ValueError, IndexError):  # it is no line of /proc/PID/stat
                    pid, ticks = process(text)
                    reading.own[host, pid] = ticks
        return reading

    def _interface(self, host: str) -> str | None:
        """A host's data interface; "": not known, None: another host speaks for the network."""
        local = [name for name in self._hosts if self._campaign.hosts[name].local]
        if host in local[1:]:
            return None
        try:
            worker = self._pool.host_worker(host)
            return data_interface(self._campaign.hosts[host], worker, self._campaign.ip)
        except EngineError:
            return ""
