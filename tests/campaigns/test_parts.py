"""Parts of a campaign that several controllers run, and the result that they are merged into."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign, load
from netbench.fleet.parts import part_of
from netbench.result.journal import Ended, Journal, LeftChanged, Why
from netbench.result.store import Store
from netbench.run import conductor
from tests.support.local import Command, call
from tests.support.running import stored_records
from tests.support.unfinished import unfinished

TEXT = """\
netbench: 1
name: fleet
verify: off
hosts: {a: local, b: local, c: local, d: local}
pairs: [{sender: a, receiver: a}, {sender: b, receiver: b}, {sender: c, receiver: c}, {sender: d, receiver: d}]
transfer: {duration: 20ms, warmup: 5ms, sample: 10ms, congestion: cubic}
sweep: {send: [write, sendfile]}
compare: {factor: send, baseline: write, control: true}
repeat: {min: 2, max: 2}
"""
PARTS = 4


def timeless(record: Mapping[str, Any]) -> dict[str, Any]:
    """What of a record does not depend on when it was measured."""
    return {
        key: sorted(value) if key in ("sender", "receiver", "proof") else value
        for key, value in record.items()
        if key not in ("started", "settings")
    } | {"settings": [sorted(record["settings"][side]) for side in ("sender", "receiver")]}


def run_part(number: int, text: str, results: Path) -> Path:
    """As `run C --part K/4`, which makes a report, too."""
    return conductor.start(part_of(campaign.parse(text, "fleet.yaml"), number, PARTS), results).path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parts")


@pytest.fixture(scope="module")
def parts(folder: Path) -> list[Path]:
    return [run_part(number, TEXT, folder / "parts") for number in range(1, PARTS + 1)]


@pytest.fixture(scope="module")
def merged(folder: Path, parts: Sequence[Path]) -> Path:
    done = call("merge", *reversed(parts), folder / "merged")
    assert done.returncode == 0, done.stderr
    assert "hosts of one kernel" in " ".join(done.stderr.split())
    assert "name a new folder, last" in call("merge", *parts).stderr
    return Path(done.stdout.splitlines()[-1])


def test_parts_merged_have_the_records_of_one_run(folder: Path, merged: Path) -> None:
    whole = conductor.start(campaign.parse(TEXT, "fleet.yaml"), folder / "whole").path
    expected, found = stored_records(whole), stored_records(merged)
    assert len(found) == 4 * 3 * 2
    assert [timeless(record) for record in found] == [timeless(record) for record in expected]
    planned, joined = (json.loads((each / "plan.json").read_text()) for each in (whole, merged))
    assert {k: v for k, v in joined.items() if k != "parts"} == planned
    facts, both = (
        json.loads((each / "facts.json").read_text())["hosts"] for each in (whole, merged)
    )
    for host, entries in facts.items():
        assert [e["from_run"] for e in both[host]] == [e["from_run"] for e in entries]
    assert both.keys() == facts.keys()
    assert call("report", merged).returncode == 0


def test_each_run_keeps_its_samples_and_each_part_what_it_was(
    merged: Path, parts: Sequence[Path]
) -> None:
    def samples(result: Path) -> dict[str, bytes]:
        files = result / "samples"
        return {
            r["started"]: (files / f"{r['run']:06d}.jsonl").read_bytes()
            for r in stored_records(result)
        }

    assert samples(merged) == {k: v for part in parts for k, v in samples(part).items()}
    for number, part in enumerate(parts, 1):
        for name in ("plan.json", "journal.jsonl", "log.txt"):
            kept = merged / "parts" / str(number) / name
            assert kept.read_bytes() == (part / name).read_bytes()
    log = (merged / "log.txt").read_text().splitlines()
    assert log == sorted(log)
    assert sum(" part 3/4: done after 6 runs" in line for line in log) == 1
    assert len(load(merged).table("runs")) == 4 * 3 * 2


def test_what_a_part_left_changed_is_told_of_the_whole(
    parts: Sequence[Path], tmp_path: Path
) -> None:
    part = shutil.copytree(parts[1], tmp_path / parts[1].name)
    host = json.loads((part / "plan.json").read_text())["pairs"][0].partition(">")[0]
    left = LeftChanged(host, {"net.ipv4.tcp_sack": ("1", "0")})
    Journal(part / "journal.jsonl").write(left)
    assert call("merge", parts[0], part, *parts[2:], tmp_path / "m").returncode == 0
    assert load(tmp_path / "m").source.result.left_changed == [left]


def test_a_merged_result_is_finished_and_nothing_in_it_is_acted_on(merged: Path) -> None:
    assert call("resume", merged).returncode == 0
    assert not (merged / "id").exists()
    done = call("merge", merged, merged.parent / "again")
    assert (done.returncode, "is merged already" in done.stderr) == (2, True)


def test_what_is_missing_is_named_and_is_an_error(folder: Path, parts: Sequence[Path]) -> None:
    killed = folder / "killed"
    shutil.copytree(parts[0], killed)
    journal = (killed / "journal.jsonl").read_text().splitlines(keepends=True)
    (killed / "journal.jsonl").write_text("".join(journal[:-1]))
    with (killed / "records.jsonl").open("a") as records:
        records.write('{"schema":1,"run":7,"ce')
    done = call("merge", killed, parts[1], parts[3], folder / "holes")
    said = " ".join(done.stderr.split())
    assert done.returncode == 1
    assert "part 3/4 is missing (c>c): `run C --part 3/4` of the campaign fleet" in said
    assert f"part 1/4 is not finished (it runs, or was killed): `resume {killed}`" in said
    assert len(stored_records(folder / "holes")) == 3 * 3 * 2
    assert call("report", folder / "holes").returncode == 0
    again = call("resume", folder / "holes")
    assert again.returncode == 1
    assert "1/4 (killed), 3/4 (none)" in " ".join(again.stderr.split())


def ended_late(finished: Path, part: Path, why: Why | None) -> Path:
    """The same, killed or interrupted after its last run, or with settings that stayed."""
    shutil.copytree(finished, part)
    if why is None:
        journal = part / "journal.jsonl"
        journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))
    store = Store.open(unfinished(part))
    store.lock()
    if why:
        store.journal.write(Ended(why))
    store.close()
    return part


@pytest.mark.parametrize("why", [None, "lost"])
def test_a_part_that_has_all_runs_and_did_not_end_well_is_ended_by_resume(
    tmp_path: Path, parts: Sequence[Path], why: Why | None
) -> None:
    part = ended_late(parts[1], tmp_path / "part", why)
    records = stored_records(part)
    assert len(records) == 6
    holes = call("merge", parts[0], part, *parts[2:], tmp_path / "holes")
    assert (holes.returncode, f"`resume {part}`" in " ".join(holes.stderr.split())) == (1, True)
    done = call("resume", part, "--plain")
    assert done.returncode == 0, done.stderr
    assert stored_records(part) == records
    merged = call("merge", parts[0], part, *parts[2:], tmp_path / "merged")
    assert merged.returncode == 0, merged.stderr
    again = call("resume", part, "--plain")
    assert "is finished; nothing to do" in " ".join((again.stdout + again.stderr).split())


def test_parts_that_do_not_belong_together_are_refused(
    netbench: Command, folder: Path, parts: Sequence[Path]
) -> None:
    def refusal(*words: Any) -> str:
        done = netbench("merge", *words, "nowhere")
        assert done.returncode == 2, done.stderr
        assert not Path("nowhere").exists()
        return " ".join(done.stderr.split())

    twice = refusal(parts[0], parts[1], parts[0])
    assert f"{parts[0]} and {parts[0]} are both part 1/4; name one of them" in twice
    longer = run_part(2, TEXT.replace("20ms", "21ms"), folder / "other")
    assert "are not of one campaign: `cells` differs" in refusal(parts[0], longer)
    assert "export R... F" not in refusal()
    other = [shutil.copytree(part, folder / f"kernel of {part.name}") for part in parts[:2]]
    for rev, part in enumerate(other):
        kernel = f"kernels: {{patched: {{git: {part}, rev: v{rev}}}}}\nsweep: {{kernel: [patched], "
        text = (part / "campaign.yaml").read_text()
        (part / "campaign.yaml").write_text(text.replace("sweep: {", kernel))
    assert "not of one campaign: `kernels` differs" in refusal(*other)
    copied = folder / "copied"
    shutil.copytree(parts[0], copied)
    with (copied / "records.jsonl").open("a") as records:
        records.write((copied / "records.jsonl").read_text().splitlines(keepends=True)[0])
    assert "records.jsonl:7: run 1 is there twice" in refusal(copied, parts[1])


def test_facts_that_changed_in_a_part_hold_for_the_same_runs(
    folder: Path, parts: Sequence[Path]
) -> None:
    """A block in which they changed, of which the plan's order is another than that of the runs."""
    part, first_after = folder / "changed", 2
    shutil.copytree(parts[3], part)
    facts = json.loads((part / "facts.json").read_text())
    entry = facts["hosts"]["d"][0]
    changed = entry | {"from_run": first_after, "facts": entry["facts"] | {"driver": "other"}}
    facts["hosts"]["d"].append(changed)
    (part / "facts.json").write_text(json.dumps(facts))
    own = stored_records(part)
    own[0], own[2] = ({**record, "run": run} for record, run in ((own[2], 1), (own[0], 3)))
    (part / "records.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in own))
    call("merge", *parts[:3], part, folder / "with_change")
    entries = json.loads((folder / "with_change/facts.json").read_text())["hosts"]["d"]
    assert [e["from_run"] == 1 for e in entries] == [True, False]
    merged = stored_records(folder / "with_change")
    since = {r["run"] for r in own if r["run"] >= first_after}
    found = {
        r["started"] for r in merged if r["pair"] == "d>d" and r["run"] >= entries[1]["from_run"]
    }
    assert found == {r["started"] for r in own if r["run"] in since}
