"""Entries of facts.json: what was read of each host when it was seen in a boot."""

from __future__ import annotations

import contextlib
from pathlib import Path

from netbench.base.errors import EngineError
from netbench.engine.worker import Worker
from netbench.hosts.deploy import parcel
from netbench.hosts.probe import read_facts
from netbench.model import Campaign, Host
from netbench.result.files import HostEntry
from netbench.run.worker_pool import WorkerPool
from netbench.tools.adaptors import TOOLS

FILES_FOLDER = "/tmp"  # where the engine keeps the nameless files of `source: {files: ...}`


def read_all(campaign: Campaign, pool: WorkerPool) -> dict[str, HostEntry]:
    """An entry of facts.json for every host, read at the same time. Errors: EngineError; Lost."""
    entries: dict[str, HostEntry] = {}

    def read(host: str) -> None:
        entries[host] = read_host(campaign, pool, host)

    pool.each(read)
    return {host: entries[host] for host in campaign.roles}


def read_host(campaign: Campaign, pool: WorkerPool, host: str) -> HostEntry:
    """One host's entry, as that of boot 0. Errors: EngineError; Lost."""
    worker = pool.host_worker(host)
    facts, missing = read_facts(worker.ask, subjects(campaign, host, worker))
    hello = worker.hello
    if campaign.hosts[host].local:
        facts["engine_hash"] = parcel(hello.architecture, host).sha256[:16]
        missing.pop("engine_hash", None)
    facts["tick_rate"] = str(hello.tick_rate)
    return HostEntry(
        boot=0,
        boot_id=hello.boot_id,
        clock_ticks=hello.clock_ticks,
        cpus=hello.cpus,
        architecture=hello.architecture,
        engine=hello.engine,
        layout=f"{hello.layout:016x}",
        facts=facts,
        missing=missing,
        unread=_unread(campaign, worker),
    )


def _unread(campaign: Campaign, worker: Worker) -> dict[str, str]:
    """Meters of the campaign, and counters of theirs, that cannot be read there, and why."""
    known = worker.catalogue.meters
    meters = [known[name] for name in campaign.meters if name in known]
    return {name: why for meter in meters for name, why in meter.unread.items()}


def own_boot_id() -> str:
    """The boot of the machine that netbench runs on."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def data_interface(host: Host, worker: Worker, ip: int) -> str:
    """The interface of a host's data address. Errors: EngineError when it has none; Lost."""
    return host.interface or worker.operate("interface", host.data_address(ip))[0].strip()


def subjects(campaign: Campaign, name: str, worker: Worker) -> dict[str, list[str]]:
    """What facts are about: the interface and peer of a host, and the files that it uses."""
    sends = any(pair.sender == name for pair in campaign.pairs)
    receives = any(pair.receiver == name for pair in campaign.pairs)
    peer = next(
        pair.receiver if pair.sender == name else pair.sender
        for pair in campaign.pairs
        if name in (pair.sender, pair.receiver)
    )
    transfers = [cell.transfer for cell in campaign.cells]
    sources = [
        transfer.source.path or FILES_FOLDER
        for transfer in transfers
        if sends and transfer.source.kind in ("file", "files")
    ]
    subjects = {
        "peer": [campaign.hosts[peer].data_address(campaign.ip)],
        "source": sources,
        "sink": [t.sink.path for t in transfers if receives and t.sink.kind == "file"],
        "tool": [
            TOOLS[transfer.tool.name].program
            for transfer in transfers
            if transfer.tool.name in TOOLS
        ],
    }
    with contextlib.suppress(EngineError):
        subjects["interface"] = [data_interface(campaign.hosts[name], worker, campaign.ip)]
    return {subject: list(dict.fromkeys(values)) for subject, values in subjects.items()}
