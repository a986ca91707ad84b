"""Undoing changes from a journal, on their host, after their worker is gone."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from netbench.base.errors import EngineError
from netbench.result.journal import Change, Restored, in_a_line
from netbench.settings.neighbours import OP, parse, text_of, writable
from netbench.settings.setting import Worker

LEFT = "left as it is"
ROUNDS = 4
LEAVE_SECONDS, LEAVE_PAUSE = 60.0, 0.1
RUN = re.compile(r"^(\d{1,10}) (\d{1,10})$", re.ASCII | re.MULTILINE)
"""First and last of numbers that were undone."""
PID = re.compile(r"^\d{1,10}$", re.ASCII | re.MULTILINE)


class There(NamedTuple):
    """A host: the worker that changes it, and the boot that it is in."""

    worker: Worker
    boot_id: str


def put_back(
    hosts: Mapping[str, There],
    changes: Sequence[Change],
    write: Callable[[Restored], None],
    campaign: str = "",
    living: Collection[int] = (),
) -> Iterator[str]:
    """Undo changes of a journal on their hosts, the last first: hosts of one kernel have one stack.
    Gives what was done. `campaign`: by which its workers know what they have undone themselves;
    `living`: those that are not lost.

    A change is `Restored` once all above it are: the undo of one that stays may move what is below.
    Errors: EngineError with what could not be put back, once all others are.
    """
    named = (_renamed(hosts[change.host], change) for change in changes)
    pending = deque(sorted(named, key=lambda change: change.number, reverse=True))
    patience = LEAVE_SECONDS * (1 + sum(bool(change.undo) for change in changes))
    for there in hosts.values() if campaign and changes else ():
        _await_lost(there.worker, campaign, living, patience)
    numbers = [change.number for change in pending]
    ended = {name: undone_by(there.worker, campaign, numbers) for name, there in hosts.items()}
    undone = [change for change in pending if change.number in ended[change.host]]
    left = {change.number: _reads(hosts[change.host].worker, change) for change in undone}
    gone = {
        name: gone_of(there, [e for e in pending if e.host == name])
        for name, there in hosts.items()
    }
    by_number: dict[int, str] = {}
    failed: dict[int, EngineError] = {}
    armed: dict[int, Change] = {}

    def note(worker: Worker, number: int) -> None:
        with suppress(EngineError):  # there may be no room
            if campaign:
                worker.operate("undone", (campaign, "0"), str(number))

    while True:
        before, failed = failed, {}
        for change in (armed.get(each.number, each) for each in list(pending)):
            number, (worker, boot_id) = change.number, hosts[change.host]
            try:
                if number in left and change.interface not in gone[change.host]:
                    what = _keep(worker, change, left[number])
                else:
                    below = any(_is_in_the_way(e, change) for e in pending if e.number in left)
                    under = [e for e in pending if e.host == change.host and e.number < number]
                    armed = {e.number: _arm(worker, e) for e in under[:1] if not failed} | armed
                    what = _put_back(worker, boot_id, change, below, gone[change.host])
                    _leave_to_restore(f"{change.host}: {change}: {what}" * bool(living))
            except EngineError as error:  # it may have needed that others are before it
                failed[number] = error
                if left.pop(number, None) is not None:  # so by now it is not undone
                    note(worker, -number)
                continue
            if number not in by_number:
                yield f"{change.host}: {change}: {what}"
            by_number.setdefault(number, f"{change}: {what}")
            note(worker, number)
            if pending[0].number == number:
                pending.popleft()
                write(Restored((number,), change.host))
            else:
                left[number] = _reads(worker, change)
        if not failed or (before and len(failed) >= len(before)):
            break
    unsure = [line for line in by_number.values() if f": {LEFT}" in line]
    errors = [*failed.values(), *(EngineError(0, 0, "restore", u, "look at it") for u in unsure)]
    if errors:
        raise all_of(errors)


def _await_lost(worker: Worker, campaign: str, living: Collection[int], patience: float) -> None:
    """Let workers that were lost undo what they hold; one that is stopped would do that whenever it
    is continued, and is ended. `patience`: in seconds. Errors: EngineError where one stays.
    """
    deadline = time.monotonic() + patience
    while holding := {
        pid
        for pid in map(int, PID.findall(worker.operate("undone", (campaign, "holders"))[0]))
        if pid not in living and not worker.end_stopped(pid)
    }:
        if time.monotonic() > deadline:
            what = f"process {min(holding)} of a lost worker holds what it has changed"
            raise EngineError(0, 0, "restore", what, "see what it waits for: `dmesg` there")
        time.sleep(LEAVE_PAUSE)


def undone_by(worker: Worker, campaign: str, numbers: Sequence[int]) -> set[int]:
    """Of these changes of a campaign those that workers say to have undone, there, in this boot."""
    text = ""
    if campaign and numbers:
        with suppress(EngineError):  # what is not known is looked at
            text = worker.operate("undone", (campaign, str(min(numbers))))[0]
    runs = [(int(first), int(last)) for first, last in RUN.findall(text)]
    return {number for number in numbers if any(low <= number <= high for low, high in runs)}


def gone_of(there: There, changes: Sequence[Change]) -> set[str]:
    """Interfaces of changes of this boot, as they have them, that are there no more."""
    named = {each.interface for each in changes if each.boot_id == there.boot_id} - {""}
    return {each for each in named if not there.worker.operate("index", each)[0]}


def gone_with(interface: str) -> str:
    """What became of a change of an interface that is there no more."""
    return f"gone with {interface.partition(' ')[2]}, deleted or moved to another namespace"


def all_of(errors: Sequence[EngineError]) -> EngineError:
    """Errors as one; a remedy that all have stands once, at the end."""
    first = errors[0]
    end = f"; {first.remedy}" * (len({error.remedy for error in errors}) == 1)
    more = "".join(f"; {str(error).removesuffix(end)}" for error in errors[1:])
    return EngineError(
        first.code, first.errno, first.operation, f"{first.message}{more}", first.remedy
    )


def _source(change: Change) -> tuple[str, ...]:
    """What is asked for what it changed; nothing of a program that nothing reads."""
    return change.look or (() if change.undo else change.target)


def _reads(worker: Worker, change: Change) -> str | None:
    """What it changed reads; None where nothing can be read."""
    with suppress(EngineError):  # it may need what is undone
        if source := _source(change):
            return worker.operate(change.op, source)[0]
    return None


def _keep(worker: Worker, change: Change, left: str | None) -> str:
    """See that what was undone still reads as it was left then: the undo of what lay above it,
    which came later, may have moved it. What was done.
    """
    now = _reads(worker, change)
    if left is None or now == left:
        return "undone before"
    if change.look:  # it is undone again
        what = f"{change} reads {now!r}, and read {left!r} once it was undone"
        raise EngineError(0, 0, "restore", what, "look at it")
    worker.operate(change.op, change.target, left, restore=True)
    return "put back again"


def _put_back(
    worker: Worker, boot_id: str, change: Change, below: bool, gone: Collection[str]
) -> str:
    """Undo one change; what was done. `below`: a program below it, which may have moved it, is
    undone already, so that what it read then is of nobody any more. `gone`: as of gone_of.
    """
    if change.boot_id != boot_id and not change.undo:  # what a program made may be in files
        return "gone, the host was booted since"
    if change.interface in gone:
        return gone_with(change.interface)
    source = _source(change)
    now = worker.operate(change.op, source)[0] if source else None
    if now is not None and not _is_as_set(change, now):  # it is not there any more
        if change.boot_id != boot_id:
            stays = f"{LEFT}, as the host was booted since: it reads {_shown(now)}"
            return stays if now != change.before else "gone, the host was booted since"
        if below and now != change.before:
            return f"gone with what was below it: it reads {_shown(now)}; look at it"
    elif below and now not in (None, change.before):
        was = f"it reads {_shown(now)}, and read {_shown(change.before)} before"
        return f"{LEFT}, as what lay below it was undone first: {was}"
    if change.undo and now != change.before:
        worker.operate("exec", change.undo)
        if source and worker.operate(change.op, source)[0] != change.before:
            what = f"{change}: {in_a_line(change.undo)} leaves it changed"
            raise EngineError(0, 0, "restore", what, "put it back by hand: restore sees that")
        return f"undone by {in_a_line(change.undo)}"
    value, left = now, _left(change, now)
    if change.op == "mount":  # its folder may be there without it
        left = (change.before,)
    if not left:
        return "is as it was"
    for _ in range(ROUNDS):  # what is written may move others
        _, now = worker.operate(change.op, change.target, left[0], restore=True)
        if not (left := _left(change, now)):
            as_set = value is None or _is_as_set(change, value)
            return "put back" + f"; it read {_shown(value or '')}, not what was set" * (not as_set)
    what = f"{change} does not read {left[0]!r} again"
    raise EngineError(0, 0, "restore", what, "restore it by hand")


def _is_in_the_way(one: Change, of: Change) -> bool:
    """Whether a program below moved what the other found; if both read it: to its level."""
    same = bool(one.look) and one.look == of.look and (one.value or "").split() != of.before.split()
    return bool(one.undo) and one.number < of.number and not same


def _leave_to_restore(what: str) -> None:
    """Errors: EngineError with what was left as it is: `restore` looks again, and says it once."""
    if LEFT in what:
        raise EngineError(0, 0, "restore", what, "look at it")


def _arm(worker: Worker, change: Change) -> Change:
    """What moved along with another, before that is undone: without what others changed since."""
    if change.op != OP or change.value is None or (now := _reads(worker, change)) is None:
        return change
    was, after, there = map(parse, (change.before, change.value, now))
    keys = [key for key in writable(was) if there.get(key) == after.get(key)]
    return replace(change, before=text_of(keys, was))


def _renamed(there: There, change: Change) -> Change:
    """With the name that its interface has by now."""
    if not change.interface or change.boot_id != there.boot_id:
        return change
    called = there.worker.operate("index", change.interface)[0].partition("\n")[0]
    was, name = (each.partition(" ")[2] for each in (change.interface, called))
    place = rf"^(|/proc/sys/net/[^/]+/(?:conf|neigh)/|/sys/.*?/net/){re.escape(was)}(?=/|$)"
    of = re.sub(place, lambda found: found[1] + (name or was), change.target[0])
    return replace(change, target=(of, *change.target[1:]), interface=called or change.interface)


def _shown(text: str) -> str:
    return repr(text.strip().replace("\n", ";")[:70])


def _is_as_set(change: Change, now: str) -> bool:
    """Whether what a program, a file or a number of a link was set to is still there; of others
    that is not told. A file may read its choices, with the one that holds in brackets.
    """
    value = (change.value or "").split()
    if not change.look and change.op not in ("file", "link"):
        return True
    return now.split() == value or f"[{' '.join(value)}]" in now


def _left(change: Change, now: str | None) -> tuple[str] | None:
    """What of a text is to be written again: of several values those that differ, as the host may
    allow no others, and none of an interface that has gone: its section has.
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
