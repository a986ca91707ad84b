"""Frozen dataclasses as JSON objects: a field's name is the key, its type is what a reader checks.

A field with a default is left out of the JSON object while it has that default. A field with
`metadata["rest"]` takes every key that is no other field's. `metadata["check"]` replaces the check
that follows from the type. Supported types: int, float, str, bool, Any, Literal, tuple, Mapping,
`X | None` and other frozen dataclasses.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, partial
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from netbench.errors import StoreError

LOWEST, HIGHEST = -(2**63), 2**64 - 1  # of a whole number: what the engine's u64 and i64 hold
T = TypeVar("T")
Check = Callable[[Any], Any]
"""Gives a JSON value as its type has it. Errors: Flaw."""


def about(text: str, unit: str = "", **others: Any) -> Mapping[str, Any]:
    """Metadata of a field: what it is, its unit, and `check` or `rest` where it has them."""
    return {"about": text, "unit": unit, **others}


class Flaw(ValueError):
    """A JSON value is not what its type says. Readers of files add file and line."""

    def __init__(self, why: str, path: str = "") -> None:
        self._why, self._path = why, path
        super().__init__(f"{path}: {why}" if path else why)

    def inside(self, key: str) -> Flaw:
        """The same flaw, seen from the object that has the value under `key`."""
        return Flaw(self._why, f"{key}.{self._path}" if self._path else key)


def unreadable(where: object, why: str) -> StoreError:
    """The error for a file of a result folder, or a line of it (`FILE:LINE`), that is damaged."""
    return StoreError(f"{where}: {why}; restore it from a copy, or run the campaign again")


def flawed(where: object, what: str, flaw: Exception) -> StoreError:
    """The error for a file or a line that is JSON, but not `what` (`a record`) is."""
    return unreadable(where, f"not {what} as docs/records.md says ({flaw})")


def other_schema(where: object, schema: int) -> StoreError:
    """The error for a file or a line that another version of netbench wrote."""
    return StoreError(
        f"{where}: expected schema {schema}; read it with the version of netbench that wrote it"
    )


def parse(data: bytes, where: object) -> Any:
    """A JSON text. Errors: StoreError with `where` for data that is no JSON in UTF-8."""
    try:
        return json.loads(data)
    except RecursionError as error:
        raise unreadable(where, "not JSON: nested too deep") from error
    except ValueError as error:
        raise unreadable(where, f"not JSON: {error}") from error


def to_line(value: Mapping[str, Any]) -> bytes:
    """A JSON object as one line."""
    return (json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n").encode()


def read_as(kind: Callable[..., T], raw: object) -> T:
    """A JSON object as a frozen dataclass. Errors: Flaw with the path of the first wrong value."""
    shape: _Shape = _shape(kind)
    if type(raw) is not dict:
        raise Flaw(f"expected an object, found {shown(raw)}")
    values, others = shape.defaults.copy(), {}
    name = ""
    try:
        for name, value in raw.items():
            if (check := shape.checks.get(name)) is not None:
                values[name] = check(value)
            else:
                others[name] = value
    except Flaw as flaw:
        raise flaw.inside(name) from None
    if shape.rest:
        values[shape.rest] = shape.check_rest(others)
    elif others:
        raise Flaw(f"unknown key {next(iter(others))!r}")
    if len(values) < shape.size:
        raise Flaw(f"no {next(name for name in shape.checks if name not in values)!r}")
    # A frozen dataclass's own __init__ takes five times as long: a report reads 100,000 records.
    made: Any = object.__new__(shape.kind)
    made.__dict__.update(values)
    return made  # type: ignore[no-any-return]


def to_json(value: Any) -> Any:
    """A frozen dataclass as a JSON object; any other value as JSON."""
    if is_dataclass(value):
        shape, found = _shape(value.__class__), {}
        for name in shape.checks:
            item = getattr(value, name)
            if name not in shape.defaults or item != shape.defaults[name]:
                found[name] = to_json(item)
        return found | to_json(getattr(value, shape.rest)) if shape.rest else found
    if isinstance(value, Mapping):
        return {name: to_json(item) for name, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, tuple | list) else value


@dataclass(frozen=True)
class _Shape:
    """What the JSON object of a dataclass holds."""

    kind: type
    size: int
    checks: dict[str, Check]
    defaults: dict[str, Any]
    rest: str
    check_rest: Check


@cache
def _shape(kind: Any) -> _Shape:
    hints = get_type_hints(kind)
    checks: dict[str, Check] = {}
    defaults: dict[str, Any] = {}
    rest = ""
    for each in fields(kind):
        checks[each.name] = each.metadata.get("check") or _check_of(hints[each.name])
        if each.metadata.get("rest"):
            rest = each.name
        elif each.default_factory is not MISSING:
            defaults[each.name] = each.default_factory()
        elif each.default is not MISSING:
            defaults[each.name] = each.default
    size = len(checks)
    check_rest = checks.pop(rest) if rest else _anything
    return _Shape(kind, size, checks, defaults, rest, check_rest)


def _check_of(hint: Any) -> Check:
    """The check that a type asks for."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        inner = _check_of(next(each for each in arguments if each is not type(None)))
        return lambda value: None if value is None else inner(value)
    if origin is Literal:
        return _one_of(arguments)
    if origin is tuple:
        several = len(arguments) == 2 and arguments[1] is ...
        return tuple_of(_check_of(arguments[0]), None if several else len(arguments))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return mapping_of(_check_of(arguments[1]))
    return _SIMPLE.get(hint) or partial(read_as, hint)


