"""What `check` finds: whether a campaign can run here, and what will make its numbers noisy.
Changes no setting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from netbench.conductor import job, pins, tools
from netbench.conductor.apply import asked_of, context_of
from netbench.conductor.boots import Boots, are_wanted
from netbench.conductor.host_load import warnings
from netbench.conductor.worker_pool import WorkerPool, roles
from netbench.engine.catalogue import Named
from netbench.engine.worker import Worker
from netbench.errors import EngineError, RequestError
from netbench.journal import Journal
from netbench.model import Campaign, Transfer
from netbench.plan import Plan, Unit
from netbench.settings.base import SettingContext, fields
from netbench.settings.catalogue import find

ALLOWED = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
NET_ADMIN = 1 << 12  # capability.h


@dataclass(frozen=True)
class Finding:
    """One thing found: level `error` (it cannot run), `warning` (it can, but) or `ok`; on which
    host; what; what to do.
    """

    level: str
    host: str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        where = f"{self.host}: " if self.host else ""
        return f"{self.level}: {where}{self.what}" + (f"; {self.remedy}" if self.remedy else "")


def check(
    campaign: Campaign,
    pool: WorkerPool,
    made: Collection[tuple[str, str]] = (),
    look: float = 0.0,
) -> list[Finding]:
    """Everything that can be said before a run, errors first. `made`: sinks (host, path) that this
    campaign made itself; `look`: seconds in which to see what else uses the CPUs.

    Errors: those of reaching a host.
    """
    findings = [Finding("error", "", what) for what in campaign.unbuilt]
    entries = pool.all_facts()
    for name, role in roles(campaign).items():
        findings.append(_host(name, entries[name]))
        findings += _meters(name, campaign.meters, pool.worker(name, role).catalogue.meters)
    seen: set[Finding] = set()
    for unit in Plan(campaign).units:
        for finding in _unit(unit, pool, made):
            if finding not in seen:
                seen.add(finding)
                findings.append(finding)
    findings += _settings(campaign, pool)
    findings += _boots(campaign, pool)
    findings += (
        Finding("warning", one.host, one.what, one.remedy)
        for one in warnings(campaign, pool, entries, look)
    )
    order = ("error", "warning", "ok")
    return sorted(findings, key=lambda finding: order.index(finding.level))


def _boots(campaign: Campaign, pool: WorkerPool) -> Iterator[Finding]:
    """Hosts that cannot be booted on the campaign's kernels."""
    if are_wanted(campaign):
        boots = Boots(campaign, pool, Journal(), lambda _: None)
        yield from (
            Finding("error", host, f"cannot be booted: {why}")
            for host, why in boots.why_not().items()
        )


def _host(name: str, entry: Mapping[str, Any]) -> Finding:
    kernel = entry["facts"].get("kernel") or "unknown"
    what = (
        f"engine {entry['engine']} runs on {entry['architecture']}, kernel {kernel},"
        f" {entry['cpus']} CPUs"
    )
    return Finding("ok", name, what)


def _settings(campaign: Campaign, pool: WorkerPool) -> Iterator[Finding]:
    """Levels that a host cannot have, as far as can be told without a change."""
    places: dict[str, SettingContext] = {}
    wanted: dict[tuple[str, str, str], None] = {}
    for unit in Plan(campaign).units:
        for host, side in ((unit.pair.sender, "sender"), (unit.pair.receiver, "receiver")):
            asked = asked_of(campaign, unit, side)
            wanted |= dict.fromkeys((host, key, level) for key, level in asked.items())
    for host, key, level in wanted:
        if host not in places:
            places[host] = context_of(
                campaign, pool, host, pool.worker(host, roles(campaign)[host])
            )
        why = _why_no_level(places[host], key, level, campaign)
        if why:
            yield Finding(
                "error",
                host,
                f"{key}: {level}: {why}",
                "leave this level out, or use another interface",
            )


def _why_no_level(place: SettingContext, key: str, level: str, campaign: Campaign) -> str:
    found = find(key, campaign.commands)
    if found is None:
        return "no such setting"
    setting, what = found
    try:
        return setting.why_not(what, setting.parse(level), place)
    except (EngineError, ValueError) as error:
        return str(error)


def _unit(unit: Unit, pool: WorkerPool, made: Collection[tuple[str, str]]) -> Iterator[Finding]:
    transfer, pair = unit.cell.transfer, unit.pair
    sender, receiver = (
        pool.worker(pair.sender, "sender"),
        pool.worker(pair.receiver, "receiver"),
    )
    yield from _method(pair.sender, "send", transfer.send, sender.catalogue.send)
    yield from _method(pair.receiver, "receive", transfer.receive, receiver.catalogue.receive)
    yield from _pin(unit, pool)
    yield from _congestion(transfer, pair.sender, pool)
    if transfer.source.kind == "file":
        yield from _readable(pair.sender, transfer.source.path, pool)
    for path in job.sink_paths(transfer):
        if (pair.receiver, path) not in made:
            yield from _writable(pair.receiver, path, transfer.sink.overwrite, pool)
    yield from _tool(transfer, unit, pool)


