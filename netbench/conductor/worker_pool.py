"""The workers of a campaign: one process a host and role, started when first needed, alive until
the end.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from netbench.conductor.pins import Cpus, parse_cpu_list
from netbench.engine.worker import Heartbeat, Worker
from netbench.errors import EngineError, HostGone, HostsLost, Lost, NetbenchError
from netbench.hosts.base import Channel
from netbench.hosts.local import LocalChannel
from netbench.hosts.probe import read_facts
from netbench.model import Campaign, Host, Pair

ChannelFactory = Callable[[Host], Channel]
RECONNECT_SECONDS = 60.0  # a host that was lost may be back within
RECONNECT_PAUSE = 0.5
AT_ONCE = 32  # hosts that are contacted in parallel
FILES_FOLDER = "/tmp"  # where the engine keeps the nameless files of `source: {files: ...}`
_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def open_channel(host: Host) -> Channel:
    """The way to a host. Errors: HostError."""
    if host.ssh is None:
        return LocalChannel(host.name)
    from netbench.hosts.ssh.channel import SshChannel

    return SshChannel(
        host.name,
        host.ssh,
        ssh_config=Path(host.ssh_config).expanduser() if host.ssh_config else None,
    )


def roles(campaign: Campaign) -> dict[str, str]:
    """The hosts that take part, each with a role that it has in some pair: whose worker can be
    asked about the host.
    """
    found = {pair.receiver: "receiver" for pair in campaign.pairs}
    return found | {pair.sender: "sender" for pair in campaign.pairs}


def changes_settings(campaign: Campaign) -> bool:
    """Whether the campaign changes anything on its hosts, which takes privileges there."""
    return bool(campaign.settings) or any(cell.settings for cell in campaign.cells)


def _own_digest(worker: Worker) -> str:
    """SHA-256 of the engine's library that a worker on this machine has mapped, shortened; "" when
    it cannot be found.
    """
    try:
        maps, _ = worker.operate("file", "/proc/self/maps")
        libraries = {line.split(maxsplit=5)[5] for line in maps.splitlines() if "/_native." in line}
        return (
            hashlib.sha256(Path(*libraries).read_bytes()).hexdigest()[:16]
            if len(libraries) == 1
            else ""
        )
    except (EngineError, OSError):
        return ""


class WorkerPool:
    """Workers by host and role (`sender`, `receiver`); a context manager that says goodbye to all
    of them.
    """

    def __init__(self, campaign: Campaign, channels: ChannelFactory = open_channel) -> None:
        self._campaign = campaign
        self._hosts = campaign.hosts
        self._open = channels
        self._channels: dict[str, Channel] = {}
        self._workers: dict[tuple[str, str], Worker] = {}
        self._wanted = [(pair.sender, "sender") for pair in campaign.pairs] + [
            (p.receiver, "receiver") for p in campaign.pairs
        ]
        self._privileged = set(roles(campaign).items()) if changes_settings(campaign) else set()
        self._cpus: dict[str, Cpus] = {}
        self._interfaces: dict[str, str] = {}
        self._lost: set[str] = set()
        self._boot_ids: dict[str, str] = {}
        self._heartbeat = Heartbeat()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def worker(self, host: str, role: str) -> Worker:
        """The worker of that host and role. Errors: Lost."""
        key = host, role
        if key not in self._workers:
            worker = self._restart(host, role) if host in self._lost else self._start(host, role)
            self._refuse_another_boot(host, worker)
            self._workers[key] = worker
            self._heartbeat.add(worker)
        return self._workers[key]

    def channel(self, host: str) -> Channel:
        """The way to a host, opened where there is none."""
        if host not in self._channels:
            self._channels[host] = self._open(self._hosts[host])
        return self._channels[host]

    def _start(self, host: str, role: str) -> Worker:
        return Worker(self.channel(host).start_worker((host, role) in self._privileged), host)

    def _restart(self, host: str, role: str) -> Worker:
        """A worker on a host that was lost, which may take a while to come back. Errors:
        HostGone.
        """
        deadline = time.monotonic() + RECONNECT_SECONDS
        while True:
            try:
                worker = self._start(host, role)
            except Lost as error:
                if time.monotonic() > deadline:
                    raise HostGone(f"{error}; tried again for {RECONNECT_SECONDS:.0f} s") from error
                self.disconnect(host)
                time.sleep(RECONNECT_PAUSE)
            else:
                self._lost.discard(host)
                return worker

    def _refuse_another_boot(self, host: str, worker: Worker) -> None:
        """What was set and read of a host holds for one boot: after a reboot of its own it is
        another host. Errors: HostGone.
        """
        now = worker.hello.boot_id
        before = self._boot_ids.setdefault(host, now)
        if before != now:
            worker.abandon()
            raise HostGone(
                f"{host}: it was rebooted, not by this campaign (boot {before}, now {now}); see why"
                " (its console, `last -x`), then resume"
            )

    def start_all(self) -> None:
        """Start every worker, all hosts at the same time. Errors: HostsLost with what is wrong with
        each host that failed.
        """
        errors: dict[str, NetbenchError] = {}

        def start(host: str) -> None:
            try:
                for name, role in dict.fromkeys(self._wanted):
                    if name == host:
                        self.worker(name, role)
            except (Lost, EngineError) as error:
                errors[host] = error

        self.each(start)
        if errors:
            raise HostsLost({host: errors[host] for host, _ in self._wanted if host in errors})

    def each(self, act: Callable[[str], None]) -> None:
        """Do something for every host that takes part, many at the same time; the first error is
        raised when all are done.
        """
        hosts = list(dict.fromkeys(host for host, _ in self._wanted))
        with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(hosts))) as pool:
            list(pool.map(act, hosts))

    def dismiss(self, host: str, role: str) -> None:
        """Let go of a worker that is lost; the next call of `worker` starts another, as soon as the
        host is back.
        """
        self._lost.add(host)
        worker = self._workers.pop((host, role), None)
        if worker is not None:
            self._heartbeat.remove(worker)
            worker.abandon()

    def release(self, host: str) -> None:
        """Say goodbye to a host's workers, since it is going to be booted, and forget what was read
        there.
        """
        for key in [key for key in list(self._workers) if key[0] == host]:
            worker = self._workers.pop(key)
            self._heartbeat.remove(worker)
            worker.close()
        self._cpus.pop(host, None)
        self._interfaces.pop(host, None)
        self._boot_ids.pop(host, None)
        self._lost.discard(host)

    def disconnect(self, host: str) -> None:
        """Let go of the way to a host; the next call makes another."""
        channel = self._channels.pop(host, None)
        if channel is not None:
            channel.close()

    def address(self, host: str, ip: int) -> str:
        """The data address of a host; of this machine the loopback, when the campaign
        names none.
        """
        known = self._hosts[host].address
        return known or ("::1" if ip == 6 else "127.0.0.1")

    def interface(self, host: str, role: str, ip: int = 4) -> str:
        """The interface of a host's data address. Errors: EngineError when it has none."""
        if host not in self._interfaces:
            named = self._hosts[host].interface
            self._interfaces[host] = (
                named
                or self.worker(host, role).operate("interface", self.address(host, ip))[0].strip()
            )
        return self._interfaces[host]

    def no_address(self, host: str, ip: int) -> str:
        """Why a host has no interface with its data address, or "". Errors: those of losing its
        worker.
        """
        try:
            self.worker(host, roles(self._campaign)[host]).operate(
                "interface", self.address(host, ip)
            )
        except EngineError as error:
            return str(error)
        return ""

    def kernel(self, host: str) -> str:
        """What tells the kernel that a host runs from all others: its boot id."""
        return next(
            worker.hello.boot_id
            for (name, _), worker in list(self._workers.items())
            if name == host
        )

    def interrupt(self) -> None:
        """Make whoever waits for a worker give up as by Ctrl-C, in its own thread."""
        for worker in list(self._workers.values()):
            worker.interrupt()

    def clear_interrupt(self) -> None:
        """After `interrupt`: workers can be waited for again, to put back what they hold."""
        for worker in list(self._workers.values()):
            worker.clear_interrupt()

    def share_kernel(self, pair: Pair) -> bool:
        """Whether both hosts of a pair run on one kernel: their boot ids are equal."""
        sender, receiver = (
            self.worker(pair.sender, "sender"),
            self.worker(pair.receiver, "receiver"),
        )
        return sender.hello.boot_id == receiver.hello.boot_id

    def cpus(self, host: str, role: str) -> Cpus:
        """CPUs that a host's worker may use, read from the kernel once."""
        if host not in self._cpus:
            worker = self.worker(host, role)
            status, _ = worker.operate("file", "/proc/self/status")
            allowed = next(
                line.split(":")[1]
                for line in status.splitlines()
                if line.startswith("Cpus_allowed_list:")
            )
            siblings: dict[int, tuple[int, ...]] = {}
            for cpu in parse_cpu_list(allowed):
                with contextlib.suppress(EngineError):
                    siblings[cpu] = parse_cpu_list(worker.operate("file", _SIBLINGS.format(cpu))[0])
            self._cpus[host] = Cpus(parse_cpu_list(allowed), siblings)
        return self._cpus[host]

    def facts(self, host: str, role: str, boot: int) -> dict[str, Any]:
        """One boot's entry of facts.json for a host. Errors: those of losing its worker."""
        worker = self.worker(host, role)
        facts, missing = read_facts(worker.ask, self._named(host, role))
        if self._hosts[host].local and (digest := _own_digest(worker)):
            facts["engine_hash"] = digest
            missing.pop("engine_hash", None)
        hello = worker.hello
        return {
            "boot": boot,
            "boot_id": hello.boot_id,
            "clock_ticks": hello.clock_ticks,
            "cpus": hello.cpus,
            "architecture": hello.architecture,
            "engine": hello.engine,
            "layout": f"{hello.layout:016x}",
            "facts": facts,
            "missing": missing,
        }

    def all_facts(self) -> dict[str, dict[str, Any]]:
        """An entry of facts.json for every host, read at the same time. Errors: as facts."""
        found: dict[str, dict[str, Any]] = {}
        roles_ = roles(self._campaign)

        def read(host: str) -> None:
            found[host] = self.facts(host, roles_[host], 0)

        self.each(read)
        return {host: found[host] for host in roles_}

    def _named(self, host: str, role: str) -> dict[str, list[str]]:
        """What facts may be about: the interface and the peer of a host, and the files that it
        reads and writes.
        """
        campaign = self._campaign
        sends = any(pair.sender == host for pair in campaign.pairs)
        receives = any(pair.receiver == host for pair in campaign.pairs)
        peer = next(
            p.receiver if p.sender == host else p.sender
            for p in campaign.pairs
            if host in (p.sender, p.receiver)
        )
        transfers = [cell.transfer for cell in campaign.cells]
        ip = transfers[0].ip
        read = [
            transfer.source
            for transfer in transfers
            if sends and transfer.source.kind in ("file", "files")
        ]
        found = {
            "peer": [self.address(peer, ip)],
            "source": [source.path or FILES_FOLDER for source in read],
            "sink": [t.sink.path for t in transfers if receives and t.sink.kind == "file"],
        }
        with contextlib.suppress(EngineError):
            found["interface"] = [self.interface(host, role, ip)]
        return {name: list(dict.fromkeys(values)) for name, values in found.items()}

    def has(self, host: str, role: str, worker: object) -> bool:
        """Whether this is the worker that the host has."""
        return self._workers.get((host, role)) is worker

    def workers(self) -> Mapping[tuple[str, str], Worker]:
        """Those that are there."""
        return dict(self._workers)

    def close(self) -> None:
        """Say goodbye to every worker, at the same time, and let go of the hosts."""
        self._heartbeat.stop()
        if self._workers:
            with ThreadPoolExecutor(max_workers=min(32, len(self._workers))) as pool:
                list(pool.map(Worker.close, self._workers.values()))
        self._workers.clear()
        for channel in self._channels.values():
            channel.close()
