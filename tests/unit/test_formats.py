"""The formats that docs/reference/formats.md promises: their schemas, and what fits them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator as Validator

from netbench.base.names import PRINTED, WRITTEN
from tests.support.paths import ROOT
from tools.docs import schemas

SAMPLES = sorted((ROOT / "results" / "sample").iterdir())
LINES = {"record": "records.jsonl", "noise": "samples/noise.jsonl", "journal": "journal.jsonl"}


def validator(name: str, version: int) -> Validator:
    schema = json.loads((schemas.FOLDER / f"{name}-{version}.json").read_text())
    Validator.check_schema(schema)
    return Validator(schema)


@pytest.mark.parametrize("name", schemas.FILES)
def test_a_files_schema_is_that_of_its_type(name: str) -> None:
    """A change of a type fails here: `make reference` writes it, unless it breaks readers."""
    assert json.loads(schemas.place(name).read_text()) == schemas.of_file(name)


def test_a_change_that_breaks_readers_needs_a_new_version() -> None:
    old = schemas.of_file("record")
    keys = old["properties"]
    more = {**old, "properties": {**keys, "more": {"type": "string", "default": ""}}}
    assert schemas.keeps(old, more)
    without = {name: key for name, key in keys.items() if name != "reason"}
    other = {**keys, "reason": {"title": "Reason", "type": "integer"}}
    for changed in (
        {**old, "properties": without},
        {**old, "properties": other},
        {**more, "required": [*old["required"], "more"]},
    ):
        assert not schemas.keeps(old, changed)


def written(sample: Path) -> Iterator[tuple[str, Any]]:
    for name, file in LINES.items():
        if (sample / file).exists():
            yield from ((name, json.loads(x)) for x in (sample / file).read_text().splitlines())
    for name in ("plan", "facts"):
        yield name, json.loads((sample / f"{name}.json").read_text())


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample.name for sample in SAMPLES])
def test_each_result_that_is_stored_fits_the_schema_of_its_version(sample: Path) -> None:
    known = {name: validator(name, WRITTEN) for name in schemas.FILES}
    for name, value in written(sample):
        errors = known[name].iter_errors(value)
        assert [f"{name} {error.json_path}: {error.message[:200]}" for error in errors] == []


@pytest.mark.parametrize("name", schemas.COMMANDS)
def test_what_is_printed_fits_its_schema(name: str, tmp_path: Path) -> None:
    known = validator(name, PRINTED)
    for value in schemas.printed(name, str(tmp_path)):
        errors = known.iter_errors(value)
        assert [f"{error.json_path}: {error.message[:200]}" for error in errors] == []
        if isinstance(value, dict):  # its first key is one that is always there
            assert not known.is_valid(dict(list(value.items())[1:]))


@pytest.mark.parametrize("name", schemas.COMMANDS)
def test_a_value_that_was_null_in_all_samples_may_be_anything(name: str) -> None:
    assert '"type": "null"' not in schemas.place(name).read_text(encoding="utf-8")
