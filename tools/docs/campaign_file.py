"""Reference of the campaign file, from its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from netbench.campaign import json_schema
from tools.docs.markdown import code, join, prose, table

Schema = dict[str, Any]
MATRIX = ("sweep", "include", "exclude")  # their keys are those of transfer, and settings
SWITCH = {"on", "off"}
NULL = {"type": "null"}


def keys() -> str:
    """A table of the keys at the top of the file, then one for each mapping below it."""
    schema: Schema = dict(json_schema())
    parts: dict[str, list[str]] = {}
    for path, about, mapping in _mappings("", schema, schema):
        parts.setdefault(path, []).append(join(about, _table(mapping, schema)))
    return join(*(join(f"## {path or 'The file'}", *tables) for path, tables in parts.items()))


def _table(mapping: Schema, root: Schema) -> str:
    """The keys of one mapping."""
    required = mapping.get("required", ())
    rows = []
    for key, raw in mapping["properties"].items():
        value = _resolved(raw, root)
        default = "required" if key in required else _default(value)
        examples = raw.get("examples", value.get("examples", ()))
        rows.append(
            (
                code(key),
                _kind(value, root),
                default,
                code(_word(examples[0])) if examples else "",
                prose(raw.get("description", value.get("description", ""))),
            )
        )
    return table(("Key", "Type", "Default", "Example", "What it is"), rows)


def _default(value: Schema) -> str:
    """The default of a key; that of a mapping is those of its keys."""
    default = value.get("default")
    return "" if isinstance(default, dict) or default == [] else code(_word(default))


def _mappings(path: str, raw: Schema, root: Schema) -> Iterator[tuple[str, str, Schema]]:
    """Each mapping with known keys below a place: where it is, what it is, and its schema."""
    value = _resolved(raw, root)
    if "properties" in value:
        yield path, prose(value.get("description", "")) if path else "", value
        for key, below in value["properties"].items():
            if path or key not in MATRIX:
                yield from _mappings(f"{path}.{key}".lstrip("."), below, root)
    for below in value.get("anyOf", ()):
        yield from _mappings(path, below, root)
    if isinstance(value.get("items"), dict):
        yield from _mappings(f"{path}[]", value["items"], root)
    for below in _values_of(value):
        yield from _mappings(f"{path}.NAME", below, root)


def _values_of(value: Schema) -> list[Schema]:
    """The schemas of the values of a mapping whose keys are names."""
    names = [value.get("additionalProperties"), *value.get("patternProperties", {}).values()]
    return [schema for schema in names if isinstance(schema, dict)]


def _resolved(raw: Schema, root: Schema) -> Schema:
    """A schema in place of a reference to it; what stands beside the reference stays."""
    if "$ref" not in raw:
        return raw
    value: Schema = root
    for name in raw["$ref"].removeprefix("#/").split("/"):
        value = value[name]
    return {**value, **{key: each for key, each in raw.items() if key != "$ref"}}


def _word(value: object) -> str:
    """A value as it is written in YAML."""
    if value is None or isinstance(value, str):
        return str(value or "")
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return f"[{', '.join(_word(each) for each in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_word(each)}' for key, each in value.items())}}}"
    return json.dumps(value)


def _kind(value: Schema, root: Schema) -> str:
    """The type of a value in words."""
    words = {_word(each) for each in value.get("enum", ())}
    if words:
        if words >= SWITCH:
            return "`on` or `off`"
        return ", ".join(dict.fromkeys(code(_word(each)) for each in value["enum"] if each))
    if "const" in value:
        return code(_word(value["const"]))
    if "anyOf" in value:
        kinds = dict.fromkeys(
            _kind(_resolved(each, root), root) for each in value["anyOf"] if each != NULL
        )
        return " or ".join(kinds)
    if "format" in value:
        return str(value["format"])
    if "properties" in value or value.get("type") == "object":
        return "mapping"
    if "items" in value and "string" not in value.get("type", ()):
        return f"list of {_kind(_resolved(value['items'], root), root)}"
    types = value.get("type", "any")
    if types == "integer" or "integer" in types:
        return "number"
    return "list of words or a line" if "items" in value else "word" if types != "any" else "any"
