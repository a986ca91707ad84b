"""The two ends of a unit: what a run of it needs to know of either host, and what it measures."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from netbench.base.errors import EngineError, HostError, RequestError
from netbench.engine.binding import Vector
from netbench.engine.worker import Worker
from netbench.model import NOTHING, Campaign, Host, Pair, Pin
from netbench.plan.plan import Unit
from netbench.result.record import (
    NO_PROOF,
    NO_SETTINGS,
    Capture,
    Proof,
    Settings,
    SideCounters,
    SideName,
)
from netbench.run import readings
from netbench.run.host_facts import data_interface
from netbench.run.job import Options
from netbench.run.single_meter import Counters, IdleCounts
from netbench.run.worker_pool import WorkerPool
from netbench.settings.cpus import cpu_numbers
from netbench.settings.setting import fields


class End(NamedTuple):
    """One side of a unit. `address` is the host's data address, `cpus` those that its flows are
    pinned to ((): none), `meters` what its worker reads. `interface`: of the data address, ""
    where it is not known. `without_host_wide`: the other end's worker reads what is of the whole
    kernel. `footprint`: of soakers; `idle`: by meter, what this kernel last counted while nothing
    ran. `peer_cpus`: those of the other side's flows, where they are others of this kernel.
    `shared`: a run of another pair is on this kernel, so that what is of all of it is not read.
    """

    side: SideName
    host: Host
    address: str
    worker: Worker
    cpus: Numbers
    meters: tuple[str, ...]
    interface: str = ""
    without_host_wide: bool = False
    footprint: int = 0
    idle: Mapping[str, Counters] = NOTHING
    peer_cpus: Numbers = ()
    shared: bool = False

    @property
    def metering(self) -> Options:
        """What its worker reads, as options of a job."""
        options: Options = {"meters": "\0".join(self.meters), "interface": self.interface}
        options["footprint"] = self.footprint
        if self.peer_cpus:
            options["peer_cpu"] = self.peer_cpus
        if self.without_host_wide or self.shared:
            options["without_host_wide"] = 1
        return options


class Ends(NamedTuple):
    """Both sides of a unit, now: after a worker was lost they are others."""

    sender: End
    receiver: End


class EndFinder:
    """Finds the ends of a campaign's units."""

    def __init__(
        self, campaign: Campaign, pool: WorkerPool, idle: IdleCounts | None = None
    ) -> None:
        self._campaign = campaign
        self._idle = idle
        self._pool = pool
        self._cpus: dict[tuple[str, str], Cpus] = {}  # by host and boot
        self._interfaces: dict[tuple[str, int], str] = {}  # by host and version of IP

    def ends(self, unit: Unit, beside: Iterable[Pair] = ()) -> Ends:
        """A unit's ends. `beside`: pairs that run at the same time. Errors: Lost; EngineError;
        RequestError where a CPU is not there.
        """
        sender, receiver = self._pool.pair_workers(unit.pair)
        busy = {
            self._pool.boot_id(host) for pair in beside for host in (pair.sender, pair.receiver)
        }
        one_kernel = sender.hello.boot_id == receiver.hello.boot_id
        own = theirs = tuple[int, ...]()
        if (pin := unit.cell.transfer.pin).kind != "none":
            there = self._cpus_of(sender), self._cpus_of(receiver)
            own, theirs = choose(pin, *there, one_kernel)
        peer = theirs if one_kernel and not set(own) & set(theirs) else ()
        # What is of a whole kernel is read once a kernel, by the sender's worker.
        return Ends(
            self._end("sender", sender, unit, busy, cpus=own, peer_cpus=peer),
            self._end("receiver", receiver, unit, busy, cpus=theirs, without_host_wide=one_kernel),
        )

    def _cpus_of(self, worker: Worker) -> Cpus:
        key = worker.host, worker.hello.boot_id
        if key not in self._cpus:
            self._cpus[key] = read_cpus(worker)
        return self._cpus[key]

    def _end(
        self, side: SideName, worker: Worker, unit: Unit, busy: Collection[str], **more: Any
    ) -> End:
        """`busy`: kernels on which other pairs run; `more`: the other fields of End."""
        host, ip = self._campaign.hosts[worker.host], unit.cell.transfer.ip
        known = worker.catalogue.meters
        meters = self._campaign.meters if unit.cell.meters is None else unit.cell.meters
        return End(
            side,
            host,
            host.data_address(ip),
            worker,
            meters=tuple(name for name in meters if name in known and not known[name].row.why),
            interface=self._interface(host, worker, ip),
            footprint=self._campaign.footprint,
            idle=self._idle.of(worker) if self._idle else NOTHING,
            shared=worker.hello.boot_id in busy,
            **more,
        )

    def _interface(self, host: Host, worker: Worker, ip: int) -> str:
        key = host.name, ip
        if key not in self._interfaces:
            self._interfaces[key] = ""
            with contextlib.suppress(EngineError):
                self._interfaces[key] = data_interface(host, worker, ip)
        return self._interfaces[key]


