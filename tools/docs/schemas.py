"""JSON Schema of every file of a result and of what each `--json` prints: netbench/schemas/, which
wheels have. Files' follow from their types; what is printed has no type: a schema holds what all of
these commands print, and keeps what it held.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Union

from genson import SchemaBuilder
from pydantic import TypeAdapter

from netbench.__main__ import _outcome
from netbench.base.names import PRINTED, WRITTEN
from netbench.result import files, journal, profile_files, record

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "netbench" / "schemas"
FILES: Mapping[str, Any] = {
    "record": record.Record,
    "plan": files.PlanFile,
    "facts": files.FactsFile,
    "noise": files.NoiseEntry,
    "profile": profile_files.ProfileRecord,
    "journal": Union[tuple(journal.ENTRIES.values())],  # noqa: UP007  # of a list
}
"""What is on disk: of records.jsonl, noise.jsonl, runs.jsonl and journal.jsonl a line."""
SAMPLES = sorted(str(path) for path in (ROOT / "results" / "sample").iterdir())


def _has_compare(sample: str) -> bool:
    return bool(json.loads(Path(sample, "plan.json").read_text(encoding="utf-8")).get("compare"))


SHORT = ("duration=100ms", "warmup=0s")
COMMANDS: Mapping[str, list[tuple[str, ...]]] = {
    "json-report": [*(("report", sample) for sample in SAMPLES), ("transfer", *SHORT)],
    "json-compare": [("compare", sample) for sample in SAMPLES if _has_compare(sample)],
    "json-list": [
        *(("list", kind) for kind in "methods meters settings tools facts metrics".split()),
        ("list", "cautions"),
        ("list", "results", "--results", str(ROOT / "results")),
    ],
    "json-check": [("check", str(ROOT / "campaigns" / "loopback.yaml"))],
    "json-plan": [
        ("plan", str(ROOT / "campaigns" / f"{name}.yaml"))
        for name in ("loopback", "sosend", "splice")
    ],
    "json-init": [("init",), ("init", "demo")],
    "json-meter": [("meter", "procstat", "--seconds", "0.2")],
    "json-lab": [("lab", "status")],
}
"""By name the commands whose output a schema describes, each with --json."""
ABOUT = ("description", "title", "$id")
MAPS = set(
    "results factors hosts facts missing unread not_held metrics reasons groups links held context"
    " counters units procstat".split()
)
"""Keys whose object has names of the user's, or of the kernel's, for keys."""


def place(name: str) -> Path:
    """Where a schema is: a new version is a new file, and older ones stay."""
    is_file = name in FILES
    return FOLDER / (f"{name}-{WRITTEN}.json" if is_file else f"{name}-{PRINTED}.json")


def of_file(name: str) -> dict[str, Any]:
    """The schema of a file, from its type."""
    schema: dict[str, Any] = TypeAdapter(FILES[name]).json_schema()
    return schema | {"$id": f"netbench:{name}-{WRITTEN}"}


def printed(name: str, folder: str) -> Iterator[Any]:
    """What the commands of that name print, run in that folder."""
    for words in COMMANDS[name]:
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as out:
            _outcome([*words, "--json"])
        yield json.loads(out.getvalue())


def of_printed(name: str) -> dict[str, Any]:
    """The schema of what is printed: as it was, with what is new."""
    builder = SchemaBuilder()
    if (file := place(name)).exists():
        builder.add_schema(json.loads(file.read_text(encoding="utf-8")))
    with tempfile.TemporaryDirectory() as folder:
        for value in printed(name, folder):
            builder.add_object(value)
    schema: dict[str, Any] = _opened(builder.to_schema())
    return schema | {"$id": f"netbench:{name}-{PRINTED}"}


def _opened(schema: Any, key: str = "") -> Any:
    """With any key where an object is a map, and null for a number that there may be none of; keys
    may be added everywhere.
    """
    if isinstance(schema, list):
        return [_opened(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    inner = schema.get("properties")
    if key in MAPS and inner is not None:
        builder = SchemaBuilder()
        for value in inner.values():
            builder.add_schema(value)
        values = builder.to_schema()
        values.pop("$schema", None)
        return {"type": "object", "patternProperties": {"": _opened(values)}}
    opened = {name: _opened(value) for name, value in schema.items() if name != "properties"}
    if isinstance(inner, dict):
        opened["properties"] = {name: _opened(value, name) for name, value in inner.items()}
    types = {schema["type"]} if isinstance(schema.get("type"), str) else {*schema.get("type", ())}
    if types & {"integer", "number"}:
        opened["type"] = sorted({*types, "null"})
    if types == {"null"}:  # what it is elsewhere, no sample tells
        del opened["type"]
    return opened


def keeps(old: Any, new: Any) -> bool:
    """Whether what is read by an old schema of a file is read by a new one: at most keys that may
    be missing, and types, were added.
    """
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return all(map(keeps, old, new))
    if not isinstance(old, dict) or not isinstance(new, dict):
        return bool(old == new)
    return all(
        name in new and keeps(value, new[name]) for name, value in old.items() if name not in ABOUT
    ) and all(name in old or isinstance(value, dict) for name, value in new.items())


def write() -> None:
    """Write all of them. Errors: SystemExit where a file's format changed under its version."""
    FOLDER.mkdir(exist_ok=True)
    for name in (*FILES, *COMMANDS):
        schema = of_file(name) if name in FILES else of_printed(name)
        if name in FILES and place(name).exists():
            old = json.loads(place(name).read_text(encoding="utf-8"))
            if not keeps(old, schema):
                raise SystemExit(
                    f"{place(name).name}: what older versions write would not be read, or the other"
                    " way: raise WRITTEN in netbench/base/names.py, and tell it in CHANGELOG.md"
                )
        text = json.dumps(schema, ensure_ascii=False, sort_keys=True)
        place(name).write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    write()
