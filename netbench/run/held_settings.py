"""The settings that a campaign holds on its hosts: each host locked, each change journalled; those
of a unit before a run, in the run's record, and read again after it.

Below those that the campaign names are its own (own_settings.py). Where they cannot be held the
campaign goes on without them.
"""

from __future__ import annotations

import threading
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from netbench.base.errors import EngineError, HostBusy, Lost, PlaceError, SettingRefused, WorkerLost
from netbench.engine.worker import Worker
from netbench.model import Campaign, SettingLevel
from netbench.plan.plan import Unit
from netbench.result.files import HostEntry
from netbench.result.journal import Change, Journal, LeftChanged
from netbench.result.record import SIDES, Record, SettingNote, Settings, SideName, Status
from netbench.run.host_locks import HostLocks
from netbench.run.own_settings import context_of, own_settings
from netbench.run.worker_pool import ATTEMPTS, WorkerPool
from netbench.settings import neighbours
from netbench.settings.files import NO_SAVE, SAVED
from netbench.settings.named import find
from netbench.settings.put_back import put_back
from netbench.settings.scope import HostSettings, Levels, layers
from netbench.settings.setting import Operation

NO_METRICS = Operation("file", (NO_SAVE,), SAVED["drop"])
"""The campaign's own change of every host, along with which nothing moves."""
OWN_SCOPE, NAMED_SCOPE = 0, 1  # of the worker: the campaign's own settings, those that it names

Read = dict[SideName, Mapping[str, str]]
"""What each side's settings read: side -> setting -> level."""


@dataclass(frozen=True)
class HostLevels:
    """The layers that a host is to hold for a unit, of one side of its pair or of both."""

    host: str
    sides: tuple[SideName, ...]
    layers: tuple[Levels, ...]


def levels_of(campaign: Campaign, unit: Unit) -> list[HostLevels]:
    """What the hosts of a unit are to hold: the sender and the receiver, or the one host that is
    both.
    """
    pair = unit.pair
    if pair.sender == pair.receiver:
        return [HostLevels(pair.sender, SIDES, _layers(campaign, unit, ""))]
    hosts: dict[SideName, str] = {"sender": pair.sender, "receiver": pair.receiver}
    return [
        HostLevels(host, (side,), _layers(campaign, unit, side)) for side, host in hosts.items()
    ]


def _layers(campaign: Campaign, unit: Unit, side: str) -> tuple[Levels, ...]:
    def of_side(name: str, level: SettingLevel) -> SettingLevel:
        setting = find(name, campaign.commands)
        return replace(level, value=setting[0].level_for(level.value, side)) if setting else level

    return tuple(
        {name: of_side(name, level) for name, level in layer.items()}
        for layer in layers(campaign.settings, unit.cell.settings, campaign.commands, side)
    )


@dataclass(frozen=True)
class _Held:
    """What is held through a worker."""

    worker: Worker
    own: HostSettings
    named: HostSettings


