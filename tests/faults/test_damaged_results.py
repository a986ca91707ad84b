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


def a_line(change: Callable[[str], str]) -> Callable[[bytes], bytes]:
    """Change the second line of a file."""

    def changed(data: bytes) -> bytes:
        first, second, *others = data.decode().splitlines(keepends=True)
        return "".join([first, change(second), *others]).encode()

    return changed


CHANGE = {
    "time": "2026-03-01T12:00:00.123456Z",
    "kind": "change",
    "number": 1,
    "host": "here",
    "boot_id": "",
    "setting": "tso",
    "op": "features",
    "target": ["lo"],
    "value": "off",
    "before": "on",
}


def entry(changes: Mapping[str, object], without: str = "") -> Callable[[bytes], bytes]:
    """Add an entry to a journal, with other values and without a key."""
    kept = {key: value for key, value in (CHANGE | changes).items() if key != without}
    return lambda data: data + json.dumps(kept).encode() + b"\n"


DAMAGES: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a record that is not JSON": ("records.jsonl:2", a_line(lambda line: line[5:])),
    "a record that is not UTF-8": (
        "records.jsonl:2",
        lambda data: data.replace(b"ok", b"\xff\xfe", 2).replace(b"\xff\xfe", b"ok", 1),
    ),
    "a blank line": ("records.jsonl:2", a_line(lambda line: "\n" + line)),
    "a list": ("records.jsonl:2", a_line(lambda line: "[1]\n")),
    "a record of nothing": ("records.jsonl:2", a_line(lambda line: "{}\n")),
    "a record of another version": (
        "records.jsonl:2",
        a_line(lambda line: line.replace('"schema":2', '"schema":9')),
    ),
    "a record without a cell": (
        "records.jsonl:2",
        a_line(lambda line: line.replace('"cell"', '"sell"')),
    ),
    "a run that is no number": (
        "records.jsonl:2",
        a_line(lambda line: line.replace('"run":2', '"run":"two"')),
    ),
    "a block of the far future": (
        "records.jsonl:2",
        a_line(lambda line: line.replace('"block":1', '"block":1000000000000')),
    ),
    "a side that is a word": (
        "records.jsonl:2",
        a_line(lambda line: line.replace('"sender":{', '"sender":"x","was":{')),
    ),
    "a record that is nested too deep": (
        "records.jsonl:2",
        a_line(lambda line: line.replace('"reason":""', '"reason":' + "[" * 10**5 + "]" * 10**5)),
    ),
    "a counter of 10^400": (
        "records.jsonl:2",
        a_line(lambda line: re.sub(r'"rusage":{"\w+":\[\[?\d', lambda m: m[0] + "0" * 400, line)),
    ),
    "a proof of 10^400": (
        "records.jsonl:2",
        a_line(lambda line: re.sub(r'"bytes":\[\[?\d+', lambda m: m[0] + "0" * 400, line)),
    ),
    "a block of 10^30": (
        "records.jsonl:2",
        a_line(lambda line: line.replace('"block":1', f'"block":{10**30}')),
    ),
    "a time of 1e999": (
        "records.jsonl:2",
        a_line(lambda line: re.sub(r'"time_ns":\[\d+', '"time_ns":[1e999', line)),
    ),
    "a plan that is nested too deep": ("plan.json", lambda data: b"[" * 10**5 + b"]" * 10**5),
    "a plan with a nest in it": (
        "plan.json",
        lambda data: data.replace(
            b'"name":', b'"nest":' + b"[" * 900 + b"]" * 900 + b',"name":', 1
        ),
    ),
    "a plan of 10^400 runs": (
        "plan.json",
        lambda data: re.sub(rb'"max": 3', b'"max": 1' + b"0" * 400, data),
    ),
    "facts that are nested too deep": ("facts.json", lambda data: b"[" * 10**5 + b"]" * 10**5),
    "a plan that is not JSON": ("plan.json", lambda data: data[1:]),
    "a plan that is a list": ("plan.json", lambda data: b"[]"),
    "a plan without cells": ("plan.json", lambda data: data.replace(b'"cells"', b'"sells"')),
    "a plan without repeat": ("plan.json", lambda data: data.replace(b'"repeat"', b'"repeal"')),
    "facts that are not JSON": ("facts.json", lambda data: data[1:]),
    "facts that are a list": ("facts.json", lambda data: b"[]"),
    "facts without a boot": ("facts.json", lambda data: data.replace(b'"boot":', b'"boat":')),
    "facts of no host": ("facts.json", lambda data: b'{"schema":2,"hosts":[]}'),
    "a journal that is not text": ("journal.jsonl:1", lambda data: b"\xff\n"),
    "a journal of lists": ("journal.jsonl:1", lambda data: b'["ended"]\n'),
    "a journal of nothing": ("journal.jsonl:1", lambda data: b"{}\n"),
    "a journal that is nested too deep": ("journal.jsonl:1", lambda data: b"[" * 10**5 + b"\n"),
    "an entry without its kind": ("journal.jsonl:2", entry({"kind": "change"}, "kind")),
    "an entry of an unknown kind": ("journal.jsonl:2", entry({"kind": "chance"})),
    "a change without a host": ("journal.jsonl:2", entry({}, "host")),
    "a change that is a text": ("journal.jsonl:2", entry({"number": "1"})),
    "a change beyond all numbers": ("journal.jsonl:2", entry({"number": 10**400})),
    "a target that is a text": ("journal.jsonl:2", entry({"target": "lo"})),
    "a before that is none": ("journal.jsonl:2", entry({"before": None})),
    "half a character": ("journal.jsonl:2", entry({"value": "\ud800"})),
    "a restored that is a number": (
        "journal.jsonl:2",
        lambda data: data + b'{"time":"","kind":"restored","numbers":1,"host":"here"}\n',
    ),
    "an original kernel of another version": (
        "journal.jsonl:2",
        lambda data: data + b'{"time":"","original_kernel":{"release":"6.1"},"host":"here"}\n',
    ),
    "a campaign that is not text": ("campaign.yaml", lambda data: b"\xff"),
    "a campaign that is none": ("campaign.yaml", lambda data: b"[]\n"),
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
@pytest.mark.parametrize("damage", ["a journal of nothing", "a journal that is nested too deep"])
def test_the_command_line_names_the_place_and_no_defect(
    broken_off: Path, tmp_path: Path, verb: str, damage: str
) -> None:
    folder = damaged(broken_off, tmp_path / "copy", damage)
    (folder / "id").unlink()
    done = call(verb, folder)
    assert done.returncode == 1
    assert "journal.jsonl:1: " in done.stderr
    assert "defect" not in done.stderr
