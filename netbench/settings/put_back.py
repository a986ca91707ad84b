"""Undoing changes from a journal, on their host, after their worker is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from netbench.base.errors import EngineError
from netbench.result.journal import Change, Restored
from netbench.settings.neighbours import OP, parse, text_of, writable
from netbench.settings.setting import Worker

ROUNDS = 4


def put_back(
    worker: Worker, boot_id: str, changes: Sequence[Change], write: Callable[[Restored], None]
) -> Iterator[str]:
    """Undo changes of a journal on their host, the last first. Gives what was done, and writes
    `Restored` for each.

    Errors: EngineError with what could not be put back, once all others are.
    """
    done = _undone_by_worker(worker, boot_id, changes)
    for change, now in done.items():
        write(Restored((change.number,), change.host))
        what = f"{change.before.strip()!r} only while a program had moved it, which is undone"
        yield f"{change}: taken for undone: it reads {now.strip()!r}, and read {what}"
    left, before = [change for change in changes if change not in done], len(changes) + 1
    failed: list[EngineError] = []
    while len(left) < before:  # some cannot be before the others are
        before, failed, again = len(left), [], []
        for change in left:
            try:
                line = f"{change}: {_put_back(worker, boot_id, change)}"
            except EngineError as error:
                failed.append(error)
                again.append(change)
            else:
                write(Restored((change.number,), change.host))
                yield line
        left = again
    if failed:
        raise all_of(failed)


def all_of(errors: Sequence[EngineError]) -> EngineError:
    """Errors as one."""
    first = errors[0]
    more = "".join(f"; {error}" for error in errors[1:])
    return EngineError(
        first.code, first.errno, first.operation, f"{first.message}{more}", first.remedy
    )


def _undone_by_worker(
    worker: Worker, boot_id: str, changes: Sequence[Change]
) -> Mapping[Change, str]:
    """Of changes by programs, and of files, those that a worker has undone and that read otherwise
    than before, with what they read: a program that ran before them had moved them. Where what a
    program changed reads as before, which is another level than its own, all that was set after it
    is undone, but for what reads as it was set.
    """
    now: dict[Change, str] = {}
    for change in changes if any(each.look for each in changes[1:]) else ():
        with suppress(EngineError):  # it may need what is undone
            if change.boot_id == boot_id and (source := _source(change)):
                now[change] = worker.operate(change.op, source)[0]
    ends = [at for at, each in enumerate(changes) if each.look and now.get(each) == each.before]
    return {
        each: now[each]
        for each in changes[: max(ends, default=0)]
        if each in now
        and (each.look or each.op == "file")
        and now[each] != each.before
        and now[each].split() != (each.value or "").split()
    }


def _source(change: Change) -> tuple[str, ...]:
    """What is asked for what it changed; nothing of a program that nothing reads."""
    return change.look or (() if change.undo else change.target)


def _put_back(worker: Worker, boot_id: str, change: Change) -> str:
    """Undo one change; what was done. A worker that lost its controller may have undone it already:
    nothing is done twice.
    """
    if change.boot_id != boot_id and not change.undo:  # what a program made may be in files
        return "gone, the host was booted since"
    source = _source(change)
    now = worker.operate(change.op, source)[0] if source else None
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