class Measurement(NamedTuple):
    """What a run measured: the part of its record that its workers fill, and what is kept beside.
    `samples`: lines of samples/; `output`, `server_output`: what an external tool printed, and
    `captures` the numbers in it.
    """

    sender: SideCounters
    receiver: SideCounters
    settings: Settings = NO_SETTINGS
    proof: Proof = NO_PROOF
    samples: Sequence[Mapping[str, Any]] = ()
    output: str = ""
    server_output: str = ""
    captures: Mapping[str, Capture] = {}


def side_counters(end: End, vectors: Iterable[Vector], **notes: Any) -> SideCounters:
    """One side's counters of a result. `notes`: the other fields of SideCounters."""
    meters = readings.counters(vectors, end.worker.catalogue)
    time_ns = meters.pop("time_ns", None)
    for meter, idle in end.idle.items():
        if meter in meters:
            meters[meter] = {**meters[meter], **idle}
    return SideCounters(end.host.name, tuple(time_ns) if time_ns else None, meters=meters, **notes)


STATUS = "/proc/self/status"
SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


class Cpus(NamedTuple):
    """CPUs of one host: those that its worker may use, and for each the CPUs of the same core."""

    allowed: Sequence[int]
    siblings: Mapping[int, Sequence[int]]


def read_cpus(worker: Worker) -> Cpus:
    """CPUs of a worker's host. Errors: EngineError; HostError; those of losing the worker."""
    try:
        status, _ = worker.operate("file", STATUS)
        allowed = sorted(cpu_numbers(fields(status)["Cpus_allowed_list"]))
        siblings: dict[int, Sequence[int]] = {}
        for cpu in allowed:
            with contextlib.suppress(EngineError):
                text = worker.operate("file", SIBLINGS.format(cpu))[0]
                siblings[cpu] = sorted(cpu_numbers(text.strip()))
    except (ValueError, KeyError) as error:
        what = f"its list of CPUs cannot be read ({error})"
        raise HostError(f"{worker.host}: {what}; see {STATUS} there") from error
    return Cpus(allowed, siblings)


Numbers = tuple[int, ...]
"""CPUs in the order in which threads take them; (): not pinned."""


def choose(pin: Pin, sender: Cpus, receiver: Cpus, one_machine: bool) -> tuple[Numbers, Numbers]:
    """CPUs for the sender's and the receiver's flows.

    `same` and `apart` speak of one machine; between two machines both pin each side to its first
    CPU. `apart` takes another core where there is one, else another CPU of the same core. Errors:
    RequestError when there is no such CPU.
    """
    if pin.kind == "none":
        return (), ()
    if pin.kind == "cpus":
        _check(pin.sender, sender, "sender")
        _check(pin.receiver, receiver, "receiver")
        return pin.sender, pin.receiver
    first = sender.allowed[0]
    if not one_machine:
        return (first,), (receiver.allowed[0],)
    if pin.kind == "same":
        return (first,), (first,)
    others = [cpu for cpu in receiver.allowed if cpu != first]
    if not others:
        raise RequestError(
            "pin: apart needs two CPUs, and the worker may use only one; use pin: none or same"
        )
    cores = [cpu for cpu in others if cpu not in sender.siblings.get(first, ())]
    return (first,), ((cores or others)[0],)


def _check(wanted: Numbers, cpus: Cpus, side: str) -> None:
    missing = [str(cpu) for cpu in wanted if cpu not in cpus.allowed]
    if missing:
        which = "CPU " + missing[0] if len(missing) == 1 else "CPUs " + ", ".join(missing)
        allowed = ", ".join(map(str, cpus.allowed))
        raise RequestError(f"pin: {side}: the worker may not use {which}, only {allowed}")
