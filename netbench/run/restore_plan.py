"""What a journal says was left changed, in words: for someone who looks before anything is done."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from netbench.model import Campaign, Host
from netbench.result.journal import (
    Back,
    Change,
    Entry,
    ModulesHidden,
    ModulesShown,
    OriginalKernel,
    outstanding,
)


def restore_plan(campaign: Campaign, entries: Sequence[Entry]) -> list[str]:
    """Each connection, boot and operation that entries of a journal ask for, a line each."""
    lines: list[str] = []
    for name, host in campaign.hosts.items():
        changes = map(_undo, outstanding(entries, name))
        acts = [*_boots(host, entries), *_modules(host, entries), *changes]
        if acts:
            lines += [f"{name}: {act}" for act in (_connection(host), *acts)]
    return lines


def _connection(host: Host) -> str:
    if host.ssh is None:
        return "works on this machine"
    return f"connects to {host.ssh}" + (f" by {host.ssh_config}" if host.ssh_config else "")


def _boots(host: Host, entries: Iterable[Entry]) -> list[str]:
    left = ""
    for entry in entries:
        if isinstance(entry, OriginalKernel | Back) and entry.host == host.name:
            left = entry.release if isinstance(entry, OriginalKernel) else ""
    by = f"runs `{shlex.join(host.boot.argv)}`" if host.boot.argv else host.boot.kind
    return [f"boots back to {left}, where it is not running: {by}"] if left else []


def _modules(host: Host, entries: Iterable[Entry]) -> list[str]:
    shown: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry, ModulesShown) and entry.host == host.name:
            what = "unmounts" if entry.mounted else "removes the link"
            shown[entry.place] = f"{what} {shlex.quote(entry.place)}"
        elif isinstance(entry, ModulesHidden) and entry.host == host.name:
            shown.pop(entry.place, None)
    return list(shown.values())


def _undo(change: Change) -> str:
    look = f"runs `{shlex.join(change.look)}`; " if change.look else ""
    if change.undo:
        return f"{change.setting}: {look}runs `{shlex.join(change.undo)}`"
    if change.op == "neighbours":
        number = change.before.count("\n ")
        return f"{change.setting}: sets {number} values around it as they were"
    what = shlex.join((change.op, *change.target))
    if change.op == "exec":
        return f"{change.setting}: {look}runs `{shlex.join(change.target)}`"
    return f"{change.setting}: {look}sets {what} to {change.before.strip()!r}"
