"""What of a campaign takes root on its hosts, as exact operations."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from netbench.conductor.finding import Finding
from netbench.conductor.worker_pool import WorkerPool
from netbench.engine.worker import Worker
from netbench.errors import EngineError, HostError, WorkerLost
from netbench.model import Campaign, SettingLevel
from netbench.settings.base import Operation, SettingContext
from netbench.settings.catalogue import find


def who_reads(pool: WorkerPool, host: str) -> tuple[Worker, str]:
    """The worker through which a host's settings are looked at: its helper, or, where that cannot
    be started, a mover, with the reason. Errors: those of starting a mover.
    """
    try:
        return pool.holder(host), ""
    except (HostError, WorkerLost) as error:
        return pool.host_worker(host), str(error).removeprefix(f"{host}: ")


def needing_root(
    place: SettingContext, key: str, level: SettingLevel, campaign: Campaign
) -> Iterator[Finding]:
    """The operations that give a host a level which it has not, each an error where the host's
    own file forbids it.
    """
    setting_and_name = find(key, campaign.commands)
    assert setting_and_name is not None, "it was looked at before"
    setting, what = setting_and_name
    try:
        operations = setting.changes(what, level.value, place)
    except (EngineError, ValueError):
        return  # what it reads now is only known once other settings are applied
    for operation in operations:
        try:
            place.worker.ask_permission(
                operation.op, operation.target, operation.value, operation.undo
            )
        except EngineError as error:
            yield Finding("error", place.host, f"{key}: {level}: {error.message}", error.remedy)
        else:
            yield Finding("ok", place.host, f"needs root: {in_words(operation)} ({key}: {level})")


def in_words(operation: Operation) -> str:
    """An operation, its target, and what it writes."""
    words = f"{operation.op} {shlex.join(operation.target)}"
    if operation.value is not None:
        words += f" {shlex.quote(' '.join(operation.value.split()))}"
    return f"{words}, undone by {shlex.join(operation.undo)}" if operation.undo else words
