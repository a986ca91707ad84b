"""Reference of what a result folder holds, from the types of its files."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from netbench.result import files, journal, profile_files, record
from netbench.result.codec import described
from tools.docs.markdown import code, join, prose, table


def records() -> str:
    """A table for each type of a record, the record first."""
    types = sorted(_types(record), key=lambda kind: kind is not record.Record)
    return join(*(_part(kind.__name__, kind) for kind in types))


def journal_entries() -> str:
    """A table for each kind of journal entry."""
    return join(*(_part(name, kind) for name, kind in journal.ENTRIES.items()))


def other_files() -> str:
    """A table for each type of plan.json, facts.json, noise.jsonl and profiles/."""
    kinds = (*_types(files), *_types(profile_files))
    return join(*(_part(kind.__name__, kind) for kind in kinds))


def _types(module: ModuleType) -> Iterator[type]:
    """The public dataclasses that a module defines, in its order."""
    for name, kind in vars(module).items():
        own = inspect.isclass(kind) and kind.__module__ == module.__name__
        if own and hasattr(kind, "__dataclass_fields__") and not name.startswith("_"):
            yield kind


def _plain(annotated: str) -> str:
    """The type within an Annotated one, as it is written."""
    whole = ast.parse(annotated, mode="eval").body
    words = whole.slice if isinstance(whole, ast.Subscript) else whole
    inner = words.elts[0] if isinstance(words, ast.Tuple) else whole
    return ast.unparse(inner).replace("'", "")


def _part(title: str, kind: Any) -> str:
    told = described(kind)
    rows = []
    for field in dataclasses.fields(kind):
        what, unit = [*told[field.name], ""][:2]
        rows.append((code(field.name), code(_plain(str(field.type))), unit, prose(what)))
    about = prose(inspect.getdoc(kind) or "")
    return join(f"### {title}", about, table(("Key", "Type", "Unit", "What it is"), rows))
