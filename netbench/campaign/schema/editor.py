"""JSON Schema (draft 2020-12) of the campaign file, for editors."""

from __future__ import annotations

from typing import Any

from netbench.campaign import settings
from netbench.campaign.factors import METERS
from netbench.campaign.schema.file import file_model
from netbench.campaign.schema.transfer import transfer_model
from netbench.engine.catalogue import Catalogue
from netbench.engine.own_engine import local

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(catalogue: Catalogue | None = None) -> dict[str, object]:
    """JSON Schema of the campaign file for what an engine offers, read as YAML 1.1 or 1.2."""
    catalogue = catalogue or local()
    schema = file_model(catalogue).model_json_schema()
    properties: dict[str, Any] = schema["properties"]
    of_transfer = {
        key: {"$ref": f"#/$defs/Transfer/properties/{key}"}
        for key in transfer_model(catalogue).model_fields
    }
    factors = of_transfer | {METERS: {"$ref": f"#/properties/{METERS}"}}
    properties["sweep"] |= _keyed({key: _levels(ref) for key, ref in factors.items()}, _levels({}))
    properties["include"]["items"] = _keyed(factors, {}) | {"minProperties": 1}
    properties["exclude"]["items"] = _keyed(factors, {}) | {"minProperties": 1}
    properties["settings"] = {
        "type": "object",
        "description": properties["settings"]["description"],
        "minProperties": 1,
    }
    properties["settings"] |= {"patternProperties": {settings.pattern(): {}}}
    host = {"anyOf": [{"const": "local"}, {"$ref": "#/$defs/HostKeys"}]}
    names = properties["hosts"].pop("patternProperties", {})
    properties["hosts"] |= (
        {"patternProperties": dict.fromkeys(names, host)}
        if names
        else {"additionalProperties": host}
    )
    return {"$schema": _DIALECT, **schema, "title": "netbench campaign"}


def _levels(level: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "uniqueItems": True, "items": level}


def _keyed(known: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """A mapping of known keys, settings (any name: a campaign can have its own) and kernel."""
    pattern = {settings.pattern(): other}
    return {
        "type": "object",
        "properties": {**known, settings.KERNEL: other},
        "patternProperties": pattern,
        "additionalProperties": False,
    }