class HeldSettings:
    """The settings of each host, through the worker that it has now."""

    def __init__(
        self,
        campaign: Campaign,
        pool: WorkerPool,
        locks: HostLocks,
        journal: Journal,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._campaign = campaign
        self._pool = pool
        self._locks = locks
        self._journal = journal
        self._say = say
        self._hosts: dict[str, _Held] = {}
        self._applied: dict[str, Settings] = {}  # by pair, as its runs note them
        self._refused: dict[str, str] = {}  # hosts that do not take the campaign's own, with why
        self._learnt: dict[str, dict[Operation, str]] = {}  # by host
        self._found: dict[str, tuple[str, str]] = {}  # boot, and what `neighbours` read of all
        self._number_lock = threading.Lock()
        self._last_change = journal.last_number(Change)

    def claim(self) -> None:
        """Lock every host, and put back what an earlier worker of this campaign left. Errors:
        HostBusy; EngineError; Lost.

        Hosts of one kernel take turns: what the second finds there the first has set, and the
        first is the last to put back what it found.
        """
        order = reversed(self._restore_order(self._campaign.roles))
        self._in_turns({host: self._pool.holder(host).hello.boot_id for host in order}, self.of)

    def _in_turns(self, kernels: Mapping[str, str], act: Callable[[str], object]) -> None:
        """Do something on many hosts at the same time, and on those of one kernel in this order;
        `kernels`: of each host. The first error ends the turns of its kernel, and is raised.
        """
        mates: dict[str, list[str]] = {}
        for host, kernel in kernels.items():
            mates.setdefault(kernel, []).append(host)
        groups = {hosts[0]: hosts for hosts in mates.values()}

        def take_turns(first: str) -> None:
            for host in groups[first]:
                act(host)

        self._pool.each(take_turns, groups)

    def of(self, host: str) -> HostSettings:
        """A host's settings. A worker that is new has locked the host first, has put back what the
        one before left, and holds the campaign's own. Errors: as claim.
        """
        held = self._hosts.get(host)
        if held is None or held.worker is not self._pool.holder(host):
            held = self._take_over(host)
            self._hold_own(host, held.own)
        return held.named

    def described(self, entries: Mapping[str, HostEntry]) -> dict[str, HostEntry]:
        """Entries of facts.json with what of the campaign's own is not held there, and why."""

        def not_held(host: str) -> dict[str, str]:
            why = self._refused.get(host) or self._pool.no_root.get(host)
            return dict.fromkeys(own_settings(self._campaign, host), why) if why else {}

        return {host: replace(entry, not_held=not_held(host)) for host, entry in entries.items()}

    # --- of a unit ---

    def wanted(self, unit: Unit) -> bool:
        """Whether a unit has settings at all."""
        return bool(unit.cell.settings or self._campaign.settings)

    def renew(self, unit: Unit) -> None:
        """Hold the campaign's own settings again where the helper that held them was lost. A host
        that is not free for that goes without. Errors: EngineError; Lost.
        """
        for host in dict.fromkeys((unit.pair.sender, unit.pair.receiver)):
            if self._pool.has_helper(host) and host not in self._refused:
                try:
                    self.of(host)
                except HostBusy as error:
                    self._refused[host] = str(error)

    def enter(self, unit: Unit) -> None:
        """Bring the hosts to a unit's settings. Errors: SettingRefused where a host does not take a
        level; HostBusy; EngineError; Lost.
        """
        notes: dict[SideName, dict[str, SettingNote]] = {}
        moved: dict[str, tuple[str, str]] = {}
        wanted = levels_of(self._campaign, unit)
        for one in reversed(wanted):  # what a receiver holds may need what its sender holds
            self.of(one.host).release(one.layers)
        for one in wanted:
            held = self.of(one.host).hold(one.layers)
            moved |= {f"{one.host}.{name}": values for name, values in held.moved.items()}
            asked = ChainMap(*map(dict, one.layers))
            read = {key: SettingNote(asked[key].value, level) for key, level in held.levels.items()}
            notes |= dict.fromkeys(one.sides, read)
        self._applied[unit.pair.name] = Settings(notes["sender"], notes["receiver"], moved)

    def note(self, unit: Unit, record: Record) -> Record:
        """A run's record with the unit's settings: asked, read before the run, and read otherwise
        after it. Such a run has failed.
        """
        if not self.wanted(unit):
            return record
        held, own = self._applied[unit.pair.name], record.settings
        sender, receiver = {**own.sender, **held.sender}, {**own.receiver, **held.receiver}
        record = replace(record, settings=Settings(sender, receiver, held.moved))
        if record.status == "interrupted":
            return record
        unread = "settings could not be read after the run: "
        try:
            after = self._read_again(unit)
        except SettingRefused as error:
            return _ended(record, "failed", f"{unread}{error}")
        except WorkerLost as error:  # what it held was undone, perhaps within the run
            earlier = f"{record.reason}; " if record.reason else ""
            return replace(record, status="interrupted", reason=f"{earlier}{unread}{error}")
        if any(after[side].keys() != held.of(side).keys() for side in SIDES):
            # A worker that is new has not applied them.
            return _ended(record, "interrupted", "the worker that held the settings was lost")
        for side in SIDES:
            for key, level in after[side].items():
                if level != held.of(side)[key].read:
                    record = _changed(record, side, key, level)
        return record

    def confirm(self, unit: Unit) -> None:
        """See whether the helpers that hold the unit's settings are there. Errors: WorkerLost."""
        if self.wanted(unit):
            with suppress(SettingRefused):
                self._read_again(unit)

    def _read_again(self, unit: Unit) -> Read:
        """What a unit's settings read now. Errors: as enter."""
        read: Read = {}
        for one in levels_of(self._campaign, unit):
            read |= dict.fromkeys(one.sides, self.of(one.host).read_again())
        return read

    # --- there and back ---

    def _take_over(self, host: str) -> _Held:
        """Lock a host, and put back what an earlier worker left. Errors: as claim."""
        worker = self._pool.holder(host)
        self._locks.lock(host)
        boot_id = worker.hello.boot_id
        changes, elsewhere = self._left(host, worker)
        for line in elsewhere:
            self._locks.say(line)
        for _ in put_back(worker, boot_id, changes, self._journal.write):
            pass
        if self._pool.has_helper(host) and self._found.get(host, ("", ""))[0] != boot_id:
            try:
                text = worker.operate(neighbours.OP, neighbours.ALL)[0]
                self._found[host] = boot_id, text
            except EngineError as error:
                self._say(f"{host}: what it is left with is not compared at the end: {error}")
        place = context_of(self._campaign, host, worker)
        learnt = self._learnt.setdefault(host, {NO_METRICS: ""})
        commands, write = self._campaign.commands, self._journal.write
        own, named = (
            HostSettings(place, commands, write, self._next_change, boot_id, scope, learnt)
            for scope in (OWN_SCOPE, NAMED_SCOPE)
        )
        self._hosts[host] = _Held(worker, own, named)
        return self._hosts[host]

    def _hold_own(self, host: str, settings: HostSettings) -> None:
        if self._pool.has_helper(host):
            try:
                settings.hold([own_settings(self._campaign, host)])
            except (SettingRefused, PlaceError) as error:
                self._refused[host] = str(error)

    def restore(self) -> None:
        """Put back everything, on every host, many at the same time; of hosts that share a kernel
        the last claimed first: receivers, then senders. By the journal what a worker held that is
        lost. Errors: EngineError, Lost or TimeoutError of the first thing that could not be; others
        are put back.
        """
        boot_ids = self._pool.boot_ids()
        order = self._restore_order(self._hosts)
        failed: dict[str, EngineError | Lost | TimeoutError] = {}

        def restore(host: str) -> None:
            try:
                self._restore(host)
            except (EngineError, Lost, TimeoutError) as error:
                failed[host] = error

        self._in_turns({host: boot_ids.get(host, host) for host in order}, restore)
        for host in self._restore_order(self._found.keys() - failed.keys()):
            try:
                self._look(host)
            except (EngineError, Lost, TimeoutError) as error:  # all that was to be put back is
                self._say(f"{error}; so what {host} is left with was not compared")
        for host in self._restore_order(failed):
            raise failed[host]

    def _look(self, host: str) -> None:
        """Compare a host with how it was found, and say what no setting accounts for, once. Errors:
        as restore.
        """
        worker = self._pool.holder(host)
        boot_id, before = self._found[host]
        if worker.hello.boot_id != boot_id:
            return
        text = worker.operate(neighbours.OP, neighbours.ALL)[0]
        moved = neighbours.difference(neighbours.parse(before), neighbours.parse(text))
        self._found[host] = boot_id, text
        if moved:
            values = {neighbours.name_of(key): values for key, values in moved.items()}
            left = LeftChanged(host, values)
            self._journal.write(left)
            self._say(
                f"{left}: no setting accounts for this; another program changed it, or the kernel"
                " along with a setting: put it back by hand where it matters"
            )

    def _restore_order(self, hosts: Iterable[str]) -> list[str]:
        roles = self._campaign.roles
        return sorted(hosts, key=lambda host: (roles[host], host))

    def _restore(self, host: str) -> None:
        held = self._hosts[host]
        if self._pool.is_current(host, held.worker):
            try:
                held.named.undo()
                held.own.undo()
            except (Lost, TimeoutError):
                self._pool.dismiss_holder(host)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                if self._left(host, held.worker)[0]:
                    self._take_over(host)
                return
            except WorkerLost as error:
                if attempt == ATTEMPTS:
                    raise WorkerLost(f"{error}; failed {ATTEMPTS} times in a row") from error
                self._pool.dismiss_holder(host)

    def _left(self, host: str, worker: Worker) -> tuple[list[Change], list[str]]:
        is_local = self._campaign.hosts[host].ssh is None
        return self._journal.here(host, worker.hello.boot_id, is_local)

    def _next_change(self) -> int:
        """The number of the next change: hosts of several pairs change at the same time."""
        with self._number_lock:
            self._last_change += 1
            return self._last_change


def _changed(record: Record, side: SideName, key: str, level: str) -> Record:
    """A failed record: a setting read otherwise after the run."""
    note = record.settings.of(side)[key]
    notes = {**record.settings.of(side), key: replace(note, after=level)}
    sides = {each: record.settings.of(each) for each in SIDES} | {side: notes}
    settings = Settings(sides["sender"], sides["receiver"], record.settings.moved)
    what = f"{side}: {key} read {note.read} before the run and {level} after it"
    ended = replace(record, settings=settings)
    return _ended(ended, "failed", f"{what}; something else changes it")


def _ended(record: Record, status: Status, reason: str) -> Record:
    """A record that ended so. The first reason is the one that counts."""
    return replace(record, status=status, reason=record.reason or reason)
