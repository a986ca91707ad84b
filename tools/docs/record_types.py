"""Reference of what a result folder holds, from the types of records and of the journal."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from types import ModuleType

from netbench import record
from tools.docs.markdown import code, join, prose, table


def _types(module: ModuleType) -> Iterator[type]:
    """The public dataclasses that a module defines, in its order."""
    for name, kind in vars(module).items():
        own = inspect.isclass(kind) and kind.__module__ == module.__name__
        if own and hasattr(kind, "__dataclass_fields__") and not name.startswith("_"):
            yield kind


def _type(kind: type) -> str:
    rows = [
        (
            code(field.name),
            code(str(field.type).replace("'", "")),
            field.metadata.get("unit", ""),
            prose(field.metadata.get("about", "")),
        )
        for field in dataclasses.fields(kind)
    ]
    doc = prose(inspect.getdoc(kind) or "")
    return join(f"## {kind.__name__}", doc, table(("Key", "Type", "Unit", "What it is"), rows))


def records() -> str:
    """A table for each type of a record, the record first."""
    kinds = sorted(_types(record), key=lambda kind: kind is not record.Record)
    return join(*map(_type, kinds))
