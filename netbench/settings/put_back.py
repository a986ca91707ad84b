"""Undoing changes from a journal, on their host, after their worker is gone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from netbench.base.errors import EngineError
from netbench.result.journal import Change, Restored
from netbench.settings.neighbours import OP, parse, text_of, writable
from netbench.settings.setting import Worker

ROUNDS = 4


class There(NamedTuple):
    """A host: the worker that changes it, and the boot that it is in."""

    worker: Worker
    boot_id: str


def put_back(
    hosts: Mapping[str, There],
    changes: Sequence[Change],
    write: Callable[[Restored], None],
    campaign: str = "",
) -> Iterator[str]:
    """Undo changes of a journal on their hosts, the last first: hosts of one kernel have one stack.
    Gives what was done. `campaign`: by which its workers know what they have undone themselves.

    A change is `Restored` once all above it are: what is below one that stays may be moved by its
    undo. Errors: EngineError with what could not be put back, once all others are.
    """
    pending = deque(sorted(changes, key=lambda change: change.number, reverse=True))
    undone = _undone(hosts, pending, campaign)
    done: set[int] = set()
    failed: dict[int, EngineError] = {}
    while True:
        before, failed, moved = failed, {}, False
        for change in list(pending):
            if change.number in done and not moved:
                continue
            try:
                what = _put_back(*hosts[change.host], change, change.number in undone)
            except EngineError as error:  # it may have needed that others are before it
                failed[change.number] = error
                continue
            moved = moved or change.number in before
            if change.number not in done:
                yield f"{change.host}: {change}: {what}"
            done.add(change.number)
            while pending and pending[0].number in done:
                last = pending.popleft()
                write(Restored((last.number,), last.host))
        if not failed or (before and len(failed) >= len(before)):
            break
    if failed:
        raise all_of(list(failed.values()))


def _undone(hosts: Mapping[str, There], changes: Sequence[Change], campaign: str) -> set[int]:
    """The changes that workers have undone, down to the first that they have not."""
    if not campaign or not changes:
        return set()
    least = changes[-1].number
    said = {n for there in hosts.values() for n in undone_by(there.worker, campaign, least)}
    stays = next((change.number for change in changes if change.number not in said), 0)
    return {number for number in said if number > stays}


def undone_by(worker: Worker, campaign: str, least: int) -> set[int]:
    """Of the changes of a campaign from a number on those that workers say to have undone, there,
    in this boot.
    """
    if not campaign:
        return set()
    return set(map(int, worker.operate("undone", (campaign, str(least)))[0].split()))


def all_of(errors: Sequence[EngineError]) -> EngineError:
    """Errors as one."""
    first = errors[0]
    more = "".join(f"; {error}" for error in errors[1:])
    return EngineError(
        first.code, first.errno, first.operation, f"{first.message}{more}", first.remedy
    )


def _source(change: Change) -> tuple[str, ...]:
    """What is asked for what it changed; nothing of a program that nothing reads."""
    return change.look or (() if change.undo else change.target)


def _put_back(worker: Worker, boot_id: str, change: Change, undone: bool) -> str:
    """Undo one change; what was done."""
    if undone:
        return "undone by its worker"
    if change.boot_id != boot_id and not change.undo:  # what a program made may be in files
        return "gone, the host was booted since"
    source = _source(change)
    now = worker.operate(change.op, source)[0] if source else None
    if change.boot_id != boot_id and now is not None and now.strip() != change.value:
        return "gone, the host was booted since"
    if change.undo and now != change.before:
        worker.operate("exec", change.undo)
        if source and worker.operate(change.op, source)[0] != change.before:
            what = f"{change}: {' '.join(change.undo)} leaves it changed"
            raise EngineError(0, 0, "restore", what, "put it back by hand: restore sees that")
        return f"undone by {' '.join(change.undo)}"
    left = _left(change, now)
    if change.op == "mount":  # its folder may be there without it
        left = (change.before,)
    if not left:
        return "is as it was"
    for _ in range(ROUNDS):  # what is written may move others
        _, now = worker.operate(change.op, change.target, left[0], restore=True)
        if not (left := _left(change, now)):
            return "put back"
    what = f"{change} does not read {left[0]!r} again"
    raise EngineError(0, 0, "restore", what, "restore it by hand")


def _left(change: Change, now: str | None) -> tuple[str] | None:
    """What of a text is to be written again: of several values those that differ, as the host may
    allow no others.
    """
    text = change.before
    if now == text or now is None:
        return None
    if change.op == OP:
        before, there = parse(text), parse(now)
        keys = [key for key in writable(before) if there.get(key, before[key]) != before[key]]
        return (text_of(keys, before),) if keys else None
    if change.op == "features":
        lines = now.splitlines(True)
        text = "".join(line for line in text.splitlines(True) if line not in lines)
    return (text,)
