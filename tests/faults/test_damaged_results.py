"""A result that somebody has edited, or that another program has damaged: every verb that reads it
names the place.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from netbench import api, campaign
from netbench.conductor import conductor
from netbench.errors import NetbenchError

CAMPAIGN = "netbench: 1\nname: d\nverify: off\ntransfer: {duration: 20ms, warmup: 2ms}\nrepeat: {min: 3, max: 3}\n"
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
    "a plan that is not JSON": ("plan.json", lambda data: data[1:]),
    "a plan that is a list": ("plan.json", lambda data: b"[]"),
    "a plan without cells": ("plan.json", lambda data: data.replace(b'"cells"', b'"sells"')),
    "a plan without repeat": ("plan.json", lambda data: data.replace(b'"repeat"', b'"repeal"')),
    "facts that are not JSON": ("facts.json", lambda data: data[1:]),
    "facts that are a list": ("facts.json", lambda data: b"[]"),
    "facts without a boot": ("facts.json", lambda data: data.replace(b'"boot":', b'"boat":')),
    "facts of no host": ("facts.json", lambda data: b'{"schema":2,"hosts":[]}'),
    "a journal that is not text": ("journal.jsonl", lambda data: b'\xff"ended"\n'),
    "a journal of lists": ("journal.jsonl", lambda data: b'["ended"]\n'),
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


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_result_is_an_error_that_names_the_place(
    broken_off: Path, tmp_path: Path, damage: str
) -> None:
    where, change = DAMAGES[damage]
    folder = tmp_path / "copy"
    shutil.copytree(broken_off, folder)
    file = folder / where.partition(":")[0]
    whole = file.read_bytes()
    file.write_bytes(change(whole))
    assert file.read_bytes() != whole, "nothing was damaged"
    said = []
    for verb in (api.build_report, api.resume):
        try:
            verb(folder)
        except NetbenchError as error:
            said.append(str(error))
    assert len(said) == (1 if damage in RESUME_ALONE else 2)
    assert [line for line in said if where not in line] == []
