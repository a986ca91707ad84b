"""What a setting is: a level as operations, and how to read it. No shell sees a value."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from netbench.base.errors import EngineError

# What a change of a setting costs: nothing much, a link that goes down, a host.
RUN, LINK, HOST = "run", "link", "host"
SWITCH = {"on": "on", "true": "on", "yes": "on", "off": "off", "false": "off", "no": "off"}


class Worker(Protocol):
    """Who executes operations on a host (engine.worker.Worker). Errors: EngineError; Lost."""

    hello: Any

    def operate(
        self,
        op: str,
        target: str | Iterable[str],
        value: str | None = None,
        hold: bool = False,
        undo: Iterable[str] = (),
        scope: int = 0,
        *,
        look: Iterable[str] = (),
        restore: bool = False,
    ) -> tuple[str, str | None]: ...

    def ask_permission(
        self, op: str, target: str | Iterable[str], value: str | None, undo: Iterable[str] = ()
    ) -> None: ...

    def undo(self, scope: int = 0) -> None: ...

    def end_stopped(self, pid: int) -> bool: ...


class Operation(NamedTuple):
    """One change: an operation of the worker, its target and value; or a program to run, the one
    that undoes it, and the one that tells what there is. One that is `lasting` is not undone.
    """

    op: str
    target: tuple[str, ...]
    value: str | None = None
    undo: tuple[str, ...] = ()
    look: tuple[str, ...] = ()
    lasting: bool = False


class Peers(NamedTuple):
    """What a host has to do with others: files that it sends, and the data addresses of the
    hosts that receive from it or send to it.
    """

    files: tuple[str, ...] = ()
    receivers: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()


ALONE = Peers()


class SettingContext:
    """Where a setting is made: a host, through its worker, and the interface that carries the data
    there.

    What was read is remembered until `forget`, so that settings that look at the same thing ask for
    it once.
    """

    def __init__(
        self,
        host: str,
        worker: Worker,
        address: str,
        interface: str | None = None,
        peers: Peers = ALONE,
    ) -> None:
        self.host = host
        self.worker = worker
        self.address = address
        self.peers = peers
        self._interface = interface
        self._texts: dict[tuple[str, ...], str] = {}

    @property
    def interface(self) -> str:
        """The interface of its data address, as campaign or host say. Errors: EngineError."""
        if self._interface is None:
            self._interface = self.worker.operate("interface", self.address)[0].strip()
        return self._interface

    def read(self, op: str, *target: str) -> str:
        """What an operation reads. Errors: EngineError."""
        key = op, *target
        if key not in self._texts:
            self._texts[key] = self.worker.operate(op, target)[0]
        return self._texts[key]

    def forget(self) -> None:
        """Read everything anew from now on."""
        self._texts.clear()


class Setting(ABC):
    """One setting, or a family of them whose names begin with `name` (which then ends with a dot).

    `what` below is the rest of such a name: `ipv4.tcp_sack` of `sysctl.net.ipv4.tcp_sack`; ""
    otherwise.
    """

    name: str
    about: str
    levels: str = "on or off"
    cost: str = RUN
    # what a refusal says of a host that does not become ready after a change
    not_ready: str = "{interface} did not come up"
    # whether a change is seen in every network namespace of the host's kernel
    whole_kernel: bool = False
    # whether `why_not` knows all levels that a host refuses
    certain: bool = False

    @abstractmethod
    def parse(self, level: str) -> str:
        """A level as it reads back. Errors: ValueError when it is none."""

    @abstractmethod
    def read(self, what: str, place: SettingContext) -> str:
        """The level that the host has. Errors: EngineError; ValueError without such a thing."""

    @abstractmethod
    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        """What to do so that the host has this level (as `parse` gives it); nothing when it has it
        already. Errors: as read.
        """

    def reading(self, what: str, level: str, place: SettingContext) -> str:
        """What the host has, in this level's words. Errors: EngineError; ValueError for none."""
        return self.read(what, place)

    def level_for(self, level: str, side: str) -> str:
        """What a level (of `parse`) is for a side: `sender`, `receiver`, or "" for both."""
        return level

    def is_whole_kernel(self, what: str) -> bool:
        """Whether a change of it is seen outside the host's network namespace."""
        return self.whole_kernel

    def why_not(self, what: str, level: str, place: SettingContext) -> str:
        """Why this host cannot have this level, told without a change; or "". Errors: as read."""
        self.read(what, place)
        return ""

    def absent(self, place: SettingContext) -> str:
        """Why a host has no such thing at all, or "". For settings, not families."""
        try:
            self.read("", place)
        except (EngineError, ValueError) as error:
            return str(error)
        return ""

    def is_ready(self, place: SettingContext) -> bool:
        """Whether the host can be used after a change: its link is up again."""
        return True


class Value(Setting):
    """A value of the kernel, which one operation of the worker reads and writes, in one place or in
    each of several; places that differ read back as `LEVEL and LEVEL`. `syntax` is a regular
    expression of levels, where that is all that `parse` looks at.
    """

    syntax: str

    def parse(self, level: str) -> str:
        if not re.fullmatch(self.syntax, level):
            raise ValueError(self.levels)
        return level

    @abstractmethod
    def places(self, what: str, place: SettingContext) -> Sequence[tuple[str, ...]]:
        """An operation and its target for each. Errors: ValueError when the host has none."""

    def decode(self, text: str) -> str:
        """What an operation reads as a level."""
        return text.strip()

    def encode(self, level: str) -> str:
        """A level as it is written."""
        return level

    def read(self, what: str, place: SettingContext) -> str:
        levels = (self.decode(place.read(*each)) for each in self.places(what, place))
        return " and ".join(dict.fromkeys(levels))

    def changes(self, what: str, level: str, place: SettingContext) -> list[Operation]:
        return [
            Operation(op, tuple(target), self.encode(level))
            for op, *target in self.places(what, place)
            if self.decode(place.read(op, *target)) != level
        ]


def on_or_off(level: str) -> str:
    """`on` or `off`, of YAML's words for them. Errors: ValueError."""
    if level not in SWITCH:
        raise ValueError("on or off")
    return SWITCH[level]


def whole(level: str, least: int, most: int) -> str:
    """A whole number as the kernel writes it. Errors: ValueError."""
    if not level.isdecimal() or not least <= int(level) <= most:
        raise ValueError(f"a whole number from {least} to {most}")
    return str(int(level))


def fields(text: str) -> dict[str, str]:
    """`key: value` lines as a mapping."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}
