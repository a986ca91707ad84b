"""Settings of a unit: on its hosts before a run, in the run's record, read again after it."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from netbench.base.errors import SettingRefused, WorkerLost
from netbench.model import Campaign, SettingLevel
from netbench.plan.plan import Unit
from netbench.result.record import SIDES, Record, SettingNote, Settings, SideName
from netbench.run.held_settings import HeldSettings
from netbench.settings.named import find
from netbench.settings.scope import Levels, Moved, layers

Read = dict[SideName, Mapping[str, str]]
"""What each side's settings read: side -> setting -> level."""


@dataclass(frozen=True)
class HostLevels:
    """The layers that a host is to hold for a unit, of one side of its pair or of both."""

    host: str
    sides: tuple[SideName, ...]
    layers: tuple[Levels, ...]


@dataclass(frozen=True)
class Applied:
    """What was read when a unit's settings were applied, and what else moved (`HOST.NAME`)."""

    read: Read
    moved: Moved


def levels_of(campaign: Campaign, unit: Unit) -> list[HostLevels]:
    """What the hosts of a unit are to hold: the sender and the receiver, or the one host that is
    both.
    """
    pair = unit.pair
    if pair.sender == pair.receiver:
        return [HostLevels(pair.sender, SIDES, _layers(campaign, unit, ""))]
    return [
        HostLevels(pair.sender, ("sender",), _layers(campaign, unit, "sender")),
        HostLevels(pair.receiver, ("receiver",), _layers(campaign, unit, "receiver")),
    ]


def _layers(campaign: Campaign, unit: Unit, side: str) -> tuple[Levels, ...]:
    def of_side(name: str, level: SettingLevel) -> SettingLevel:
        setting = find(name, campaign.commands)
        return replace(level, value=setting[0].level_for(level.value, side)) if setting else level

    return tuple(
        {name: of_side(name, level) for name, level in layer.items()}
        for layer in layers(campaign.settings, unit.cell.settings, campaign.commands, side)
    )


class UnitSettings:
    """The settings of the unit that each pair is at."""

    def __init__(self, campaign: Campaign, held: HeldSettings) -> None:
        self._campaign = campaign
        self._held = held
        self._applied: dict[str, Applied] = {}  # by pair

    def wanted(self, unit: Unit) -> bool:
        """Whether a unit has settings at all."""
        return bool(unit.cell.settings or self._campaign.settings)

    def renew(self, unit: Unit) -> None:
        """See that the unit's hosts hold what the campaign holds by itself. Errors: as enter."""
        for one in levels_of(self._campaign, unit):
            self._held.renew(one.host)

    def enter(self, unit: Unit) -> None:
        """Bring the hosts to a unit's settings. Errors: SettingRefused where a host does not take a
        level; HostBusy; EngineError; Lost.
        """
        read: Read = {}
        moved: dict[str, tuple[str, str]] = {}
        wanted = levels_of(self._campaign, unit)
        for one in reversed(wanted):  # what a receiver holds may need what its sender holds
            self._held.of(one.host).release(one.layers)
        for one in wanted:
            held = self._held.of(one.host).hold(one.layers)
            moved |= {f"{one.host}.{name}": values for name, values in held.moved.items()}
            read |= dict.fromkeys(one.sides, held.levels)
        self._applied[unit.pair.name] = Applied(read, moved)

    def note(self, unit: Unit, record: Record) -> Record:
        """A run's record with the unit's settings: asked, read before the run, and read otherwise
        after it. Such a run has failed.
        """
        if not self.wanted(unit):
            return record
        before = self._applied[unit.pair.name]
        record = replace(record, settings=self._noted(unit, record.settings, before))
        if record.status == "interrupted":
            return record
        try:
            after = self._read_again(unit)
        except SettingRefused as error:
            return _failed(record, f"settings could not be read after the run: {error}")
        except WorkerLost as error:  # what it held was undone, perhaps within the run
            reason = f"settings could not be read after the run: {error}"
            if record.reason:
                reason = f"{record.reason}; {reason}"
            return replace(record, status="interrupted", reason=reason)
        if any(after[side].keys() != before.read[side].keys() for side in SIDES):
            # A worker that is new has not applied them.
            reason = "the worker that held the settings was lost"
            return replace(record, status="interrupted", reason=record.reason or reason)
        for side in SIDES:
            for key, level in after[side].items():
                if level != before.read[side][key]:
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
            read |= dict.fromkeys(one.sides, self._held.of(one.host).read_again())
        return read

    def _noted(self, unit: Unit, settings: Settings, before: Applied) -> Settings:
        """With what was asked and read of each side before the run."""
        notes: dict[SideName, dict[str, SettingNote]] = {}
        for one in levels_of(self._campaign, unit):
            asked = ChainMap(*map(dict, one.layers))
            for side in one.sides:
                read = before.read[side].items()
                notes[side] = {key: SettingNote(asked[key].value, level) for key, level in read}
        return Settings(
            {**settings.sender, **notes["sender"]},
            {**settings.receiver, **notes["receiver"]},
            before.moved,
        )


def _changed(record: Record, side: SideName, key: str, level: str) -> Record:
    """A failed record: a setting read otherwise after the run."""
    note = record.settings.of(side)[key]
    notes = {**record.settings.of(side), key: replace(note, after=level)}
    settings = (
        replace(record.settings, sender=notes)
        if side == "sender"
        else replace(record.settings, receiver=notes)
    )
    return _failed(
        replace(record, settings=settings),
        f"{side}: {key} read {note.read} before the run and {level} after it; something else"
        " changes it",
    )


def _failed(record: Record, reason: str) -> Record:
    """A failed record. The first reason is the one that counts."""
    return replace(record, status="failed", reason=record.reason or reason)
