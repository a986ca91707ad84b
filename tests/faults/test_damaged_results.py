"""A result that was edited by hand, or damaged by another program: every verb that reads it
names the place.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from netbench import api, campaign
from netbench.base.errors import NetbenchError
from netbench.run import conductor
from tests.support.local import call
from tests.support.unfinished import unfinished

CAMPAIGN = "netbench: 1\nname: d\nverify: off\ntransfer: {duration: 20ms, warmup: 2ms}\nrepeat: {min: 3, max: 3}\nsettings: {tcp_metrics: keep}\n"
DEEP = "[" * 10**5 + "]" * 10**5
CHANGE = {
    **{"time": "2026-03-01T12:00:00.123456Z", "kind": "change", "number": 10**400, "host": "here"},
    **{"boot_id": "", "setting": "tso", "op": "features", "target": ["lo"]},
    **{"value": "off", "before": "on"},
}
# What a line or a file may have is tried in unit/test_record.py and unit/test_journal.py.
DAMAGED: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a record that is not JSON": ("records.jsonl:2", lambda data: data.replace(b'\n{"', b"\n", 1)),
    "a record of another version": (
        "records.jsonl:2",
        lambda data: data.replace(b'\n{"schema":2', b'\n{"schema":9', 1),
    ),
    "a plan that is nested too deep": ("plan.json", lambda data: DEEP.encode()),
    "facts of no host": ("facts.json", lambda data: b'{"schema":2,"hosts":[]}'),
    "a journal of nothing": ("journal.jsonl:1", lambda data: b"{}\n"),
    "a change beyond all numbers": (
        "journal.jsonl:2",
        lambda data: data + json.dumps(CHANGE).encode() + b"\n",
    ),
}


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result that has two runs of three: the third was cut off."""
    path = conductor.start(campaign.parse(CAMPAIGN, "d.yaml"), tmp_path_factory.mktemp("r")).path
    records = path / "records.jsonl"
    records.write_bytes(records.read_bytes()[:-1])
    return path


def damaged(whole: Path, folder: Path, damage: str) -> Path:
    """A copy of a result with this damage."""
    where, change = DAMAGED[damage]
    shutil.copytree(whole, folder)
    unfinished(folder)
    file = folder / where.partition(":")[0]
    data = file.read_bytes()
    file.write_bytes(change(data))
    assert file.read_bytes() != data, "nothing was damaged"
    return folder


def refusals(folder: Path, verbs: Sequence[Callable[[Path], object]]) -> list[str]:
    """The errors with which verbs refuse a result."""
    messages = []
    for verb in verbs:
        try:
            verb(folder)
        except NetbenchError as error:
            messages.append(str(error))
    return messages


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_result_is_an_error_that_names_the_place(
    broken_off: Path, tmp_path: Path, damage: str
) -> None:
    where, _ = DAMAGED[damage]
    folder = damaged(broken_off, tmp_path / "copy", damage)
    messages = refusals(folder, (api.build_report, api.resume))
    assert len(messages) == 2
    if where.startswith("journal"):
        assert refusals(folder, [api.restore]) == [], "it acts on the campaign's state"
        (folder / "id").unlink()
        messages += refusals(folder, [api.restore])
        assert len(messages) == 3
    changed = [message for message in messages if "was changed after" in message]
    name = where.partition(":")[0]
    assert len(changed) == (name in ("journal.jsonl", "plan.json"))
    assert [m for m in messages if (name if m in changed else where) not in m] == []
    assert [message for message in messages if "; " not in message] == [], "what to do"


@pytest.mark.parametrize("verb", ["restore", "resume", "report"])
def test_the_command_line_names_the_place_and_no_defect(
    broken_off: Path, tmp_path: Path, verb: str
) -> None:
    folder = damaged(broken_off, tmp_path / "copy", "a journal of nothing")
    (folder / "id").unlink()
    done = call(verb, folder)
    assert done.returncode == 1
    assert "journal.jsonl:1: " in done.stderr
    assert "defect" not in done.stderr
