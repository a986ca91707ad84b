"""Kinds of values in a campaign file: parsers that say what was expected, and JSON Schemas."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from netbench.base.units import (
    RATE_PATTERN,
    SHARE_PATTERN,
    SIZE_PATTERN,
    TIME_PATTERN,
    format_rate,
    format_size,
    format_time,
    parse_rate,
    parse_share,
    parse_size,
    parse_time,
)
from netbench.campaign.messages import expected, listed, nearest, wrong
from netbench.campaign.tree import Plain, compact

WORDS_MAX = 255  # of a command line, as the worker takes it (NB_ARGUMENTS_MAX)
SWITCHES = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
U64_MAX = 2**64 - 1
Schema = dict[str, Any]
M = TypeVar("M", bound=BaseModel)


class Kind(NamedTuple):
    """A type of word: metadata of an `Annotated` field, for pydantic's parser and JSON Schema."""

    parse: Callable[[Plain], Any]
    schema: Schema

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: object) -> Schema:
        return dict(self.schema)


def choice(what: str, words: Sequence[str]) -> Kind:
    """One of some words, as it was written."""

    def parse(value: Plain) -> str:
        if isinstance(value, str) and value in words:
            return value
        raise expected(
            f"{what} ({listed(words)})" if what else listed(words), value, nearest(value, words)
        )

    # a JSON reader takes an unquoted `null` for the null value
    return Kind(parse, {"enum": [*words, None] if "null" in words else list(words)})


def enumerated(words: Mapping[str, int]) -> Kind:
    """One of some words, which stand for numbers."""

    def parse(value: Plain) -> int:
        if isinstance(value, str) and value in words:
            return words[value]
        raise expected(listed(words), value)

    return Kind(parse, {"enum": [*words.values(), *words]})


def keyword(words: Mapping[str, Any], other: Kind) -> Kind:
    """One of some words, which stand for values, or what another kind reads."""

    def parse(value: Plain) -> Any:
        if isinstance(value, str) and value in words:
            return words[value]
        try:
            return other.parse(value)
        except PydanticCustomError as error:
            message = (error.context or {})["text"].replace(
                "expected ", f"expected {', '.join(words)} or ", 1
            )
            raise wrong(message, nearest(value, words)) from error

    return Kind(parse, {"anyOf": [{"enum": list(words)}, other.schema]})


def word_or(words: Mapping[str, Any], model: type[M], make: Callable[[M], Any], what: str) -> Kind:
    """One of some words, or a mapping with the keys of a model, of which `make` makes one."""

    def parse(value: Plain) -> Any:
        if isinstance(value, dict) and value:
            return make(model.model_validate(value))
        if isinstance(value, str) and value in words:
            return words[value]
        raise expected(what, value, nearest(value, words))

    schema = {"const": next(iter(words))} if len(words) == 1 else {"enum": list(words)}
    return Kind(parse, {"anyOf": [schema, model.model_json_schema()]})


def _unit(
    what: str, read: Callable[[str], int], low: int, high: int, show: Callable[[int], str]
) -> Callable[[Plain], int]:
    def parse(value: Plain) -> int:
        if not isinstance(value, str):
            raise expected(what, value)
        try:
            number = read(value)
        except ValueError as error:
            raise wrong(str(error)) from error
        if not low <= number <= high:
            bounds = f"of at least {show(low)}" if number < low else f"of at most {show(high)}"
            raise expected(f"{what.partition(' such as ')[0]} {bounds}", value)
        return number

    return parse


def size(low: int = 0, high: int = U64_MAX) -> Kind:
    """A size in bytes between two bounds."""
    parse = _unit("a size such as 64K, 1M or 300kB", parse_size, low, high, format_size)
    return Kind(
        parse,
        {"type": ["string", "integer"], "format": "size", "pattern": SIZE_PATTERN, "minimum": low},
    )


def time(low: int = 0, high: int = U64_MAX) -> Kind:
    """A time in nanoseconds between two bounds."""
    parse = _unit("a time such as 200ms, 1s or 2m", parse_time, low, high, format_time)
    string = {"type": "string", "format": "time", "pattern": TIME_PATTERN}
    return Kind(parse, {"anyOf": [string, {"const": 0}]})


