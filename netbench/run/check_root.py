"""What of a campaign takes root on its hosts, as exact operations, and hosts that give none."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from netbench.base.errors import EngineError
from netbench.base.names import AS_IS
from netbench.base.units import listed
from netbench.model import Campaign, Cell, SettingLevel
from netbench.plan.plan import Plan
from netbench.run.finding import Finding
from netbench.run.held_settings import levels_of
from netbench.run.own_settings import context_of
from netbench.run.worker_pool import WorkerPool
from netbench.settings.named import find
from netbench.settings.setting import Operation, Setting, SettingContext

NAMED = 4  # settings; the rest are counted


def check_root(campaign: Campaign, pool: WorkerPool) -> Iterator[Finding]:
    """A finding a host, with what needs root there, and how many cells do; and one with what an
    administrator runs, which is the same for many hosts where the reasons are not.
    """
    for host, error in pool.refused.items():
        why, _, lines = str(error).removeprefix(f"{host}: ").partition("\n")
        if host in pool.needing:
            level, what = "error", _needs(campaign)
        else:
            level, what = "warning", "profile needs root, so there will be none"
        yield Finding(level, host, f"{what}: {why}")
        if lines:
            yield Finding(level, host, f"an administrator of each host allows it by\n{lines}")
    yield from _profile(campaign, pool)


def _profile(campaign: Campaign, pool: WorkerPool) -> Iterator[Finding]:
    """What a profile needs, of each host that gives root."""
    if campaign.profile is None:
        return
    operation = f"ready {campaign.profile.frequency}"
    for host in (host for host in campaign.roles if host not in pool.refused):
        try:
            pool.helper(host).ask_permission("profile", "sampling", operation)
        except EngineError as error:
            what = f"profile: there will be none: {error.message}"
            yield Finding("warning", host, what, error.remedy)
        else:
            yield Finding("ok", host, f"needs root: profile sampling '{operation}' (profile)")


def _needs(campaign: Campaign) -> str:
    """`tso, mtu need root`."""
    keys = dict.fromkeys(key for cell in campaign.cells for key in _changes(campaign, cell))
    return f"{listed(list(keys), NAMED, ', ')} {'needs' if len(keys) == 1 else 'need'} root"


def _changes(campaign: Campaign, cell: Cell) -> list[str]:
    """The keys of a cell that change a host."""
    boots = ["kernel"] if cell.kernel else ["repeat.boots"] if campaign.boots_hosts else []
    return [*(f"settings.{key}" for key in campaign.settings), *cell.settings, *boots]


class HostLevel(NamedTuple):
    """A level of `setting` that a host is to hold, where it is made, and why it cannot be had
    there, or "". `what`: the part of the key that the setting leaves open.
    """

    key: str
    level: SettingLevel
    place: SettingContext
    setting: Setting
    what: str
    why: str


def host_levels(campaign: Campaign, pool: WorkerPool) -> Iterator[HostLevel]:
    """Every level of a setting that may change a host, on each that is to hold it."""
    levels = {
        (one.host, key, level): None
        for unit in Plan(campaign).units
        for one in levels_of(campaign, unit)
        for layer in one.layers
        for key, level in layer.items()
        if level.value != AS_IS
    }
    places: dict[str, SettingContext] = {}
    for host, key, level in levels:
        if host not in places:
            # A host that gives no root is looked at through a mover.
            is_rootless = host in pool.refused
            worker = pool.host_worker(host) if is_rootless else pool.holder(host)
            places[host] = context_of(campaign, host, worker)
        matched = find(key, campaign.commands)
        assert matched is not None, "campaigns with other names are refused"
        setting, what = matched
        try:
            why = setting.why_not(what, level.value, places[host])
        except (EngineError, ValueError) as error:
            why = str(error)
        yield HostLevel(key, level, places[host], setting, what, why)


def needing_root(one: HostLevel) -> Iterator[Finding]:
    """Operations that give a host a level, each an error where the host's file forbids it."""
    place, level = one.place, f"{one.key}: {one.level}"
    try:
        operations = one.setting.changes(one.what, one.level.value, place)
    except (EngineError, ValueError):
        return  # what it reads now is only known once other settings are applied
    for operation in operations:
        try:
            place.worker.ask_permission(
                operation.op, operation.target, operation.value, operation.undo
            )
        except EngineError as error:
            yield Finding("error", place.host, f"{level}: {error.message}", error.remedy)
        else:
            yield Finding("ok", place.host, f"needs root: {in_words(operation)} ({level})")


def in_words(operation: Operation) -> str:
    """An operation, its target, and what it writes."""
    words = f"{operation.op} {shlex.join(operation.target)}"
    if operation.value is not None:
        words += f" {shlex.quote(' '.join(operation.value.split()))}"
    return f"{words}, undone by {shlex.join(operation.undo)}" if operation.undo else words
