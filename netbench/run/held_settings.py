"""The settings that a campaign holds on its hosts: each host locked, each change journalled; those
of a unit before a run, in the run's record, and read again after it.

Below those that the campaign names are its own (own_settings.py). Where they cannot be held the
campaign goes on without them.
"""

from __future__ import annotations

import threading
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from netbench.base.errors import EngineError, HostBusy, Lost, PlaceError, SettingRefused, WorkerLost
from netbench.base.names import AS_IS
from netbench.engine.worker import Worker
from netbench.model import Campaign, SettingLevel
from netbench.plan.plan import Plan, Unit
from netbench.result.files import HostEntry
from netbench.result.journal import Change, Journal, LeftChanged, machine_of
from netbench.result.record import SIDES, Record, SettingNote, Settings, SideName, Status
from netbench.run.host_locks import HostLocks
from netbench.run.left_over import left_over
from netbench.run.own_settings import context_of, own_settings
from netbench.run.worker_pool import ATTEMPTS, WorkerPool
from netbench.settings import neighbours
from netbench.settings.files import NO_SAVE, SAVED
from netbench.settings.named import find, side_of
from netbench.settings.put_back import There, all_of, gone_of, gone_with, put_back, undone_by
from netbench.settings.scope import Held, HostSettings, Levels, hold_all, layers, undo_from
from netbench.settings.setting import Operation

BEGUN = 0
"""The number in the log of what was undone that says that there is one."""
NO_METRICS = Operation("file", (NO_SAVE,), SAVED["drop"])
"""The campaign's own change of every host, along with which nothing moves."""

Read = dict[SideName, Mapping[str, str]]
"""What each side's settings read: side -> setting -> level."""


class HostLevels(NamedTuple):
    """The layers that a host is to hold for a unit, of one side of its pair or of both."""

    host: str
    sides: tuple[SideName, ...]
    layers: tuple[Levels, ...]


def levels_of(campaign: Campaign, unit: Unit) -> list[HostLevels]:
    """What the hosts of a unit are to hold: sender and receiver, or the one host that is both."""
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
        if setting is None or level.value == AS_IS:
            return level
        return replace(level, value=setting[0].level_for(level.value, side))

    return tuple(
        {name: of_side(name, level) for name, level in layer.items()}
        for layer in layers(campaign.settings, unit.cell.settings, campaign.commands, side)
    )


