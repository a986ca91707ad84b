"""A result that was edited by hand, or damaged by another program: every verb that reads it
names the place.
"""

from __future__ import annotations

import json
import re
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
RESUME_ALONE = (
    "a block of the far future",
    "a campaign that is not text",
    "a campaign that is none",
)  # reports make do with these


def second(change: Callable[[str], str]) -> Callable[[bytes], bytes]:
    """Change the second line of a file."""

    def changed(data: bytes) -> bytes:
        first, second, *others = data.decode().splitlines(keepends=True)
        return "".join([first, change(second), *others]).encode()

    return changed


CHANGE = {
    **{"time": "2026-03-01T12:00:00.123456Z", "kind": "change", "number": 1, "host": "here"},
    **{"boot_id": "", "setting": "tso", "op": "features", "target": ["lo"]},
    **{"value": "off", "before": "on"},
}


def entry(**changes: object) -> Callable[[bytes], bytes]:
    """Add an entry to a journal, with other values."""
    return lambda data: data + json.dumps(CHANGE | changes).encode() + b"\n"


DEEP = "[" * 10**5 + "]" * 10**5
NEST = b'"nest":' + b"[" * 900 + b"]" * 900 + b',"name":'
# What a line or a file may have is tried in test_record.py, test_journal.py and test_result_files.py.
DAMAGED: Mapping[str, Mapping[str, Callable[[bytes], bytes]]] = {
    "records.jsonl:2": {
        "a record that is not JSON": second(lambda line: line[5:]),
        "a record of another version": second(
            lambda line: line.replace('"schema":2', '"schema":9')
        ),
        "a block of the far future": second(
            lambda line: line.replace('"block":1', '"block":1000000000000')
        ),
        "a counter of 10^400": second(
            lambda line: re.sub(r'"rusage":{"\w+":\[\[?\d', lambda m: m[0] + "0" * 400, line)
        ),
    },
    "plan.json": {
        "a plan with a nest in it": lambda data: data.replace(b'"name":', NEST, 1),
        "a plan of 10^400 runs": lambda data: data.replace(b'"max": 3', b'"max": 1' + b"0" * 400),
    },
    "facts.json": {
        "facts that are nested too deep": lambda data: DEEP.encode(),
        "facts of no host": lambda data: b'{"schema":2,"hosts":[]}',
    },
    "journal.jsonl:1": {
        "a journal that is not text": lambda data: b"\xff\n",
        "a journal of nothing": lambda data: b"{}\n",
    },
    "journal.jsonl:2": {
        "a change beyond all numbers": entry(number=10**400),
        "half a character": entry(value="\ud800"),
    },
    "campaign.yaml": {
        "a campaign that is not text": lambda data: b"\xff",
        "a campaign that is none": lambda data: b"[]\n",
    },
}
DAMAGES = {name: (where, act) for where, rows in DAMAGED.items() for name, act in rows.items()}


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result that has two runs of three: the third was cut off."""
    path = conductor.start(campaign.parse(CAMPAIGN, "d.yaml"), tmp_path_factory.mktemp("r")).path
    records = path / "records.jsonl"
    records.write_bytes(records.read_bytes()[:-1])
    return path


def damaged(whole: Path, folder: Path, damage: str) -> Path:
    """A copy of a result with this damage."""
    where, change = DAMAGES[damage]
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


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_result_is_an_error_that_names_the_place(
    broken_off: Path, tmp_path: Path, damage: str
) -> None:
    where, _ = DAMAGES[damage]
    folder = damaged(broken_off, tmp_path / "copy", damage)
    messages = refusals(folder, (api.build_report, api.resume))
    assert len(messages) == (1 if damage in RESUME_ALONE else 2)
    if where.startswith(("journal", "campaign")):
        assert refusals(folder, [api.restore]) == [], "it acts on the campaign's state"
        (folder / "id").unlink()
        messages += refusals(folder, [api.restore])
        assert len(messages) == (2 if damage in RESUME_ALONE else 3)
    changed = [message for message in messages if "was changed after" in message]
    name = where.partition(":")[0]
    assert len(changed) == (name in ("journal.jsonl", "plan.json", "campaign.yaml"))
    assert [m for m in messages if (name if m in changed else where) not in m] == []
    if not where.startswith("campaign"):
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
