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

from netbench.base.errors import EngineError, SettingRefused
from netbench.model import Command, SettingLevel
from netbench.result.journal import Change, Restored
from netbench.settings import neighbours
from netbench.settings.named import find, side_of
from netbench.settings.neighbours import Key, Moves, difference, parse, set_by, text_of, writable
from netbench.settings.put_back import all_of, put_back
from netbench.settings.setting import HOST, LINK, Operation, Setting, SettingContext

AROUND, CHANGED = 254, 255  # the worker's last scopes, for the trial of a change
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

    A key of one side goes over the bare one, a cell's over the campaign's.
    """
    always: dict[str, SettingLevel] = {}
    costly: dict[str, SettingLevel] = {}
    cheap: dict[str, SettingLevel] = {}
    for levels, of_cell in ((campaign, False), (cell, True)):
        for key in sorted(levels, key=lambda key: bool(side_of(key)[0])):
            mine, name = side_of(key)
            if mine and side and mine != side:
                continue
            for layer in (always, costly, cheap):
                layer.pop(name, None)
            setting = find(name, commands)
            resets = setting is not None and setting[0].cost in (LINK, HOST)
            layer = always if not of_cell else costly if resets else cheap
            layer[name] = levels[key]
    return [always, costly, cheap]


@dataclass
class Layer:
    """What was applied: levels, the changes that were made, and what else moved with them. `scope`:
    the worker's, above which it has one for each change by a program, so that each is looked at
    once it is undone, and what is below it is not.
    """

    levels: Levels
    scope: int
    changes: list[Change] = field(default_factory=list)
    programs: dict[int, Change] = field(default_factory=dict)
    moved: Moved = field(default_factory=dict)


@dataclass(frozen=True)
class Held:
    """What a host reads while it holds its settings, by setting, and what else moved with them."""

    levels: Mapping[str, str]
    moved: Moved


class HostSettings:
    """The settings of one host. `write` gets journal entries; `number` gives each change of the
    campaign its own; `first_scope` is the worker's scope of layer 0. `learnt`: of operations that
    were done what moves along with them, as the target `only` of `neighbours` takes it.
    """

    def __init__(
        self,
        place: SettingContext,
        commands: Mapping[str, Command],
        write: Write,
        number: Callable[[], int],
        boot_id: str,
        first_scope: int = 0,
        learnt: dict[Operation, str] | None = None,
    ) -> None:
        self.place = place
        self._commands = commands
        self._write = write
        self._number = number
        self._boot_id = boot_id
        self._first_scope = first_scope
        self._held: list[Layer] = []
        self._learnt = {} if learnt is None else learnt

    def hold(self, wanted: Sequence[Levels]) -> Held:
        """Bring the host to these layers.

        What is held already and reads otherwise by now is applied anew. Errors: SettingRefused
        where the host does not take a level (then the layers below are held, and nothing of this
        one), or does not have all of them together (then nothing is held); those of losing the
        worker.
        """
        self.place.forget()
        same = self._common(wanted)
        read = self._bring(wanted, same)
        if same and self._differing(read):
            read = self._bring(wanted, 0)
        for key, level in self._differing(read).items():
            self.undo()
            raise SettingRefused(
                f"{self.place.host}: {key} was set to {level}, but reads {read[key]} once the other"
                " settings are applied; remove one of them"
            )
        moved = {name: values for layer in self._held for name, values in layer.moved.items()}
        return Held(read, moved)

    def release(self, wanted: Sequence[Levels]) -> None:
        """Undo what is held beyond what it has in common with these layers. Errors: as undo."""
        self.undo(self._common(wanted))

    def _bring(self, wanted: Sequence[Levels], same: int) -> dict[str, str]:
        """Hold these layers, of which `same` are held already; what every setting reads then.
        Errors: as `hold`.
        """
        self.undo(same)
        for scope in range(same, len(wanted)):
            self._held.append(Layer(dict(wanted[scope]), self._top() + 1))
            try:
                self._apply(scope)
            except SettingRefused:
                self.undo(scope)
                raise
        return self._read()

    def _top(self) -> int:
        """The worker's scope that was begun last."""
        begun = (max([layer.scope, *layer.programs]) for layer in self._held)
        return max(begun, default=self._first_scope - 1)

    def read_again(self) -> dict[str, str]:
        """What every setting that is held reads now. Errors: SettingRefused when it
        cannot be read.
        """
        self.place.forget()
        return self._read()

    def _levels(self) -> dict[str, SettingLevel]:
        return {key: level for layer in self._held for key, level in layer.levels.items()}

    def _differing(self, read: Mapping[str, str]) -> dict[str, SettingLevel]:
        """Settings that do not read as they are wanted, and their levels."""
        return {key: level for key, level in self._levels().items() if level.value != read[key]}

    def _read(self) -> dict[str, str]:
        read = {}
        for key, level in self._levels().items():
            setting, what = self._setting(key)
            with _refusal(self.place, key, level):
                read[key] = setting.reading(what, level.value, self.place)
        return read

    def undo(self, scope: int = 0) -> None:
        """Put back what layers from `scope` on have changed. Errors: EngineError when something
        could not be.
        """
        gone = self._held[scope:]
        changes = [change for layer in gone for change in layer.changes]
        del self._held[scope:]
        if not changes:
            return
        failed, left = list[EngineError](), list[EngineError]()
        programs = [each for layer in gone for each in layer.programs.items()]
        for at, change in reversed(programs):
            with _kept(failed):
                self.place.worker.undo(at)
            with _kept(left):  # what its program leaves; one that failed is not undone yet
                list(put_back(self.place.worker, self._boot_id, [change], self._write))
        with _kept(failed):
            self.place.worker.undo(gone[0].scope)
        self.place.forget()
        done = tuple(change.number for change in changes if not change.look)
        if done and not failed:
            self._write(Restored(done, self.place.host))
        if errors := [*failed, *left]:
            raise all_of(errors)

    def _common(self, wanted: Sequence[Levels]) -> int:
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

    def _apply(self, scope: int) -> None:
        layer = self._held[scope]
        moved: dict[Key, tuple[str, str]] = {}
        asked: set[Key] = set()
        for key, level in layer.levels.items():
            setting, what = self._setting(key)
            with _refusal(self.place, key, level):
                operations = setting.changes(what, level.value, self.place)
                for operation in operations:
                    asked |= set_by(operation)
                    for name, (was, now) in self._execute(operation, scope, key).items():
                        moved[name] = moved.get(name, (was, now))[0], now
                if operations:
                    self._wait_until_ready(setting)
                now = setting.reading(what, level.value, self.place)
            if now != level.value:
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
            self._journal(self._change(Operation(neighbours.OP, only), key, before), scope)
            worker.operate(neighbours.OP, only, hold=True, scope=self._top())
        change, layer = self._change(operation, key), self._held[scope]
        if change.look:
            change = replace(change, value=layer.levels[key].value)
            layer.programs[self._top() + 1] = change
        self._journal(change, scope)
        self._make(operation, self._top())
        if not along:
            return {}
        return difference(parse(before), parse(worker.operate(neighbours.OP, only)[0]))

    def _make(self, operation: Operation, scope: int) -> None:
        self.place.worker.operate(
            operation.op,
            operation.target,
            operation.value,
            hold=operation.value is not None,
            undo=operation.undo,
            scope=scope,
        )
        self.place.forget()  # whatever it moved along

    def _along(self, operation: Operation, key: str, scope: int) -> str:
        """What moves along with a change, or when it is undone, as the target `only` takes it.

        The first time the change is made, undone and looked at, with all around it held, which the
        worker does once more where something has moved; where this is interrupted, it is undone
        with its layer. Errors:
        SettingRefused where something of it cannot be put back; EngineError.
        """
        if operation in self._learnt:
            return self._learnt[operation]
        worker, target = self.place.worker, neighbours.around(operation)
        text = worker.operate(neighbours.OP, target)[0]
        moved: Moves = {}
        if text:
            before = parse(text)
            trial = [self._change(Operation(neighbours.OP, target), key, text)]
            trial.append(self._change(operation, key))
            for change in trial:
                self._journal(change, scope)
            worker.operate(neighbours.OP, target, hold=True, scope=AROUND)
            try:
                self._make(operation, CHANGED)
                moved = difference(before, parse(worker.operate(neighbours.OP, target)[0]))
                with suppress(EngineError):  # it may need what is around it
                    worker.undo(CHANGED)
                after = difference(before, parse(worker.operate(neighbours.OP, target)[0]))
            finally:
                self._end_trial(operation, trial, self._held[scope].changes)
            if gone := neighbours.lost(after):  # as the worker did not know before
                raise ValueError(
                    f"it removes {', '.join(gone)} permanently; see `ip address` and `ip route`"
                    " there, and leave this level out"
                )
            # What the worker has not put back somebody has changed meanwhile.
            left = difference(before, parse(worker.operate(neighbours.OP, target)[0]))
            others = set_by(operation).union(writable(left))
            moved = {**moved, **after}
            moved = {key: moved[key] for key in before if key in moved and key not in others}
            undo = writable(moved)
            worker.ask_permission(neighbours.OP, target, text_of(undo, before))
        self._learnt[operation] = text_of(moved)
        return self._learnt[operation]

    def _end_trial(
        self, operation: Operation, trial: Sequence[Change], changes: list[Change]
    ) -> None:
        """Errors: ValueError where the trial could not be put back: it stays in the journal."""
        self.place.worker.undo(AROUND)
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
            boot_id=self._boot_id,
            setting=key,
            op=operation.op,
            target=tuple(operation.target),
            value=operation.value,
            before=before,
            undo=tuple(operation.undo),
            look=tuple(operation.look) if operation.undo else (),
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


@contextmanager
def _kept(errors: list[EngineError]) -> Iterator[None]:
    """What cannot be undone does not keep what is below it."""
    try:
        yield
    except EngineError as error:
        errors.append(error)


@contextmanager
def _refusal(place: SettingContext, key: str, level: SettingLevel) -> Iterator[None]:
    """What a host says against a setting, as SettingRefused."""
    try:
        yield
    except (EngineError, ValueError) as error:
        said = str(error).removeprefix(f"{place.host}: ")
        raise SettingRefused(f"{place.host}: {key}: {level}: {said}") from error
