"""A host's settings in layers: applied, read back, and undone in reverse down to the layers that
the next cell shares with the last.

Layer 0 is what the campaign holds all the time, the next what is costly to change, the last what
changes with every cell. So the state of a host is what it was before, with the layers on top,
whatever the order of cells.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

from netbench.base.errors import EngineError, SettingRefused
from netbench.base.names import AS_IS
from netbench.model import Command, SettingLevel
from netbench.result.journal import Change, Restored, machine_of
from netbench.settings import neighbours
from netbench.settings.named import find, side_of
from netbench.settings.neighbours import Key, Moves, difference, parse, set_by, text_of, writable
from netbench.settings.put_back import all_of, undone_by
from netbench.settings.setting import HOST, LINK, Operation, Setting, SettingContext

BEYOND = 2**32  # all numbers of changes
READY_SECONDS = 20.0
READY_PAUSE = 0.02
Levels = Mapping[str, SettingLevel]
"""Settings and their levels."""
Moved = Mapping[str, tuple[str, str]]
"""What a change moved along, and its values before and after."""
Write = Callable[[Change | Restored], None]
"""Writes an entry of the journal and forces it to the disk."""


def layers(
    campaign: Levels, cell: Levels, commands: Mapping[str, Command], side: str
) -> list[dict[str, SettingLevel]]:
    """What a host that has this side (`sender`, `receiver`, or "" for both) is to hold: always,
    costly ones, cheap ones.

    A key of one side goes over the bare one, a cell's over the campaign's, but for one that is
    `as_is`.
    """
    always: dict[str, SettingLevel] = {}
    costly: dict[str, SettingLevel] = {}
    cheap: dict[str, SettingLevel] = {}
    for levels, of_cell in ((campaign, False), (cell, True)):
        campaigns = dict(always)
        for key in sorted(levels, key=lambda key: bool(side_of(key)[0])):
            own_side, name = side_of(key)
            if own_side and side and own_side != side:
                continue
            is_held = levels[key].value == AS_IS and name in campaigns
            for layer in (always, costly, cheap):
                layer.pop(name, None)
            setting = find(name, commands)
            resets = setting is not None and setting[0].cost in (LINK, HOST)
            layer = always if not of_cell or is_held else costly if resets else cheap
            layer[name] = campaigns[name] if is_held else levels[key]
    return [always, costly, cheap]


@dataclass
class Layer:
    """What was applied: levels, the changes that were made, and what else moved with them."""

    levels: Levels
    changes: list[Change] = field(default_factory=list)
    moved: Moved = field(default_factory=dict)


class Held(NamedTuple):
    """What a host reads while it holds its settings, by setting, and what else moved with them.
    `unchanged`: the settings that it had so already.
    """

    levels: Mapping[str, str]
    moved: Moved
    unchanged: frozenset[str]


class HostSettings:
    """The settings of one host. `write` gets journal entries; `number` gives each change of the
    campaign its own, from 1, which is its scope in the worker. `learnt`: by operation and its
    interfaces what moves along, as the target `only` takes it. `campaign`: as of put_back.
    """

    def __init__(
        self,
        place: SettingContext,
        commands: Mapping[str, Command],
        write: Write,
        number: Callable[[], int],
        boot_id: str,
        learnt: dict[tuple[Operation, str], str] | None = None,
        campaign: str = "",
    ) -> None:
        self.place = place
        self.boot_id = boot_id
        self._commands = commands
        self._write = write
        self._number = number
        self._held: list[Layer] = []
        self._learnt = {} if learnt is None else learnt
        self._campaign = campaign
        self._is_asked = False  # to undo something, without an answer yet

    def hold(self, wanted: Sequence[Levels]) -> Held:
        """Bring the host to these layers. Errors: as hold_all."""
        return hold_all([(self, wanted)])[0]

    def undo(self) -> None:
        """Put back all that is held. Errors: EngineError when something could not be."""
        undo_from([self], {self.boot_id: 0})

    def held(self) -> Held:
        """What is held reads now, and what moved with it. Errors: as read_again."""
        moved = {name: values for layer in self._held for name, values in layer.moved.items()}
        changed = {change.setting for layer in self._held for change in layer.changes}
        read = self.read_again()
        return Held(read, moved, frozenset(read.keys() - changed))

    def add_layer(self, levels: Levels) -> None:
        """Hold one layer more. Errors: SettingRefused where the host does not take a level, then
        nothing of the layer is held.
        """
        self._held.append(Layer(dict(levels)))
        try:
            self._apply(len(self._held) - 1)
        except SettingRefused as refused:
            last = len(self._held) - 1
            try:
                undo_from([self], {self.boot_id: self.first_of(last)})
            except EngineError as error:  # both are told, in order
                why = f"{refused}; undoing it: {error.operation}: {error.message}"
                raise EngineError(error.code, error.errno, "", why, error.remedy) from error
            self.cut(last)
            raise

    def size(self) -> int:
        """How many layers are held."""
        return len(self._held)

    def numbers(self) -> list[int]:
        """Of all changes that are held."""
        return [change.number for layer in self._held for change in layer.changes]

    def first_of(self, layer: int) -> int:
        """The number of the first change that is held from a layer on, or beyond all numbers."""
        changes = (change.number for held in self._held[layer:] for change in held.changes)
        return min(changes, default=BEYOND)

    def cut(self, layer: int) -> None:
        """Layers from this one on are undone."""
        del self._held[layer:]

    def undo_run(self, numbers: Sequence[int], below: bool) -> EngineError | None:
        """Undo changes that lie on each other, the last first, with all that is held above them;
        what could not be. `below`: one above them stays, so that these are not known to be back.
        """
        failed, asked, self._is_asked = None, self._is_asked, True
        try:
            self.place.worker.undo(numbers[-1])
        except EngineError as error:
            failed = error
        self._is_asked = False
        if failed or asked:  # the answer of an earlier one, which was interrupted, is not known
            undone = undone_by(self.place.worker, self._campaign, numbers)
            stays = next((number for number in numbers if number not in undone), 0)
            if stays and not failed:
                failed = EngineError(0, 0, "undo", f"{self.place.host}: it was interrupted", "")
            numbers = [number for number in numbers if number > stays]
        self.place.forget()
        if numbers and not below:
            self._write(Restored(tuple(reversed(numbers)), self.place.host))
        return failed

    def forget(self, first: int) -> None:
        """What was changed from this number on is undone, and with it its layers."""
        gone = (any(each.number >= first for each in layer.changes) for layer in self._held)
        self.cut(next((at for at, is_gone in enumerate(gone) if is_gone), len(self._held)))

    def read_again(self) -> dict[str, str]:
        """What every setting that is held reads now. Errors: SettingRefused."""
        self.place.forget()
        read = {}
        for key, level in self._levels().items():
            setting, what = self._setting(key)
            with _refusal(self.place, key, level):
                read[key] = self._reading(setting, what, level)
        return read

    def _levels(self) -> dict[str, SettingLevel]:
        return {key: level for layer in self._held for key, level in layer.levels.items()}

    def differing(self, read: Mapping[str, str]) -> dict[str, SettingLevel]:
        """Settings that do not read as they are wanted, and their levels."""
        levels = self._levels().items()
        return {key: level for key, level in levels if level.value not in (AS_IS, read[key])}

    def common(self, wanted: Sequence[Levels]) -> int:
        """How many layers are as they are wanted already."""
        for i, (held, asked) in enumerate(zip(self._held, wanted, strict=False)):
            if held.levels != asked:
                return i
        return min(len(self._held), len(wanted))

    def _setting(self, key: str) -> tuple[Setting, str]:
        setting = find(key, self._commands)
        if setting is None:
            raise SettingRefused(f"{self.place.host}: no setting {key!r}")
        return setting

    def _reading(self, setting: Setting, what: str, level: SettingLevel) -> str:
        if level.value == AS_IS:
            return setting.read(what, self.place)
        return setting.reading(what, level.value, self.place)

    def _apply(self, scope: int) -> None:
        layer = self._held[scope]
        moved: dict[Key, tuple[str, str]] = {}
        asked: set[Key] = set()
        for key, level in layer.levels.items():
            setting, what = self._setting(key)
            with _refusal(self.place, key, level):
                is_asked = level.value != AS_IS
                operations = setting.changes(what, level.value, self.place) if is_asked else []
                for operation in operations:
                    asked |= set_by(operation, self._links(operation))
                    for name, (was, now) in self._execute(operation, scope, key).items():
                        moved[name] = moved.get(name, (was, now))[0], now
                if operations:
                    self._wait_until_ready(setting)
                now = self._reading(setting, what, level)
            if is_asked and now != level.value:
                why = "the host rounds it, or another program sets it"
                raise SettingRefused(
                    f"{self.place.host}: {key} was set to {level}, but reads {now}; {why}"
                )
        interface = self.place.interface if moved else ""
        layer.moved = {
            neighbours.name_of(key, interface): shown
            for key, values in moved.items()
            if key not in asked and len(set(shown := neighbours.in_words(key, *values))) > 1
        }

    def _execute(self, operation: Operation, scope: int, key: str) -> Moves:
        """One change: known to the journal before it is made, unless it is not undone. What moved
        along: it is held first, so put back last.
        """
        worker = self.place.worker
        if operation.lasting:
            worker.operate(operation.op, operation.target, operation.value)
            self.place.forget()
            return {}
        along = "" if operation.undo else self._along(operation, key, scope)
        only = ("only", along)
        before = worker.operate(neighbours.OP, only)[0] if along else ""
        if along:
            beside = self._change(Operation(neighbours.OP, only), key, before)
            self._journal(beside, scope)
            worker.operate(neighbours.OP, only, hold=True, scope=beside.number)
        change = self._change(operation, key)
        if change.look:
            change = replace(change, value=self._held[scope].levels[key].value)
        self._journal(change, scope)
        self._make(operation, change.number)
        if not along:
            return {}
        now = worker.operate(neighbours.OP, only)[0]
        self._write(replace(beside, value=now))  # what reads otherwise later is somebody else's
        return difference(parse(before), parse(now))

    def _make(self, operation: Operation, scope: int) -> None:
        self.place.worker.operate(
            operation.op,
            operation.target,
            operation.value,
            hold=operation.value is not None,
            undo=operation.undo,
            scope=scope,
            look=operation.look,
        )
        self.place.forget()  # whatever it moved along

    def _along(self, operation: Operation, key: str, scope: int) -> str:
        """What moves along with a change, or when it is undone, as the target `only` takes it.

        The first time the change is made, undone and looked at, with all around it held, which the
        worker does once more where something has moved; where this is interrupted, it is undone
        with its layer. Errors: SettingRefused where something cannot be put back; EngineError.
        """
        links = self._links(operation)
        if (operation, links) in self._learnt:
            return self._learnt[operation, links]
        worker, target = self.place.worker, (operation.op, operation.target[0])
        text = worker.operate(neighbours.OP, target)[0]
        moved, along = dict[Key, tuple[str, str]](), list[Key]()
        if text:
            before = parse(text)
            trial = [self._change(Operation(neighbours.OP, target), key, text)]
            trial.append(self._change(operation, key))
            for change in trial:
                self._journal(change, scope)
            around, changed = (change.number for change in trial)
            worker.operate(neighbours.OP, target, hold=True, scope=around)
            try:
                self._make(operation, changed)
                moved = difference(before, parse(worker.operate(neighbours.OP, target)[0]))
                with suppress(EngineError):  # it may need what is around it
                    worker.undo(changed)
                after = difference(before, parse(worker.operate(neighbours.OP, target)[0]))
            finally:
                self._end_trial(operation, trial, self._held[scope].changes)
            lasting = [key for key in after if key[0].startswith(neighbours.STATE)]
            if gone := [neighbours.name_of(key) for key in lasting if key in before]:
                raise ValueError(
                    f"it removes {', '.join(gone)} permanently; see `ip address` and `ip route`"
                    " there, and leave this level out"
                )
            # What the worker has not put back somebody has changed meanwhile.
            left = difference(before, parse(worker.operate(neighbours.OP, target)[0]))
            set_here, moved = set_by(operation, links), {**moved, **after}
            others = set_here.union(writable(left))
            names = {name for _, name in set_here if operation.op != "file"}
            undo = [key for key in writable(before) if key in moved and key not in others]
            worker.ask_permission(neighbours.OP, target, text_of(undo, before))
            # And what is called so elsewhere, which moves once it reads otherwise.
            along = [key for key in before if key not in others if key in moved or key[1] in names]
        if self._links(operation) == links:
            self._learnt[operation, links] = text_of(along)
        return text_of(along)

    def _links(self, operation: Operation) -> str:
        """Index and name of the interface that it is of, and of those above that, a line each."""
        is_none = operation.undo or operation.op == neighbours.OP
        return "" if is_none else self.place.read("index", operation.target[0])

    def _end_trial(
        self, operation: Operation, trial: Sequence[Change], changes: list[Change]
    ) -> None:
        """Errors: ValueError where the trial could not be put back: it stays in the journal."""
        self._is_asked = True  # until it has answered
        self.place.worker.undo(trial[0].number)
        self._is_asked = False
        self.place.forget()
        del changes[-len(trial) :]
        if (now := self.place.read(operation.op, *operation.target)) != trial[-1].before:
            raise ValueError(f"it cannot be put back: it reads {now!r} after a trial")
        self._write(Restored(tuple(change.number for change in trial), self.place.host))

    def _change(self, operation: Operation, key: str, before: str | None = None) -> Change:
        """An entry of the journal, with what its target reads now where that is not given."""
        if before is None:
            readable = operation.look or not operation.undo
            source = (operation.op, *(operation.look or operation.target))
            before = self.place.read(*source) if readable else ""
        return Change(
            number=self._number(),
            host=self.place.host,
            boot_id=self.boot_id,
            network=self.place.worker.hello.network,
            of_machine=machine_of(self.place.worker.hello.machine),
            setting=key,
            op=operation.op,
            target=tuple(operation.target),
            value=operation.value,
            before=before,
            undo=tuple(operation.undo),
            look=tuple(operation.look) if operation.undo else (),
            interface=self._links(operation).partition("\n")[0],
        )

    def _journal(self, change: Change, scope: int) -> None:
        self._write(change)
        self._held[scope].changes.append(change)

    def _wait_until_ready(self, setting: Setting) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not setting.is_ready(self.place):
            if time.monotonic() > deadline:
                why = setting.not_ready.replace("{interface}", self.place.interface)
                raise SettingRefused(
                    f"{self.place.host}: {why} within {READY_SECONDS:.0f} s; see `dmesg` on the"
                    " host"
                )
            time.sleep(READY_PAUSE)


def undo_from(hosts: Sequence[HostSettings], first: Mapping[str, int]) -> None:
    """Undo, the last first, what hosts have changed from a number on; `first`: by the boot id of
    their kernel, as hosts of one kernel have one stack. Errors: EngineError with what could not be,
    once all else is.
    """
    order: list[tuple[str, int, HostSettings]] = []
    for host in hosts:
        low = first.get(host.boot_id, BEYOND)
        order += [(host.boot_id, -n, host) for n in host.numbers() if n >= low]
    order.sort(key=lambda each: each[:2])
    failed: dict[str, list[EngineError]] = {}
    for host, run in groupby(order, key=lambda each: each[2]):
        numbers = [-number for _, number, _ in run]
        if error := host.undo_run(numbers, host.boot_id in failed):
            failed.setdefault(host.boot_id, []).append(error)
        host.forget(numbers[-1])
    if failed:
        raise all_of([error for errors in failed.values() for error in errors])


Wanted = Sequence[tuple[HostSettings, Sequence[Levels]]]
"""Hosts, and the layers that each is to hold."""


def hold_all(
    wanted: Wanted, beside: Sequence[HostSettings] = (), alone: bool = False
) -> list[Held]:
    """Bring hosts to layers, the first layer of all, then the next, so that what stays lies below
    what changes. `beside`: other hosts on their kernels: what they have changed above what is
    undone here is undone with it, and where they are to be `alone` all that those have changed.

    What is held already and reads otherwise by now is applied anew. Errors: SettingRefused where a
    host does not take a level (then nothing of its layer is held), or does not have all of them
    together (then nothing is held); EngineError; those of losing a worker.
    """
    first: dict[str, int] = {}
    for host in beside if alone else ():
        first[host.boot_id] = min(first.get(host.boot_id, BEYOND), host.first_of(0))
    any_held = _bring(wanted, beside, [host.common(layers) for host, layers in wanted], first)
    held = [host.held() for host, _ in wanted]
    if any_held and any(_differing(wanted, held)):
        _bring(wanted, beside, [0] * len(wanted), {})
        held = [host.held() for host, _ in wanted]
    for host, key, level, read in _differing(wanted, held):
        boots = dict.fromkeys((host.boot_id for host, _ in wanted), 0)
        undo_from([*(host for host, _ in wanted), *beside], boots)
        raise SettingRefused(
            f"{host.place.host}: {key} was set to {level}, but reads {read} once the other"
            " settings are applied; remove one of them"
        )
    return held


def _bring(
    wanted: Wanted, beside: Sequence[HostSettings], same: Sequence[int], first: dict[str, int]
) -> bool:
    """Hold these layers, of which so many are held already; whether some were kept. `first`: by
    boot id a change that goes all the same, with all above it.
    """
    for (host, _), keep in zip(wanted, same, strict=True):
        host.place.forget()
        first[host.boot_id] = min(first.get(host.boot_id, BEYOND), host.first_of(keep))
    failed = None
    try:
        undo_from([*(host for host, _ in wanted), *beside], first)
    except EngineError as error:
        failed = error
    for (host, _), keep in zip(wanted, same, strict=True):
        host.cut(keep)
    if failed:
        raise failed
    any_held = any(host.size() for host, _ in wanted)
    for at in range(max(len(layers) for _, layers in wanted)):
        for host, layers in wanted:
            if at == host.size() < len(layers):
                host.add_layer(layers[at])
    return any_held


def _differing(
    wanted: Wanted, held: Sequence[Held]
) -> Iterator[tuple[HostSettings, str, SettingLevel, str]]:
    """Settings that do not read as they are wanted, their levels, and what they read."""
    for (host, _), held_level in zip(wanted, held, strict=True):
        for key, level in host.differing(held_level.levels).items():
            yield host, key, level, held_level.levels[key]


@contextmanager
def _refusal(place: SettingContext, key: str, level: SettingLevel) -> Iterator[None]:
    """What a host says against a setting, as SettingRefused."""
    try:
        yield
    except (EngineError, ValueError) as error:
        why = str(error).removeprefix(f"{place.host}: ")
        raise SettingRefused(f"{place.host}: {key}: {level}: {why}") from error
