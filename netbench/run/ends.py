"""The two ends of a unit: what a run of it needs to know of either host."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from netbench.base.errors import EngineError
from netbench.engine.worker import Worker
from netbench.model import NOTHING, Campaign, Host, Pair
from netbench.plan.plan import Unit
from netbench.result.record import SideName
from netbench.run import pins
from netbench.run.cpus import HostCpus
from netbench.run.host_facts import data_interface
from netbench.run.idle_counts import Counters, IdleCounts
from netbench.run.job import Options, metering
from netbench.run.worker_pool import WorkerPool


@dataclass(frozen=True)
class End:
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
    cpus: pins.Numbers
    meters: tuple[str, ...]
    interface: str = ""
    without_host_wide: bool = False
    footprint: int = 0
    idle: Mapping[str, Counters] = field(default_factory=lambda: NOTHING)
    peer_cpus: pins.Numbers = ()
    shared: bool = False

    @property
    def metering(self) -> Options:
        """What its worker reads, as options of a job."""
        return metering(
            self.meters,
            self.interface,
            self.without_host_wide or self.shared,
            self.footprint,
            self.peer_cpus,
        )


@dataclass(frozen=True)
class Ends:
    """Both sides of a unit, now: after a worker was lost they are others."""

    sender: End
    receiver: End

    def __iter__(self) -> Iterator[End]:
        return iter((self.sender, self.receiver))


class EndFinder:
    """Finds the ends of a campaign's units."""

    def __init__(
        self, campaign: Campaign, pool: WorkerPool, idle: IdleCounts | None = None
    ) -> None:
        self._campaign = campaign
        self._idle = idle
        self._pool = pool
        self._cpus = HostCpus()
        self._interfaces: dict[tuple[str, int], str] = {}  # by host and version of IP

    def ends(self, unit: Unit, beside: Iterable[Pair] = ()) -> Ends:
        """A unit's ends. `beside`: pairs that run at the same time. Errors: Lost; EngineError;
        RequestError where a CPU is not there.
        """
        sender, receiver = self._pool.pair_workers(unit.pair)
        others = {
            self._pool.boot_id(host) for pair in beside for host in (pair.sender, pair.receiver)
        }
        one_kernel = sender.hello.boot_id == receiver.hello.boot_id
        cpus = self._pinned(unit, sender, receiver, one_kernel)
        sending = self._end("sender", sender, unit, cpus[0])
        if one_kernel and not set(cpus[0]) & set(cpus[1]):
            sending = replace(sending, peer_cpus=cpus[1])
        receiving = self._end("receiver", receiver, unit, cpus[1], without_host_wide=one_kernel)
        return Ends(
            *(
                replace(end, shared=end.worker.hello.boot_id in others)
                for end in (sending, receiving)
            )
        )

    def _pinned(
        self, unit: Unit, sender: Worker, receiver: Worker, one_kernel: bool
    ) -> tuple[pins.Numbers, pins.Numbers]:
        pin = unit.cell.transfer.pin
        if pin.kind == "none":
            return (), ()
        return pins.choose(pin, self._cpus.of(sender), self._cpus.of(receiver), one_kernel)

    def _end(
        self,
        side: SideName,
        worker: Worker,
        unit: Unit,
        cpus: pins.Numbers,
        without_host_wide: bool = False,
    ) -> End:
        """`without_host_wide`: what is of a whole kernel is read once a kernel, by the sender's
        worker.
        """
        host = self._campaign.hosts[worker.host]
        known = worker.catalogue.meters
        wanted = self._campaign.meters_of(unit.cell)
        meters = tuple(name for name in wanted if name in known and not known[name].row.why)
        ip = unit.cell.transfer.ip
        interface = self._interface(host, worker, ip)
        address = host.data_address(ip)
        return End(
            side,
            host,
            address,
            worker,
            cpus,
            meters,
            interface,
            without_host_wide,
            self._campaign.footprint,
            self._idle.of(worker) if self._idle else NOTHING,
        )

    def _interface(self, host: Host, worker: Worker, ip: int) -> str:
        key = host.name, ip
        if key not in self._interfaces:
            self._interfaces[key] = ""
            with contextlib.suppress(EngineError):
                self._interfaces[key] = data_interface(host, worker, ip)
        return self._interfaces[key]