def rate(low: int = 1, high: int = U64_MAX) -> Kind:
    """A rate in bits per second between two bounds."""
    parse = _unit("a rate such as 940Mb/s or 1.5Gb/s", parse_rate, low, high, format_rate)
    return Kind(parse, {"type": "string", "format": "rate", "pattern": RATE_PATTERN})


def number(what: str, low: int = 0, high: int = U64_MAX) -> Kind:
    """A whole number between two bounds."""
    bounds = f"from {low} to {high}" if high < U64_MAX else f"of at least {low}"

    def parse(value: Plain) -> int:
        if (
            isinstance(value, str)
            and re.fullmatch("[0-9]{1,20}", value)
            and low <= int(value) <= high
        ):
            return int(value)
        raise expected(f"{what}, a whole number {bounds}", value)

    return Kind(parse, {"type": "integer", "minimum": low, "maximum": high})


def share(what: str, example: str, low: float, high: float) -> Kind:
    """A fraction, low <= value < high (low itself only when it is not 0)."""

    def parse(value: Plain) -> float:
        try:
            fraction = parse_share(value) if isinstance(value, str) else -1.0
        except ValueError:
            fraction = -1.0
        if low <= fraction < high and fraction > 0:
            return fraction
        raise expected(f"{what} such as {example}", value)

    return Kind(parse, {"type": ["string", "number"], "format": "share", "pattern": SHARE_PATTERN})


def switch() -> Kind:
    """on or off; true, false, yes and no too."""

    def parse(value: Plain) -> bool:
        if isinstance(value, str) and value in SWITCHES:
            return SWITCHES[value]
        raise expected("on or off", value, nearest(value, SWITCHES))

    return Kind(parse, {"enum": [*SWITCHES, True, False]})


def matching(what: str, pattern: str) -> Kind:
    """A word that a regular expression matches as a whole."""

    def parse(value: Plain) -> str:
        if isinstance(value, str) and re.fullmatch(pattern, value):
            return value
        raise expected(what, value)

    return Kind(parse, {"type": ["string", "number"], "pattern": f"^({pattern})$"})


def text(what: str) -> Kind:
    """Any text that is not empty."""

    def parse(value: Plain) -> str:
        if isinstance(value, str) and value.strip():
            return value
        raise expected(what, value)

    return Kind(parse, {"type": ["string", "number", "boolean"]})


def level() -> Kind:
    """A level of a factor or a setting, as it was written."""

    def parse(value: Plain) -> str:
        if value is None or value in ("", {}, []):
            raise expected("a level", value)
        return compact(value)

    return Kind(parse, {})


def argv() -> Kind:
    """A program and its arguments: a line, split as a shell would, or a list of words."""

    def parse(value: Plain) -> tuple[str, ...]:
        try:
            written = shlex.split(value) if isinstance(value, str) else value
        except ValueError as error:
            raise expected("a program and its arguments, with every quote closed", value) from error
        words = [w for w in written if isinstance(w, str) and w] if written else []
        if len(words) > WORDS_MAX:
            raise wrong(f"expected at most {WORDS_MAX} words, got {len(words)}")
        if isinstance(written, list) and words and len(words) == len(written):
            return tuple(words)
        raise expected("a program and its arguments, as a line or as a list of words", value)

    schema = {"type": ["string", "array"], "items": {"type": "string"}}
    return Kind(parse, {**schema, "minItems": 1, "maxItems": WORDS_MAX, "minLength": 1})


def mapping_of(what: str) -> BeforeValidator:
    """Refuses what is not a mapping, or an empty one."""

    def check(value: Plain) -> Any:
        if isinstance(value, dict) and value:
            return value
        raise expected(what, value)

    return BeforeValidator(check)


def list_of(what: str, empty: bool = False) -> BeforeValidator:
    """Refuses what is not a list, or an empty one unless that is allowed."""

    def check(value: Plain) -> Any:
        if isinstance(value, list) and (value or empty):
            return value
        raise expected(what, value)

    return BeforeValidator(check)
