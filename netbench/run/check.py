"""What `check` finds: whether a campaign can run here, and what will make its numbers noisy.
Changes no setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from netbench.base.errors import APT_INSTALL, EngineError, RequestError
from netbench.base.units import listed
from netbench.engine.catalogue import Named
from netbench.engine.worker import Worker
from netbench.model import Campaign, Pair, SettingLevel
from netbench.plan.plan import Plan, Unit
from netbench.plan.rounds import rounds_of
from netbench.read.soak import SOAK
from netbench.result.files import HostEntry
from netbench.result.journal import Journal
from netbench.run import external_tool
from netbench.run.boots import boots_of
from netbench.run.check_ends import check_ends, check_memory
from netbench.run.check_root import check_root, needing_root, who_reads
from netbench.run.ends import EndFinder
from netbench.run.finding import Finding
from netbench.run.held_settings import levels_of
from netbench.run.host_facts import read_all
from netbench.run.host_load import warnings
from netbench.run.host_locks import changes_kernel
from netbench.run.job import MadeSinks
from netbench.run.own_settings import context_of
from netbench.run.soak_meter import doubts
from netbench.run.worker_pool import WorkerPool
from netbench.settings.named import find
from netbench.settings.setting import SettingContext
from netbench.tools.adaptors import adaptor_of
from netbench.tools.tool import Place

ROOT = 0  # the id of its user
ORDER = ("error", "warning", "ok")


def check(
    campaign: Campaign,
    pool: WorkerPool,
    sinks: MadeSinks | None = None,
    look: float = 0.0,
    alone: bool = False,
) -> list[Finding]:
    """Everything that can be said before a run, errors first. `sinks`: files that this campaign
    made itself; `look`: seconds in which to see what else uses the hosts; `alone`: no campaign
    follows.

    Errors: those of reaching a host.
    """
    pool.start_all(changes=not alone)
    entries = read_all(campaign, pool)
    boots = boots_of(campaign, pool, Journal(), lambda _: None)
    findings = [
        *(Finding("warning", "", what) for what in campaign.warnings),
        *_hosts(campaign, pool, entries),
        *dict.fromkeys(_units(campaign, pool, sinks)),
        *check_root(campaign, pool),
        *_settings(campaign, pool),
        *check_overlap(campaign, pool),
        *(boots.check() if boots and not pool.refused.keys() & pool.needing else ()),
        *warnings(campaign, pool, entries, look),
    ]
    return sorted(findings, key=lambda finding: ORDER.index(finding.level))


def _hosts(
    campaign: Campaign, pool: WorkerPool, entries: Mapping[str, HostEntry]
) -> Iterator[Finding]:
    for name in campaign.roles:
        entry = entries[name]
        kernel = entry.facts.get("kernel") or "unknown"
        yield Finding(
            "ok",
            name,
            f"engine {entry.engine} runs on {entry.architecture}, kernel {kernel},"
            f" {entry.cpus} CPUs",
        )
        mover = pool.host_worker(name)
        if mover.hello.user == ROOT and not campaign.lab and not campaign.hosts[name].run_as:
            yield Finding(
                "warning",
                name,
                "data, sources, sinks and tools run as root",
                "write `run_as: USER`, or connect as another user",
            )
        yield from _meters(name, campaign.meters, mover.catalogue.meters)
        if SOAK in campaign.meters:
            for what, remedy in doubts(mover):
                yield Finding("warning", name, f"soak: {what}", remedy)
        for meter in pool.lent.get(name, ()):
            yield Finding("ok", name, f"needs root: meter_files {meter} (meters: {meter})")


def _meters(host: str, wanted: Iterable[str], known: Mapping[str, Named]) -> Iterator[Finding]:
    for name in wanted:
        if known[name].row.why and known[name].accounts:
            yield Finding(
                "error",
                host,
                f"meters: {name} cannot run here: {known[name].row.why}",
                "remove it from `meters:`",
            )
        else:
            for what, why in _grouped(known[name].unread).items():
                yield Finding("warning", host, f"meters: {what}: {why}", "its columns stay empty")


def _grouped(unread: Mapping[str, str]) -> dict[str, str]:
    """Counters that cannot be read for one reason together: `perf.cycles, perf.instructions`."""
    names: dict[str, list[str]] = {}
    for name, why in unread.items():
        if ".cpu_" not in name:  # which are those of all CPUs, a number each
            names.setdefault(why, []).append(name)
    return {listed(which, 4, ", "): why for why, which in names.items()}


def _units(campaign: Campaign, pool: WorkerPool, sinks: MadeSinks | None) -> Iterator[Finding]:
    """What is wrong with cells. Where some can run, what others lack is a warning."""
    ends = EndFinder(campaign, pool)
    by_unit = [list(_unit(campaign, unit, ends, pool, sinks)) for unit in Plan(campaign).units]
    some_run = any(all(one.level != "error" for one in found) for found in by_unit)
    for one in (one for found in by_unit for one in found):
        if one.skips and some_run:
            remedy = f"{one.remedy}, or its cells are unsupported"
            yield replace(one, level="warning", remedy=remedy)
        else:
            yield one


def _unit(
    campaign: Campaign, unit: Unit, ends: EndFinder, pool: WorkerPool, sinks: MadeSinks | None
) -> Iterator[Finding]:
    transfer = unit.cell.transfer
    sender, receiver = pool.pair_workers(unit.pair)
    try:
        ends.ends(unit)
    except RequestError as error:
        yield Finding("error", unit.pair.sender, str(error))
    yield from check_ends(campaign, unit, sender, receiver, sinks)
    yield from check_memory(transfer, sender, receiver)
    if transfer.tool.external:
        yield from _tool(unit, pool)


def _tool(unit: Unit, pool: WorkerPool) -> Iterator[Finding]:
    """What the tool of a cell cannot do, and whether its programs are installed."""
    transfer = unit.cell.transfer
    sender, receiver = pool.pair_workers(unit.pair)
    adaptor = adaptor_of(transfer.tool)
    if why := external_tool.unable(transfer, sender, receiver):
        what = f"cell {unit.cell.id}: {why}"
        yield Finding("warning", "", what, "`exclude:` the cell, or it is reported as unsupported")
        return
    lines = adaptor.commands(transfer, Place("", 1))
    client = receiver if lines.on_receiver else sender
    for worker, argv in ((client, lines.client), (receiver, lines.server)):
        program = adaptor.program or argv[0] if argv else ""
        if program and not _has_program(worker, program):
            how = f"{APT_INSTALL} {adaptor.package}" if adaptor.package else "or give its path"
            yield Finding(
                "warning",
                worker.host,
                f"{adaptor.name}: there is no program {program}: its runs will fail",
                f"install it ({how}), or `exclude:` its cells",
            )


def _has_program(worker: Worker, program: str) -> bool:
    """Whether the worker can start a program by this name. Errors: Lost."""
    argv = ["test", "-x", program]
    if "/" not in program:
        argv = ["sh", "-c", 'command -v "$1" >/dev/null', "sh", program]
    try:
        worker.operate("exec", argv)
    except EngineError:
        return False
    return True


def _settings(campaign: Campaign, pool: WorkerPool) -> Iterator[Finding]:
    """Levels that a host cannot have, as far as can be told without a change, and what takes root
    there.
    """
    untried: dict[str, list[str]] = {}
    for host, key, level, place, why in setting_levels(campaign, pool):
        if why:
            yield Finding(
                "error",
                host,
                f"{key}: {level}: {why}",
                "leave this level out, or use another interface",
            )
        else:
            needs = list(needing_root(place, key, level, campaign))
            yield from needs
            found = find(key, campaign.commands)
            if needs and found and not found[0].certain:
                untried.setdefault(host, []).append(f"{key}: {level}")
    for host, levels in untried.items():
        yield Finding("ok", host, f"not known before it is tried: {', '.join(levels)}")


def setting_levels(
    campaign: Campaign, pool: WorkerPool
) -> Iterator[tuple[str, str, SettingLevel, SettingContext, str]]:
    """(host, key, level, where it is made, why it cannot be had there or "") of every level of a
    setting.
    """
    wanted = {
        (one.host, key, level): None
        for unit in Plan(campaign).units
        for one in levels_of(campaign, unit)
        for layer in one.layers
        for key, level in layer.items()
    }
    places: dict[str, SettingContext] = {}
    for host, key, level in wanted:
        if host not in places:
            places[host] = context_of(campaign, host, who_reads(pool, host))
        why = "no such setting"
        if found := find(key, campaign.commands):
            try:
                why = found[0].why_not(found[1], level.value, places[host])
            except (EngineError, ValueError) as error:
                why = str(error)
        yield host, key, level, places[host], why


def check_overlap(campaign: Campaign, pool: WorkerPool) -> Iterator[Finding]:
    """An error where two pairs would set what is of their whole kernel at the same time: the second
    might take what the first has set for what was there before.
    """
    if not changes_kernel(campaign) or "kernel" not in map(campaign.overlap_of, campaign.cells):
        return
    kernel = pool.boot_ids()
    for pairs in rounds_of("kernel", campaign.pairs, campaign.links, {}):
        first_on: dict[str, Pair] = {}
        for pair in pairs:
            for one in {kernel[pair.sender], kernel[pair.receiver]}:
                other = first_on.setdefault(one, pair)
                if other is not pair:
                    yield Finding(
                        "error",
                        "",
                        f"overlap: kernel: {other.name} and {pair.name} share a kernel, and a"
                        " setting of this campaign is of the whole kernel",
                        "write `overlap: round`",
                    )
                    return
