"""Swept keys and their levels: which keys can be factors, and what each level means."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from netbench.base.names import FACTOR, LINE
from netbench.campaign import settings
from netbench.campaign.messages import expected, listed, nearest
from netbench.campaign.problems import Problems
from netbench.campaign.schema.transfer import TransferKeys
from netbench.campaign.tree import Loc, Plain, compact, describe
from netbench.model import Command, SettingLevel, Tool
from netbench.settings.named import parse_level
from netbench.tools.adaptors import TOOLS

KERNEL = settings.KERNEL
METERS = "meters"
OWN_KEYS = (KERNEL, METERS)  # neither of transfer nor settings


class Level(NamedTuple):
    """A level of a key: `word` as written, `value` what it means, `written` the plain value."""

    word: str
    value: Any  # of the type that the key has in model.Transfer, or a SettingLevel
    written: Plain
    at: Loc


class Reader:
    """Reads levels of any key that can be a factor and notes what is wrong with them."""

    def __init__(
        self,
        model: type[TransferKeys],
        commands: Mapping[str, Command],
        kernels: Collection[str],
        meters: Collection[str],
        tools: Mapping[str, Tool],
        problems: Problems,
    ) -> None:
        """`meters`: those that may be read in a run."""
        self.model = model
        self.commands = commands
        self.kernels = kernels
        self.meters = meters
        self.tools = tools
        self.problems = problems
        self._written: dict[str, Tool] = {}  # command lines in place of a name, by program

    def transfers(self, key: str) -> bool:
        """Whether the key is one of transfer."""
        return key in self.model.model_fields

    def knows(self, key: str) -> bool:
        """Whether the key can be a factor."""
        return self.transfers(key) or key in OWN_KEYS or settings.is_setting(key, self.commands)

    def unknown(self, key: str, at: Loc, what: str) -> None:
        """Note a key that cannot be a factor."""
        valid = [*self.model.model_fields, *OWN_KEYS, *settings.spellings(key, self.commands)]
        self.problems.add(at, f"unknown key, expected {what}", nearest(key, valid))

    def no_setting(self, key: str, at: Loc) -> None:
        """Note a key of `settings` that is no setting; one of transfer is told with its place."""
        what = "a setting such as mtu, tso or sysctl.NAME"
        transfer = f"transfer.{key}" if self.transfers(key) else ""
        hint = transfer or nearest(key, settings.spellings(key, self.commands))
        self.problems.add(at, f"unknown key, expected {what}", hint)

    def level(self, key: str, written: Plain, at: Loc) -> Level | None:
        """One level of a known key, or None when it is wrong."""
        if not re.fullmatch(FACTOR, key):
            self.problems.add(at, "expected a name of at most 255 ASCII characters, without blanks")
            return None
        blank = isinstance(written, str) and not written.strip()
        if blank or written is None or (written in ({}, []) and key != METERS):
            self.problems.add(at, f"expected a level of {key}, got {describe(written)}")
            return None
        if isinstance(written, str) and re.fullmatch(r"\w+\.\.\w+", written):
            message = f"expected each level written out, such as [1, 4, 16], got {written}"
            self.problems.add(at, message)
            return None
        try:
            value = self._value(key, written)
        except ValidationError as error:
            self.problems.add_all(error, at, below=1)
            return None
        except PydanticCustomError as error:
            context = error.context or {}
            self.problems.add(at, context["text"], context["nearest"])
            return None
        word = value.name if isinstance(value, Tool) else compact(written)
        if not re.fullmatch(LINE, word):
            self.problems.add(at, f"expected a level of {key} in one line, got {describe(word)}")
            return None
        if isinstance(value, Tool):
            return Level(value.name, value, value.name, at)
        return Level(word, value, written, at)

    def word(self, key: str, written: Plain) -> str:
        """The word of a level that is written once more, as in exclude."""
        if key == "tool" and isinstance(written, dict):
            with suppress(ValidationError, PydanticCustomError):
                tool = getattr(self.model.model_validate({key: written}), key)
                return tool.name if self._written.get(tool.name) == tool else compact(written)
        return compact(written)

    def _value(self, key: str, written: Plain) -> Any:
        if self.transfers(key):
            return self._transfer(key, written)
        if key == METERS:
            return self._meters(written)
        return self._kernel(written) if key == KERNEL else self._setting(key, written)

    def _meters(self, written: Plain) -> tuple[str, ...]:
        """A list of meters, for the runs of a cell; an empty one: none but those of every run."""
        names = written if isinstance(written, list) else None
        if names is None:
            raise expected("a list of meters such as [rusage, soak]", written)
        for name in names:
            if name not in self.meters or names.count(name) > 1:
                known = nearest(str(name), self.meters)
                raise expected(f"meters ({listed(self.meters)}), each once", name, known)
        return tuple(map(str, names))

    def _transfer(self, key: str, written: Plain) -> Any:
        value = getattr(self.model.model_validate({key: written}), key)
        return self.tool(value) if key == "tool" else value

    def tool(self, named: Tool) -> Tool:
        """The tool of a name, or of a command line. Errors: PydanticCustomError."""
        if named.client:
            taken = named.name in ("none", *TOOLS, *self.tools)
            if taken or self._written.setdefault(named.name, named) != named:
                raise expected("a name of its own, below tools:", named.name)
            return named
        if named.name in ("none", *TOOLS):
            return named
        if named.name in self.tools:
            return self.tools[named.name]
        names = ["none", *TOOLS, *self.tools]
        what = f"a tool ({listed(names)}), or {{argv: [...], pattern: '...'}}"
        raise expected(what, named.name, nearest(named.name, names))

    def _kernel(self, written: Plain) -> str:
        if not isinstance(written, str) or (self.kernels and written not in self.kernels):
            names = listed(self.kernels) if self.kernels else "a name"
            raise expected(f"a kernel ({names})", written, nearest(written, self.kernels))
        return written

    def _setting(self, key: str, written: Plain) -> SettingLevel:
        try:
            return parse_level(key, compact(written), self.commands)
        except ValueError as error:
            why = str(error)
            choices = ("on", "off") if why == "on or off" else ()
            raise expected(why, written, nearest(written, choices)) from error

    def factors(self, sweep: Mapping[str, Any]) -> dict[str, list[Level]]:
        """The levels of every swept key, in file order; wrong ones are noted and left out."""
        factors: dict[str, list[Level]] = {}
        for key, levels in sweep.items():
            at: Loc = ("sweep", key)
            if not self.knows(key):
                self.unknown(
                    key,
                    at,
                    "a key of transfer, a setting such as tso or sysctl.NAME, kernel or meters",
                )
            elif not isinstance(levels, list) or not levels:
                what = "a list of levels such as [a, b]"
                self.problems.add(at, f"expected {what}, got {describe(levels)}")
            else:
                factors[key] = self._levels(key, levels, at)
        return factors

    def _levels(self, key: str, levels: list[Any], at: Loc) -> list[Level]:
        by_word: dict[str, Level] = {}
        by_value: dict[Any, Level] = {}  # levels are equal however they are spelled
        for i, written in enumerate(levels):
            level = self.level(key, written, (*at, i))
            if level is None:
                continue
            equal = by_value.setdefault(level.value, level)
            if equal is not level:
                same = f", which is {equal.word!r}" if equal.word != level.word else ""
                self.problems.add(
                    level.at, f"expected each level once, got {level.word!r} again{same}"
                )
            by_word.setdefault(level.word, level)
        return list(by_word.values())

    def entry(self, written: Mapping[str, Any], at: Loc) -> dict[str, Level]:
        """The levels of one entry of include."""
        levels: dict[str, Level] = {}
        for key, value in written.items():
            if not self.knows(key):
                self.unknown(
                    key, (*at, key), "a swept key, a key of transfer, a setting, kernel or meters"
                )
                continue
            level = self.level(key, value, (*at, key))
            if level is not None:
                levels[key] = level
        return levels