def _meters(host: str, wanted: Iterable[str], known: Mapping[str, Named]) -> Iterator[Finding]:
    for name in wanted:
        if name not in known:
            yield Finding(
                "error", host, f"meters: {name} is not there", "`list meters` names what is"
            )
        elif known[name].row.why:
            yield Finding(
                "error",
                host,
                f"meters: {name} cannot run here: {known[name].row.why}",
                "write meters: without it",
            )


def _method(host: str, side: str, name: str, known: Mapping[str, Named]) -> Iterator[Finding]:
    if name not in known:
        yield Finding(
            "error", host, f"{side}: {name} is not built yet", "`list methods` names what can run"
        )
    elif known[name].row.why:
        yield Finding(
            "error",
            host,
            f"{side}: {name} cannot run here: {known[name].row.why}",
            "`list methods` names what can",
        )


def _pin(unit: Unit, pool: WorkerPool) -> Iterator[Finding]:
    pin = unit.cell.transfer.pin
    if pin.kind == "none":
        return
    cpus = (
        pool.cpus(unit.pair.sender, "sender"),
        pool.cpus(unit.pair.receiver, "receiver"),
    )
    try:
        pins.choose(pin, *cpus, pool.share_kernel(unit.pair))
    except RequestError as error:
        yield Finding("error", unit.pair.sender, str(error))


def _congestion(transfer: Transfer, host: str, pool: WorkerPool) -> Iterator[Finding]:
    worker = pool.worker(host, "sender")
    available, _ = worker.operate("file", "/proc/sys/net/ipv4/tcp_available_congestion_control")
    if transfer.congestion is None:
        default, _ = worker.operate("file", "/proc/sys/net/ipv4/tcp_congestion_control")
        if default.strip() == "bbr":
            yield Finding(
                "warning",
                host,
                "the default congestion control, bbr, paces",
                "write congestion: cubic to see what the CPU can do",
            )
    elif transfer.congestion not in available.split():
        yield Finding(
            "error",
            host,
            f"congestion: {transfer.congestion} is not there; the kernel has {available.strip()}",
            f"load its module (modprobe tcp_{transfer.congestion})",
        )
    else:
        yield from _may_choose(transfer.congestion, host, worker)


def _may_choose(name: str, host: str, worker: Worker) -> Iterator[Finding]:
    """Who lacks CAP_NET_ADMIN may choose some congestion controls only (tcp(7)). Where a host does
    not say, the runs will.
    """
    allowed, status = worker.ask([("file", (ALLOWED,)), ("file", ("/proc/self/status",))])
    if (
        isinstance(allowed, EngineError)
        or isinstance(status, EngineError)
        or name in allowed.split()
    ):
        return
    if not int(fields(status).get("CapEff", "0"), 16) & NET_ADMIN:
        known = allowed.strip()
        remedy = (
            "let the worker be root, or allow it there: sysctl"
            f" net.ipv4.tcp_allowed_congestion_control='{known} {name}'"
        )
        yield Finding(
            "error",
            host,
            f"congestion: the worker's user may not choose {name}, only {known}",
            remedy,
        )


def _test(worker: Worker, *words: str) -> bool:
    """Whether test(1) says so on the host."""
    try:
        worker.operate("exec", ["test", *words])
    except EngineError:
        return False
    return True


def _readable(host: str, path: str, pool: WorkerPool) -> Iterator[Finding]:
    worker = pool.worker(host, "sender")
    if not _test(worker, "-e", path):
        yield Finding(
            "error",
            host,
            f"source: {path} is not there",
            "name a file on the sender, in a folder open to its worker",
        )
    elif not _test(worker, "-r", path):
        yield Finding(
            "error",
            host,
            f"source: {path} may not be read by the worker's user",
            "let it read it, or name another",
        )
    elif not _test(worker, "-b", path) and not _test(worker, "-f", path):
        yield Finding(
            "error",
            host,
            f"source: {path} is neither a file nor a block device",
            "name a file on the sender",
        )
    elif _test(worker, "-f", path) and not _test(worker, "-s", path):
        yield Finding("error", host, f"source: {path} is empty", "name a file that holds data")


def _writable(host: str, path: str, overwrite: bool, pool: WorkerPool) -> Iterator[Finding]:
    worker = pool.worker(host, "receiver")
    folder = str(PurePosixPath(path).parent)
    if _test(worker, "-c", path):
        return
    if _test(worker, "-e", path) and not overwrite:
        yield Finding(
            "error",
            host,
            f"sink: {path} exists",
            "choose another path, or write {file: ..., overwrite: true}",
        )
    elif not _test(worker, "-w", path if _test(worker, "-e", path) else folder):
        yield Finding(
            "error",
            host,
            f"sink: {path} cannot be written",
            "name a file in a folder of the receiver that can be",
        )


def _tool(transfer: Transfer, unit: Unit, pool: WorkerPool) -> Iterator[Finding]:
    if transfer.tool.kind != "iperf3":
        return
    why = tools.unable(transfer)
    if why:
        yield Finding(
            "warning",
            "",
            f"cell {unit.cell.id}: iperf3 cannot do it: {why}",
            "the cell will be unsupported; exclude it",
        )
    for host, role in ((unit.pair.sender, "sender"), (unit.pair.receiver, "receiver")):
        try:
            pool.worker(host, role).operate("exec", ["iperf3", "--version"])
        except EngineError:
            yield Finding(
                "error",
                host,
                "iperf3 is not there",
                "install it (apt-get install iperf3) or leave its cells out",
            )
