"""What `check` finds: whether a campaign can run, and what is noisy. Changes no setting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from netbench.base.errors import RequestError
from netbench.base.units import listed
from netbench.engine.binding import Hello
from netbench.engine.catalogue import Named
from netbench.model import Campaign
from netbench.plan.plan import Plan, Unit
from netbench.read.metrics import SOAK
from netbench.result.files import HostEntry
from netbench.result.journal import Journal
from netbench.run import external_tool
from netbench.run.check_ends import check_ends
from netbench.run.check_root import check_root, host_levels, needing_root
from netbench.run.ends import EndFinder
from netbench.run.finding import Finding
from netbench.run.host_facts import read_all
from netbench.run.host_load import looking, warnings
from netbench.run.host_locks import changes_kernel
from netbench.run.job import MadeSinks
from netbench.run.left_over import ROOT, left_over
from netbench.run.worker_pool import WorkerPool

if TYPE_CHECKING:
    from netbench.kernels.boot.campaign_boots import Boots

ORDER = ("error", "warning", "ok")


def check(
    campaign: Campaign,
    pool: WorkerPool,
    sinks: MadeSinks | None = None,
    look: float = 0.0,
    alone: bool = False,
) -> list[Finding]:
    """Everything that can be said before a run, errors first. `sinks`: files that this campaign
    made itself; `look`: seconds, at least, in which to see what else uses the hosts; `alone`: no
    campaign follows.

    Errors: those of reaching a host.
    """
    pool.start_all(changes=not alone)
    with looking(campaign, pool, look) as noise:
        entries = read_all(campaign, pool)
    boots = boots_of(campaign, pool, Journal(), lambda _: None)
    findings = [
        *(Finding("warning", "", what) for what in campaign.warnings),
        *_hosts(campaign, pool, entries),
        *left_over(pool, campaign.roles),
        *dict.fromkeys(_units(campaign, pool, sinks)),
        *check_root(campaign, pool),
        *_settings(campaign, pool),
        *check_overlap(campaign, [pool.host_worker(host).hello for host in campaign.roles]),
        *(boots.check() if boots and not pool.refused.keys() & pool.needing else ()),
        *warnings(pool, entries, noise),
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
            from netbench.run.soak_meter import doubts  # imports numpy

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
    some_run = any(all(one.level != "error" for one in messages) for messages in by_unit)
    for one in (one for messages in by_unit for one in messages):
        if one.skips and some_run:
            remedy = f"{one.remedy}, or its cells are unsupported"
            yield one._replace(level="warning", remedy=remedy)
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
    if transfer.tool.external and (why := external_tool.unable(transfer, sender, receiver)):
        what = f"cell {unit.cell.id}: {why}"
        yield Finding("warning", "", what, "`exclude:` the cell, or it is reported as unsupported")


def _settings(campaign: Campaign, pool: WorkerPool) -> Iterator[Finding]:
    """Levels that a host cannot have, as far as is known without a change, and what takes root."""
    untried: dict[str, list[str]] = {}
    for one in host_levels(campaign, pool):
        if one.why:
            remedy = "leave this level out, or use another interface"
            yield Finding("error", one.place.host, f"{one.key}: {one.level}: {one.why}", remedy)
            continue
        needs = list(needing_root(one))
        yield from needs
        if needs and not one.setting.certain:
            untried.setdefault(one.place.host, []).append(f"{one.key}: {one.level}")
    for host, levels in untried.items():
        yield Finding("ok", host, f"not known before it is tried: {', '.join(levels)}")


def check_overlap(campaign: Campaign, hosts: Sequence[Hello]) -> Iterator[Finding]:
    """An error where pairs side by side could set what is of their whole kernel, or of the network
    namespace of two of these hosts: the second might take what the first has set for what was
    there before.
    """
    spaces = {(hello.boot_id, hello.network) for hello in hosts}
    is_one = len(spaces) < len(hosts) and any(
        [campaign.settings, *(cell.settings for cell in campaign.cells)]
    )
    if (changes_kernel(campaign) or is_one) and campaign.overlap == "kernel":
        what = "pairs may share what a setting of this campaign is of: a kernel, or its network"
        yield Finding("error", "", f"overlap: kernel: {what}", "write `overlap: round`")


def boots_of(
    campaign: Campaign,
    pool: WorkerPool,
    journal: Journal,
    say: Callable[[str], None],
    lock: Callable[[str], None] = lambda host: None,
) -> Boots | None:
    """What boots a campaign's hosts; None where it leaves them as they are. `say` gets lines for
    the log and the terminal; `lock`: as of Boots.
    """
    if not campaign.boots_hosts:
        return None
    from netbench.kernels.boot.campaign_boots import Boots

    return Boots(campaign, pool, journal, say, lock)
