"""The campaign file's keys as a flat list, for its reference page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from netbench.campaign.schema.file import file_model
from netbench.campaign.tree import Plain, compact
from netbench.engine.catalogue import Catalogue
from netbench.engine.own_engine import local

Schema = dict[str, Any]  # JSON Schema: a value of any shape below each keyword


@dataclass(frozen=True)
class KeyReference:
    """One key of the campaign file.

    `path` is its dotted path: `pairs[].sender` is a key of each item of a list, `hosts.NAME.ssh` of
    each named entry of a mapping. `type` is what it accepts, in words. `default` and `example` are
    written as in a file; `default` is "" where there is none.
    """

    path: str
    type: str
    required: bool
    default: str
    about: str
    example: str


def campaign_keys(catalogue: Catalogue | None = None) -> list[KeyReference]:
    """Every key of the campaign file for what an engine offers, each before the keys below it."""
    model = file_model(catalogue or local())
    schema = model.model_json_schema(schema_generator=_InOrder)
    return list(_keys(schema, schema, ""))


class _InOrder(GenerateJsonSchema):
    """Keeps the keys of examples in the order in which they are written."""

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        return value


def _keys(mapping: Schema, root: Schema, prefix: str) -> Iterator[KeyReference]:
    for name, key in mapping["properties"].items():
        path = prefix + name
        nested = list(_nested(key, root, path))
        yield KeyReference(
            path,
            type_words(key, root),
            name in mapping.get("required", ()),
            "" if nested and isinstance(key.get("default"), dict) else _word(key.get("default")),
            key["description"],
            _word(key["examples"][0]),
        )
        for at, below in nested:
            yield from _keys(below, root, at)


def _nested(key: Schema, root: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """The mappings with known keys that a key accepts, each with the prefix of its keys' paths."""
    if "$ref" in key:
        yield from _nested(root["$defs"][key["$ref"].rpartition("/")[2]], root, path)
    elif "properties" in key:
        yield f"{path}.", key
    for choice in key.get("anyOf", ()):
        yield from _nested(choice, root, path)
    for below, at in ((key.get("items"), f"{path}[]"), (_named_entry(key), f"{path}.NAME")):
        if isinstance(below, dict):
            yield from _nested(below, root, at)


def _named_entry(key: Schema) -> Any:
    return next(iter(key.get("patternProperties", {}).values()), key.get("additionalProperties"))


def type_words(key: Schema, root: Schema) -> str:
    """What a key accepts, in words: `size`, `on or off`, `list of names`, ..."""
    if "anyOf" in key:
        kinds = dict.fromkeys(
            type_words(choice, root)
            for choice in key["anyOf"]
            if choice not in ({"const": 0}, {"type": "null"})
        )
        return " or ".join(kinds)
    if "$ref" in key or "properties" in key or key.get("type") == "object":
        return "mapping"
    if "enum" in key:
        return _enumeration(key["enum"])
    if "const" in key:
        return f"`{key['const']}`"
    if "format" in key:
        return str(key["format"])
    if key.get("type") == "integer":
        return _integer(key)
    if key.get("type") == "array":
        return f"list of {type_words(key.get('items', {}), root)}"
    return "text or list of text" if "items" in key else "text"


def _enumeration(words: list[Any]) -> str:
    """Words in code marks. The spellings of a switch, and of a number, count once."""
    if "off" in words:
        return "`on` or `off`"
    return ", ".join(f"`{word}`" for word in dict.fromkeys(str(w) for w in words if w is not None))


def _integer(key: Schema) -> str:
    low, high = key.get("minimum", 0), key.get("maximum", 2**64)
    return f"whole number, {low} to {high}" if high < 2**63 else f"whole number, at least {low}"


def _word(value: Plain) -> str:
    return "" if value in (None, "", [], {}) else compact(value)
