"""Frozen dataclasses as JSON objects: a field's name is the key, and pydantic checks the value by
the field's type.

A field with a default is left out of the JSON object while it has that default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_type_hints

import pydantic
from pydantic import ConfigDict, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from netbench.base.errors import ProtocolError, StoreError
from netbench.base.json_lines import to_line
from netbench.base.names import WRITTEN
from netbench.base.opening import LINE

SCHEMA = WRITTEN
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)  # from each quote to an end
LONGEST = 1 << 20  # to fold one takes its square
T = TypeVar("T")


@dataclass(frozen=True)
class Expected:
    """In an Annotated type that is several: what the message for a wrong value says of it, in place
    of what each of them lacks.
    """

    what: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.custom_error_schema(
            handler(source), "expected", custom_error_message=f"Input should be {self.what}"
        )


Integer = Annotated[int, pydantic.Field(ge=-(2**63), le=2**64 - 1)]
"""A whole number that the engine's u64 or i64 holds."""
IntegerPair = tuple[Integer, Integer]
TextPair = tuple[str, str]
Scalar = Annotated[
    bool | str | Integer | float | None, Expected("a text, a number, true, false or null")
]


REST = object()
"""In an Annotated type: the field holds every key of the JSON object that is no other field's."""


class JsonObject:
    """The base of dataclasses that are JSON objects of a result folder. The texts in a field's
    Annotated type are what it is and, where it has one, its unit.
    """

    __pydantic_config__: ClassVar = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    head: ClassVar[Mapping[str, Any]] = {}
    """The keys on disk that are no fields, each with its type."""
    optional: ClassVar[Mapping[str, Any]] = {}
    """Such keys that may be missing."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if _rest(source):
            return _schema_with_rest(source, handler)
        schema = handler(source)
        dataclass_schema: Any = handler.resolve_ref_schema(schema)
        keys = {name: handler.generate_schema(kind) for name, kind in cls.head.items()} | {
            name: core_schema.with_default_schema(handler.generate_schema(kind), default=None)
            for name, kind in cls.optional.items()
        }
        dataclass_schema["schema"]["fields"][:0] = [
            core_schema.dataclass_field(name, key, init_only=True) for name, key in keys.items()
        ]
        return schema


def _schema_with_rest(kind: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    """The schema of a dataclass whose last field is the `rest`: pydantic's dataclasses check no
    keys beside their fields, its models do.
    """
    hints = _hints(kind)
    *named, rest = fields(kind)
    keys = core_schema.model_fields_schema(
        {
            each.name: _field_schema(each, handler.generate_schema(hints[each.name]))
            for each in named
        },
        extras_schema=handler.generate_schema(get_args(hints[rest.name].__origin__)[1]),
        extra_behavior="allow",
    )

    def make(checked: tuple[dict[str, Any], dict[str, Any], set[str]]) -> Any:
        value = object.__new__(kind)
        value.__dict__.update(checked[0])
        value.__dict__[rest.name] = checked[1]
        return value

    return core_schema.no_info_after_validator_function(make, keys)


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)


@cache
def _rest(kind: type) -> str:
    """The name of the field that is the `rest`, or ""."""
    return next((n for n, hint in _hints(kind).items() if REST in get_args(hint)), "")


def described(kind: type) -> dict[str, tuple[str, ...]]:
    """By field what it is and, where it has one, its unit."""
    hints = _hints(kind)
    return {
        each.name: tuple(word for word in hints[each.name].__metadata__ if isinstance(word, str))
        for each in fields(kind)
    }


def _field_schema(field: Field[Any], schema: CoreSchema) -> core_schema.ModelField:
    if (default := _default(field)) is not MISSING:
        schema = core_schema.with_default_schema(schema, default=default)
    return core_schema.model_field(schema)


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    """By the name of a field what it is by default; MISSING where it has none."""
    return {each.name: _default(each) for each in fields(kind)}


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """What reads a kind; its making takes some 50 ms for a record."""
    return TypeAdapter(kind)


def read(kind: Callable[..., T], data: bytes, where: object, what: str) -> T:
    """A JSON object as a frozen dataclass. `what` it is (`a record`), and `where` (`FILE:LINE`).
    Errors: StoreError with both, and the path of the first wrong value.
    """
    if len(data) > LONGEST and max(map(len, _TEXT.findall(data)), default=0) > LONGEST:
        raise flawed(where, what, "a text in it has more than 1 MiB")
    try:
        return adapter(kind).validate_json(data)  # type: ignore[no-any-return]
    except ValidationError as error:
        wrong = error.errors(include_url=False)
    for each in wrong:
        if each["loc"] == ("schema",):
            raise other_schema(where)
    first = wrong[0]
    if first["type"] == "json_invalid":
        raise unreadable(where, f"not JSON: {first['ctx']['error']}")
    if not first["loc"]:
        raise unreadable(where, "not a JSON object")
    raise flawed(where, what, _describe(first))


def of_json(kind: Callable[..., T], value: Mapping[str, object]) -> T:
    """A JSON object of this schema, without `schema`, as a dataclass. Errors: ValidationError."""
    return adapter(kind).validate_json(  # type: ignore[no-any-return]
        json.dumps({"schema": SCHEMA, **value})
    )


def line_of(kind: Any, value: Mapping[str, Any], what: str) -> bytes:
    """A line as its own reader will take it: numbers and texts of hosts are in it. `what` it is (`a
    record`). Errors: ProtocolError.
    """
    try:
        line = to_line(value)
        if len(line) >= LINE:
            raise ValueError(f"{len(line) >> 20} MiB long")
        adapter(kind).validate_json(line)
    except ValueError as error:  # of a whole number of thousands of digits too
        wrong = error.errors(include_url=False) if isinstance(error, ValidationError) else []
        why = _describe(wrong[0]) if wrong else error
        raise ProtocolError(
            f"what a host said makes no line of {what} ({why}); look at that host, or leave it out"
        ) from error
    return line


def to_json(value: Any) -> Any:
    """A frozen dataclass as a JSON object; any other value as JSON."""
    if value is None or isinstance(value, str | int | float):  # most are
        return value
    if is_dataclass(value):
        raw: dict[str, Any] = {}
        kind: Any = type(value)
        rest = _rest(kind)
        for name, default in _defaults(kind).items():
            item = getattr(value, name)
            if name == rest:
                raw |= item  # as JSON has it
            elif item != default:
                raw[name] = to_json(item)
        return raw
    if isinstance(value, Mapping):
        return {name: to_json(item) for name, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, tuple | list) else value


def unreadable(where: object, why: str) -> StoreError:
    """The error for a file of a result folder, or a line of it (`FILE:LINE`), that is damaged."""
    return StoreError(f"{where}: {why}; restore it from a copy, or run the campaign again")


def flawed(where: object, what: str, why: object) -> StoreError:
    """The error for a file or a line that is JSON, but not `what` (`a record`) is."""
    return unreadable(where, f"not {what} as docs/records.md says ({why})")


def other_schema(where: object) -> StoreError:
    """The error for a file or a line that another version of netbench wrote."""
    return StoreError(
        f"{where}: expected schema {SCHEMA}; read it with the version of netbench that wrote it"
    )


def _describe(error: ErrorDetails) -> str:
    """The path of a wrong value, what is wrong with it, and what is there."""
    path, what = ".".join(map(str, error["loc"])), error["msg"].removeprefix("Value error, ")
    value: Any = error["input"]
    got = "an object" if isinstance(value, dict) else ascii(value)[:60]
    return f"{path}: {what}" + (f", found {got}" if error["type"] != "missing" else "")