class _Held(NamedTuple):
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
        identity: str = "",
    ) -> None:
        """`identity`: of the campaign's state, by which workers know what they have undone."""
        self._campaign = campaign
        self._identity = identity
        self._pool = pool
        self._locks = locks
        self._journal = journal
        self._say = say
        self._hosts: dict[str, _Held] = {}
        self._applied: dict[str, Settings] = {}  # by pair, as its runs note them
        self._refused: dict[str, str] = {}  # hosts that do not take the campaign's own, with why
        self._learnt: dict[str, dict[tuple[Operation, str], str]] = {}  # by host
        self._found: dict[str, tuple[str, str]] = {}  # boot, and what `neighbours` read of all
        self._as_is = {  # keys of which some cell leaves a host as it is
            key
            for cell in campaign.cells
            for key, level in cell.settings.items()
            if level.value == AS_IS
        }
        self._number_lock, self._taking = threading.Lock(), threading.Lock()
        self._settling = threading.Lock()
        self._last_change = journal.last_number(Change)

    def claim(self) -> None:
        """Lock every host, and put back what an earlier worker of this campaign left. Errors:
        HostBusy, also where another one has left something since; EngineError; Lost.
        """
        boots = {host: self._pool.holder(host).hello.boot_id for host in self._campaign.roles}
        self._each_kernel(boots, self._begin_on)

    def _each_kernel(self, boots: Mapping[str, str], act: Callable[[Sequence[str]], None]) -> None:
        """Do something for the hosts of each kernel, many kernels at the same time; `boots`: of
        each host. The first error is raised when all are done.
        """
        mates: dict[str, list[str]] = {}
        for host in self._restore_order(boots):
            mates.setdefault(boots[host], []).append(host)
        by_first = {hosts[0]: hosts for hosts in mates.values()}
        self._pool.each(lambda first: act(by_first[first]), by_first)

    def of(self, host: str) -> HostSettings:
        """A host's settings. A worker that is new has locked the host first, has put back what the
        one before left, and holds the campaign's own. Errors: as claim.
        """
        if not self._is_held(host):
            with self._taking:
                self._begin_on([host, *self._lost_beside(host)])
        return self._hosts[host].named

    def _begin_on(self, hosts: Sequence[str]) -> None:
        new = [host for host in hosts if not self._is_held(host)]
        self._take_over(new)
        for host in new:
            self._hold_own(host, self._hosts[host].own)

    def _is_held(self, host: str) -> bool:
        held = self._hosts.get(host)
        return held is not None and held.worker is self._pool.holder(host)

    def _lost_beside(self, host: str) -> list[str]:
        """Hosts that are paired with it, of its kernel, whose workers were lost and are back."""
        boots, lost = self._pool.boot_ids(), list[str]()
        pairs = [(p.sender, p.receiver) for p in self._campaign.pairs]
        mates = {mate for pair in pairs if host in pair for mate in pair} - {host}
        for other in mates & self._hosts.keys():
            if boots.get(other) == boots.get(host):
                with suppress(Lost):
                    lost += [] if self._is_held(other) else [other]
        return lost

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
        """Lock a unit's hosts again, and hold the campaign's own settings, where a worker that held
        them was lost. Errors: as claim.
        """
        for host in (unit.pair.sender, unit.pair.receiver):
            self.of(host)

    def enter(self, unit: Unit) -> None:
        """Bring the hosts to a unit's settings. Errors: SettingRefused where a host does not take a
        level; HostBusy; EngineError; Lost.
        """
        notes: dict[SideName, dict[str, SettingNote]] = {}
        moved: dict[str, tuple[str, str]] = {}
        levels = levels_of(self._campaign, unit)
        hosts = [(self.of(one.host), one.layers) for one in levels]
        beside = self._beside(unit, [host for host, _ in hosts])
        # What others hold would be taken for what these have, or a program's mark not be seen.
        alone = bool(self._as_is or self._campaign.commands)
        held_levels = hold_all(hosts, beside, alone)
        for one, held in zip(levels, held_levels, strict=True):
            moved |= {f"{one.host}.{name}": values for name, values in held.moved.items()}
            asked = ChainMap(*map(dict, one.layers))
            read = {key: SettingNote(asked[key].value, level) for key, level in held.levels.items()}
            notes |= dict.fromkeys(one.sides, read)
        self._applied[unit.pair.name] = Settings(notes["sender"], notes["receiver"], moved)
        self._refuse_equal(unit, levels, held_levels)

    def _refuse_equal(
        self, unit: Unit, wanted: Sequence[HostLevels], found: Sequence[Held]
    ) -> None:
        """Errors: SettingRefused where a level is compared with what all hosts have as they are."""
        for key, level in unit.cell.settings.items():
            side, name = side_of(key)
            both = zip(wanted, found, strict=True)
            on = {one.host: at for one, at in both if not side or side in one.sides}
            is_equal = all(name in at.unchanged for at in on.values())
            is_equal |= level in map(self._campaign.settings.get, (key, name))
            if level.value != AS_IS and key in self._as_is and is_equal:
                what = f"{key}: it reads {level} as it is, so there is nothing to compare"
                raise SettingRefused(f"{' and '.join(on)}: {what}; give another level")

    def _beside(self, unit: Unit, hosts: Sequence[HostSettings]) -> list[HostSettings]:
        """Other hosts of their kernels; none where pairs run there at the same time."""
        if self._campaign.overlap == "kernel":
            return []
        boots = {host.boot_id for host in hosts}
        others = [held.named for held in list(self._hosts.values())]
        return [each for each in others if each.boot_id in boots and each not in hosts]

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

    def _take_over(self, hosts: Sequence[str]) -> None:
        """Lock hosts whose workers are new; put back what earlier ones left. Errors: as claim."""
        workers, left = {host: self._pool.holder(host) for host in hosts}, list[Change]()
        there = {host: There(worker, worker.hello.boot_id) for host, worker in workers.items()}
        for host in workers:
            self._locks.lock(host)
        with self._settling:  # kernels at the same time would be somebody to each other
            found = list(left_over(self._pool, workers, self._identity, self._locks.scopes))
        if errors := [each for each in found if each.level == "error"]:
            raise HostBusy(str(errors[0]))  # left since then, or being restored
        for host, worker in workers.items():
            changes, elsewhere = self._left(host, worker)
            self._say_gone(host, worker)
            left += changes
            for line in elsewhere:
                self._locks.say(line)
        self._undo_above(there, left)
        current = (held.worker for held in self._hosts.values() if not held.worker.lost)
        living = {each.hello.pid for each in (*current, *workers.values())}
        for _ in put_back(there, left, self._journal.write, self._identity, living):
            pass
        for host, worker in workers.items():
            self._find(host, worker)
            self._hosts[host] = self._new(host, worker)

    def _say_gone(self, host: str, worker: Worker) -> None:
        """Say what of a host's changes has gone with its interface."""
        changes = self._left(host, worker)[0]
        for gone in gone_of(There(worker, worker.hello.boot_id), changes):
            names = dict.fromkeys(each.setting for each in changes if each.interface == gone)
            self._say(f"{host}: {', '.join(names)}: {gone_with(gone)}")

    def _undo_above(self, there: Mapping[str, There], left: Sequence[Change]) -> None:
        """Undo what living workers hold above changes of lost ones on their kernel."""
        if not left:
            return
        boots = {each.boot_id for each in there.values()}
        low = min(change.number for change in left)
        living = [
            held.named
            for host, held in list(self._hosts.items())
            if host not in there and held.named.boot_id in boots and not held.worker.lost
        ]
        undo_from(living, dict.fromkeys(boots, low))

    def _find(self, host: str, worker: Worker) -> None:
        """Read what a host is found with in this boot, before anything of it is changed."""
        boot_id = worker.hello.boot_id
        if self._pool.has_helper(host) and self._found.get(host, ("", ""))[0] != boot_id:
            try:
                text = worker.operate(neighbours.OP, neighbours.ALL)[0]
                self._found[host] = boot_id, text
            except EngineError as error:
                self._say(f"{host}: what it is left with is not compared at the end: {error}")

    def _new(self, host: str, worker: Worker) -> _Held:
        if self._identity and self._pool.has_helper(host):
            self._begin_log(host, worker)
        place, boot_id = context_of(self._campaign, host, worker), worker.hello.boot_id
        learnt = self._learnt.setdefault(host, {(NO_METRICS, ""): ""})
        commands, write = self._campaign.commands, self._journal.write
        own, named = (
            HostSettings(place, commands, write, self._next_change, boot_id, learnt, self._identity)
            for _ in range(2)
        )
        return _Held(worker, own, named)

    def _begin_log(self, host: str, worker: Worker) -> None:
        """Let a helper write down what it undoes, where those of its kernel do. Errors: EngineError
        where it cannot, though there are settings to be undone in turn.
        """
        mates = [
            name
            for name, held in self._hosts.items()
            if name != host and held.named.boot_id == worker.hello.boot_id
            if self._pool.has_helper(name)
        ]
        shares = undone_by(worker, self._identity, [BEGUN])
        worker.operate("undone", (self._identity, "0"), "begin")
        if mates and not shares and any(map(self.wanted, Plan(self._campaign).units)):
            worker.operate("undone", (self._identity, "0"), "end")
            why = f"{host} and {mates[0]} are one machine, whose settings are undone in turn"
            what = f"{why}; they are reached as two accounts, or have two folders /run"
            raise EngineError(0, 0, "undo", what, "reach both as the same account")

    def _hold_own(self, host: str, settings: HostSettings) -> None:
        if self._pool.has_helper(host):
            try:
                settings.hold([own_settings(self._campaign, host)])
            except (SettingRefused, PlaceError) as error:
                self._refused[host] = str(error)

    def restore(self) -> None:
        """Put back everything, on every host, many kernels at the same time; by the journal what a
        worker held that is lost. Errors: EngineError, Lost or TimeoutError of the first thing that
        could not be; others are put back.
        """
        known = self._pool.boot_ids()
        boots = {host: known.get(host, host) for host in self._hosts}
        failed: dict[str, EngineError | Lost | TimeoutError] = {}

        def restore(hosts: Sequence[str]) -> None:
            try:
                self._restore(hosts)
            except (EngineError, Lost, TimeoutError) as error:
                failed.update(dict.fromkeys(hosts, error))

        self._each_kernel(boots, restore)
        for host in self._restore_order(self._found.keys() - failed.keys()):
            try:
                self._look(host)
            except (EngineError, Lost, TimeoutError) as error:  # all that was to be put back is
                self._say(f"{error}; so what {host} is left with was not compared")
        changed = {each.boot_id for each in self._journal.left_changes()}
        for host, held in self._hosts.items() if self._identity else ():
            if held.named.boot_id not in changed and self._pool.has_helper(host):
                with suppress(EngineError, Lost, TimeoutError):  # it goes with the next boot
                    held.worker.operate("undone", (self._identity, "0"), "end")
        for host in self._restore_order(failed):
            raise failed[host]

    def _look(self, host: str) -> None:
        """Say once what of a host no setting accounts for. Errors: as restore."""
        worker = self._pool.holder(host)
        self._locks.lock(host)  # else another campaign has changed it since
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
                f"{left}: no setting accounts for this; another program or a `command:` changed it,"
                " or the kernel along with a setting: put it back by hand where it matters"
            )

    def _restore_order(self, hosts: Iterable[str]) -> list[str]:
        roles = self._campaign.roles
        return sorted(hosts, key=lambda host: (roles[host], host))

    def _restore(self, hosts: Sequence[str]) -> None:
        """Put back what hosts of one kernel hold. Errors: as restore."""
        held = [self._hosts[h] for h in hosts if self._pool.is_current(h, self._hosts[h].worker)]
        failed: list[EngineError] = []
        try:
            for each in held:
                self._say_gone(each.own.place.host, each.worker)
            for settings in ([each.named for each in held], [each.own for each in held]):
                try:
                    undo_from(settings, dict.fromkeys((each.boot_id for each in settings), 0))
                except EngineError as error:
                    failed.append(error)
        except (Lost, TimeoutError):
            failed.clear()  # all is put back by the journal
            for host in hosts:
                self._pool.dismiss_holder(host)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                lost = [h for h in hosts if not (failed and self._is_held(h))]
                if left := [h for h in lost if self._left(h, self._hosts[h].worker)[0]]:
                    self._take_over(left)
                break
            except WorkerLost as error:
                if attempt == ATTEMPTS:
                    raise WorkerLost(f"{error}; failed {ATTEMPTS} times in a row") from error
                for host in hosts:
                    self._pool.dismiss_holder(host)
        if failed:
            raise all_of(failed)

    def _left(self, host: str, worker: Worker) -> tuple[list[Change], list[str]]:
        is_local, hello = self._campaign.hosts[host].ssh is None, worker.hello
        machine = machine_of(hello.machine)
        return self._journal.here(host, hello.boot_id, is_local, hello.network, machine)

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
