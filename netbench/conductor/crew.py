"""The workers of a campaign: one process a host and role, started when first needed, alive until the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from netbench.conductor.pins import Cpus, parse_cpu_list
from netbench.engine.worker import Heart, Worker
from netbench.errors import EngineError, NotBuiltYet
from netbench.hosts.base import Channel
from netbench.hosts.local import LocalChannel
from netbench.hosts.probe import read_facts
from netbench.model import Campaign, Host, Pair

ChannelFactory = Callable[[Host], Channel]
_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def open_channel(host: Host) -> Channel:
    """The way to a host. Errors: NotBuiltYet for hosts over SSH."""
    if not host.local:
        raise NotBuiltYet(f"hosts.{host.name}: hosts over SSH are not built yet; `local` is this machine")
    return LocalChannel(host.name)


def roles(campaign: Campaign) -> dict[str, str]:
    """The hosts that take part, each with a role that it has in some pair: whose worker can be asked about the host."""
    found = {pair.receiver: "receiver" for pair in campaign.pairs}
    return found | {pair.sender: "sender" for pair in campaign.pairs}


class Crew:
    """Workers by host and role (`sender`, `receiver`); a context manager that says goodbye to all of them."""

    def __init__(self, campaign: Campaign, channels: ChannelFactory = open_channel) -> None:
        self._hosts = campaign.hosts
        self._channels = {name: channels(host) for name, host in campaign.hosts.items()}
        self._workers: dict[tuple[str, str], Worker] = {}
        self._cpus: dict[str, Cpus] = {}
        self._heart = Heart()

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def worker(self, host: str, role: str) -> Worker:
        """The worker of that host and role. Errors: HostError, WorkerLost, ProtocolError."""
        key = host, role
        if key not in self._workers:
            channel = self._channels[host]
            worker = Worker(channel.start(channel.worker_argv()), host)
            self._heart.add(worker)
            self._workers[key] = worker
        return self._workers[key]

    def dismiss(self, host: str, role: str) -> None:
        """Let go of a worker that is lost; the next call of `worker` starts another."""
        worker = self._workers.pop((host, role), None)
        if worker is not None:
            self._heart.remove(worker)
            worker.close()

    def address(self, host: str, ip: int) -> str:
        """The data address of a host; of this machine the loopback, when the campaign names none."""
        known = self._hosts[host].address
        return known or ("::1" if ip == 6 else "127.0.0.1")

    def share_kernel(self, pair: Pair) -> bool:
        """Whether both hosts of a pair run on one kernel: their boot ids are equal."""
        sender, receiver = self.worker(pair.sender, "sender"), self.worker(pair.receiver, "receiver")
        return sender.hello.boot_id == receiver.hello.boot_id

    def cpus(self, host: str, role: str) -> Cpus:
        """CPUs that a host's worker may use, read from the kernel once."""
        if host not in self._cpus:
            worker = self.worker(host, role)
            status, _ = worker.operate("file", "/proc/self/status")
            allowed = next(line.split(":")[1] for line in status.splitlines() if line.startswith("Cpus_allowed_list:"))
            siblings: dict[int, tuple[int, ...]] = {}
            for cpu in parse_cpu_list(allowed):
                with contextlib.suppress(EngineError):
                    siblings[cpu] = parse_cpu_list(worker.operate("file", _SIBLINGS.format(cpu))[0])
            self._cpus[host] = Cpus(parse_cpu_list(allowed), siblings)
        return self._cpus[host]

    def facts(self, host: str, role: str, boot: int) -> dict[str, Any]:
        """One boot's entry of facts.json for a host."""
        worker = self.worker(host, role)
        facts, missing = read_facts(lambda file: worker.operate("file", file)[0])
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

    def workers(self) -> Mapping[tuple[str, str], Worker]:
        """Those that are there."""
        return dict(self._workers)

    def close(self) -> None:
        """Say goodbye to every worker, at the same time, and let go of the hosts."""
        self._heart.stop()
        if self._workers:
            with ThreadPoolExecutor(max_workers=min(32, len(self._workers))) as pool:
                list(pool.map(Worker.close, self._workers.values()))
        self._workers.clear()
        for channel in self._channels.values():
            channel.close()
