"""Settings of a unit: on its hosts before a run, in the run's record, read again after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from netbench.conductor.apply import Applied, Applier, Read, asked_of, meant
from netbench.errors import SettingRefused, WorkerLost
from netbench.model import Campaign
from netbench.plan import Unit
from netbench.record import SIDES, Record, SettingNote, Settings, SideName


class UnitSettings:
    """The settings of the unit that each pair is at."""

    def __init__(self, campaign: Campaign, applier: Applier) -> None:
        self._campaign = campaign
        self._applier = applier
        self._applied: dict[str, Applied] = {}  # by pair

    def wanted(self, unit: Unit) -> bool:
        """Whether a unit has settings at all."""
        return bool(unit.cell.settings or self._campaign.settings)

    def enter(self, unit: Unit) -> None:
        """Bring the hosts to a unit's settings. Errors: SettingRefused; Lost."""
        self._applied[unit.pair.name] = self._applier.enter(unit)

    def note(self, unit: Unit, record: Record) -> Record:
        """A run's record with the unit's settings: asked, read before the run, and read otherwise
        after it. Such a run has failed.
        """
        if not self.wanted(unit):
            return record
        read, moved = self._applied[unit.pair.name]
        record = replace(record, settings=self._noted(unit, record.settings, read, moved))
        if record.status == "interrupted":
            return record
        try:
            again = self._applier.read_again(unit)
        except SettingRefused as error:
            return _failed(record, f"settings could not be read after the run: {error}")
        except WorkerLost as error:
            reason = f"settings could not be read after the run: {error}"
            return replace(record, status="interrupted", reason=reason)
        for side in SIDES:
            for key, level in again[side].items():
                if level != read[side][key]:
                    record = _changed(record, side, key, level)
        return record

    def _noted(
        self, unit: Unit, settings: Settings, read: Read, moved: Mapping[str, Sequence[str]]
    ) -> Settings:
        """With what was asked and read of each side before the run."""

        def notes(side: SideName) -> dict[str, SettingNote]:
            asked = asked_of(self._campaign, unit, side)
            return {
                key: SettingNote(meant(self._campaign, key, asked[key]), level)
                for key, level in read[side].items()
            }

        return Settings(
            {**settings.sender, **notes("sender")},
            {**settings.receiver, **notes("receiver")},
            {name: (before, after) for name, (before, after) in moved.items()},
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
