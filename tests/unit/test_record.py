"""Records, plans and facts are read back; what is damaged is an error that names it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netbench.base import names
from netbench.base.errors import StoreError
from netbench.base.json_lines import to_line
from netbench.result.codec import SCHEMA, described
from netbench.result.files import read_facts, read_noise, read_plan
from netbench.result.journal import ENTRIES, parse_entry
from netbench.result.profile_files import read_profile_runs
from netbench.result.record import (
    STATUSES,
    Capture,
    Proof,
    Record,
    SettingNote,
    Settings,
    SideCounters,
    ToolReading,
    parse_record,
)
from tests.support import damage
from tests.support.damage import texts
from tests.support.paths import ROOT

WHERE = "r/records.jsonl:7"
numbers = st.integers(0, 2**64 - 1)
lines = texts.filter(lambda text: re.fullmatch(names.LINE, text))


def free(name: str) -> bool:
    return not names.is_taken(name)


def counters(edges: int) -> st.SearchStrategy[dict[str, Any]]:
    def so_many(values: st.SearchStrategy[Any], n: int) -> st.SearchStrategy[list[Any]]:
        return st.lists(values, min_size=n, max_size=n)

    streams = st.integers(1, 3).flatmap(lambda n: so_many(so_many(numbers, n), edges))
    return st.dictionaries(texts, so_many(numbers, edges) | streams, max_size=3)


notes = st.dictionaries(
    texts,
    st.builds(
        SettingNote,
        asked=st.none() | texts | numbers,
        read=texts | numbers | st.lists(numbers, max_size=3),
        after=st.none() | texts,
    ),
    max_size=3,
)
sides = st.builds(
    SideCounters,
    host=texts,
    time_ns=st.none() | st.tuples(numbers, numbers).map(sorted).map(tuple),
    resident=st.none() | numbers,
    source_size=st.none() | numbers,
    cache=st.sampled_from(["", "warm", "cold"]),
    rejected_connections=numbers,
    samples_lost=numbers,
    tool=st.none()
    | st.builds(ToolReading, numbers, st.floats(0, 1e9))
    | st.builds(ToolReading, rate=texts),
    meters=st.dictionaries(st.sampled_from(["flow", "tcp", "rusage"]), counters(2), max_size=3),
)
records = st.builds(
    Record,
    run=st.integers(1, 10**6),
    cell=texts,
    pair=st.sampled_from(["here>here", "snd>rcv", "a.b-c>d_e"]),
    block=st.integers(0, 10**6),
    boot=st.integers(0, 10**6),
    factors=st.dictionaries(
        st.from_regex(names.FACTOR, fullmatch=True).filter(free), lines, max_size=3
    ),
    status=st.sampled_from(STATUSES),
    reason=texts,
    started=st.just("2026-03-01T12:00:00.123456Z"),
    sender=st.none() | sides,
    receiver=st.none() | sides,
    settings=st.builds(
        Settings, notes, notes, st.dictionaries(texts, st.tuples(texts, texts), max_size=2)
    ),
    proof=st.builds(Proof, counters(3), counters(3)),
    captures=st.dictionaries(
        st.from_regex(names.METRIC, fullmatch=True).filter(free),
        st.builds(Capture, texts, st.none() | st.floats(0, 1e9), texts),
        max_size=2,
    ),
    cut=st.dictionaries(st.sampled_from(["sender", "receiver"]), st.floats(0, 1e9), max_size=2),
)
SIDE = {
    "host": "here",
    "time_ns": [81000, 1081000],
    "flow": {"bytes": [[1048576, 2], [90177536, 3]], "steps": [[128, 2], [11008, 3]]},
    "rusage": {"cpu_ns": [100, 900]},
    "resident": 1,
    "tool": {"bytes": 7, "seconds": 0.5},
}
WHOLE: dict[str, Any] = {
    **{"schema": SCHEMA, "run": 17, "cell": "send=sendfile", "pair": "here>here", "block": 4},
    **{"boot": 0, "factors": {"send": "sendfile"}, "status": "ok", "reason": ""},
    "started": "2026-03-01T12:00:00.123456Z",
    "sender": SIDE,
    "receiver": SIDE,
    "settings": {
        "sender": {"tso": {"asked": "off", "read": "off", "after": "on"}},
        "receiver": {"receive_buffer": {"asked": None, "read": 131072}},
        "moved": {"snd.gso": ["on", "off"]},
    },
    "proof": {"sender": {"sendfile_calls": [[12, 1], [301, 2], [302, 3]]}, "receiver": {}},
    "cut": {"sender": 5.2},
}


@given(records)
def test_what_is_written_is_read_back(record: Record) -> None:
    line = to_line(record.to_json())
    assert parse_record(line, WHERE) == record
    assert to_line(parse_record(line, WHERE).to_json()) == line


def test_the_shape_on_disk() -> None:
    assert parse_record(json.dumps(WHOLE).encode(), WHERE).to_json() == WHOLE
    failed = {key: WHOLE[key] for key in list(WHOLE)[:10]} | {"status": "failed"}
    assert parse_record(json.dumps(failed).encode(), WHERE).to_json() == failed


@given(damage.damaged(WHOLE))
def test_a_damaged_line_is_an_error_that_names_it_or_a_record_still(line: bytes) -> None:
    if refused := damage.refusal(parse_record, line, WHERE):
        assert refused.startswith(f"{WHERE}: ")
        assert "; " in refused
    else:
        record = parse_record(line, WHERE)
        assert parse_record(to_line(record.to_json()), WHERE) == record


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("cell", None, "cell: Input should be a valid string"),
        ("factors.send", "x\n  y", "factors.send: String should match pattern"),
        ("started", "2026-99-01T12:00:00Z", "started: month must be in 1..12"),
        ("sender.time_ns", [2, 1], "sender.time_ns: it closes before it opens"),
        *(("pair", pair, "pair: String should match") for pair in ("a>b>c", "a", ">b", "a>b>")),
        ("sender.flow", [1], "sender.flow: Input should be .*, found"),
        ("sender.flow.bytes", [[1, 2], [1]], "sender.flow.bytes: .* whole numbers at the window"),
        ("sender.rusage.cpu_ns", [1, 2**64], "sender.rusage.cpu_ns: .* whole numbers"),
        ("proof.sender.calls", [], "proof.sender.calls: .* whole numbers"),
        ("proofs", {}, "proofs: Unexpected keyword argument"),
    ],
)
def test_a_wrong_value_is_named_with_its_path(path: str, value: object, why: str) -> None:
    says = rf"^{WHERE}: not a record .*\({why}.*restore it from a copy"
    with pytest.raises(StoreError, match=says):
        parse_record(damage.replaced(WHOLE, tuple(path.split(".")), value), WHERE)


@pytest.mark.parametrize("raw", damage.RAW)
def test_numbers_and_texts_beyond_all_measure_are_refused(raw: bytes) -> None:
    for path in (("run",), ("reason",), ("sender", "rusage", "cpu_ns", 1), ("cut", "sender")):
        with pytest.raises(StoreError, match=rf"^{WHERE}: not "):
            parse_record(damage.spliced(WHOLE, path, raw), WHERE)


def test_every_field_says_what_it_is() -> None:
    types: list[type] = [Record, SideCounters, SettingNote, Settings, Proof, ToolReading]
    for kind in (*types, *ENTRIES.values()):
        assert all(described(kind).values())


# plan.json, facts.json and noise.jsonl


def example(heading: str) -> str:
    """The first block of JSON below a heading of docs/records.md."""
    _, _, rest = (ROOT / "docs" / "records.md").read_text().partition(f"\n## {heading}\n")
    return rest.partition("```json\n")[2].partition("```")[0]


PLAN, FACTS = json.loads(example("plan.json")), json.loads(example("facts.json"))
GAUGES = {"load": [0.5, 0.9], "mhz": [[3600], [3590]]}
NOISE = json.loads(example("samples/noise.jsonl")) | {"gauges": GAUGES}
FILES: Mapping[str, tuple[Callable[[Path], object], dict[str, Any]]] = {
    "plan.json": (read_plan, PLAN),
    "facts.json": (read_facts, FACTS),
    "noise.jsonl": (read_noise, NOISE),
}


def written(file: Path, data: bytes) -> Path:
    file.write_bytes(data)
    return file


@pytest.mark.parametrize("name", FILES)
def test_what_docs_records_md_says_is_read(tmp_path: Path, name: str) -> None:
    read, whole = FILES[name]
    assert read(written(tmp_path / name, json.dumps(whole).encode() + b"\n"))


def check(file: Path, data: bytes) -> None:
    read, _ = FILES[file.name]
    refused = damage.refusal(lambda data, where: read(written(file, data)), data, str(file))
    assert not refused or (refused.startswith(f"{file}:") and "; " in refused)


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_damaged_is_an_error_that_names_the_file_or_is_read_still(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    check(tmp_path / name, data.draw(damage.damaged(FILES[name][1])))


# The examples of docs/records.md are what netbench reads


def test_the_record() -> None:
    record = parse_record(example("records.jsonl").encode(), "docs/records.md")
    assert (record.run, record.status, record.settings.moved) == (17, "ok", {})


def test_the_journal_has_every_kind() -> None:
    lines = example("journal.jsonl").replace("\n ", " ").splitlines()  # folded for the page
    entries = [parse_entry(line.encode(), "docs/records.md")[1] for line in lines]
    assert [type(entry) for entry in entries] == list(ENTRIES.values())


def test_the_readings_of_noise_and_profile_runs(tmp_path: Path) -> None:
    (tmp_path / "noise.jsonl").write_text(example("samples/noise.jsonl").replace("\n", "") + "\n")
    (entry,) = read_noise(tmp_path / "noise.jsonl")
    assert entry.kernel == ("snd", "rcv")
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "runs.jsonl").write_text(example("profiles/").replace("\n", "") + "\n")
    (run,) = read_profile_runs(tmp_path)
    assert (run.run, run.status, run.profiles["sender"].unit) == (1, "ok", "ticks")