def whole_number(value: Any) -> Any:
    """An integer that 64 bits hold."""
    if type(value) is not int or not LOWEST <= value <= HIGHEST:
        raise Flaw(f"expected a whole number, found {shown(value)}")
    return value


def number(value: Any) -> Any:
    """A finite number."""
    if type(value) is int:
        return whole_number(value)
    if type(value) is not float or not math.isfinite(value):
        raise Flaw(f"expected a number, found {shown(value)}")
    return value


def text(value: Any) -> Any:
    """A string that can be written as UTF-8."""
    if type(value) is not str:
        raise Flaw(f"expected a text, found {shown(value)}")
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise Flaw(f"expected a text, found half of a character in {shown(value)}")
    return value


def _truth(value: Any) -> Any:
    if type(value) is not bool:
        raise Flaw(f"expected true or false, found {shown(value)}")
    return value


def _anything(value: Any) -> Any:
    return value


_SIMPLE: Mapping[Any, Check] = {
    int: whole_number,
    float: number,
    str: text,
    bool: _truth,
    Any: _anything,
}


def _one_of(words: tuple[object, ...]) -> Check:
    def check(value: Any) -> Any:
        if type(value) is not str or value not in words:
            raise Flaw(f"expected one of {', '.join(map(str, words))}, found {shown(value)}")
        return value

    return check


def tuple_of(item: Check, size: int | None) -> Check:
    """A list of `size` values (None: of any number), each of which passes a check, as a tuple."""

    def check(value: Any) -> Any:
        if type(value) is not list or (size is not None and len(value) != size):
            count = "" if size is None else f" of {size}"
            raise Flaw(f"expected a list{count}, found {shown(value)}")
        return tuple(map(item, value))

    return check


def mapping_of(item: Check) -> Check:
    """An object of any keys, each value of which passes a check."""

    def check(value: Any) -> Any:
        if type(value) is not dict:
            raise Flaw(f"expected an object, found {shown(value)}")
        found = {}
        for name, each in value.items():
            try:
                found[name] = item(each)
            except Flaw as flaw:
                raise flaw.inside(name) from None
        return found

    return check


def shown(value: object) -> str:
    """A value for a message, cut to 60 characters."""
    if isinstance(value, int) and not LOWEST <= value <= HIGHEST:
        return "a number beyond 64 bits"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else f"a list of {len(value)}"
    return ascii(value)[:60]
