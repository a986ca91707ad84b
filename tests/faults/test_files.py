"""Sources, sinks and result folders that go wrong: permissions, full disks, files cut short."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign
from netbench.base.errors import RequestError
from netbench.engine.own_engine import local
from netbench.engine.worker import Worker
from netbench.hosts.local import LocalChannel
from netbench.model import Host
from netbench.plan.plan import Unit
from netbench.report.build import build
from netbench.result import campaign_state
from netbench.run import conductor, ledger
from netbench.run.ends import Ends
from netbench.run.runner import Runner
from tests.support.disks import ext4_on, tmpfs_on
from tests.support.engine_pair import WORKER
from tests.support.local import netbench_argv, ran
from tests.support.running import (
    BASE,
    LONG,
    SHORT,
    Running,
    as_anyone,
    resumed,
    run,
    stored_records,
)
from tests.support.unfinished import unfinished

FROM_FILE = [
    name
    for name, method in local().send.items()
    if method.has("from_file") and method.has("delivers")
]
TO_FILE = [
    name
    for name, method in local().receive.items()
    if method.has("to_file") and method.has("delivers")
]


def powerless(host: Host) -> LocalChannel:
    """Workers that the permissions of files bind."""
    return LocalChannel(host.name, as_anyone(WORKER))


def mount(*words: str | Path) -> None:
    subprocess.run(["mount", *words], check=True)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell is given up after its first failure: each takes a second."""
    monkeypatch.setattr(ledger, "FAILURES_IN_A_ROW", 1)


# Sources


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, ": No such file or directory; name a file that exists and can be read"),
        (Path.touch, " is empty; name a file that holds data"),
        (Path.mkdir, " is neither a file nor a block device; name a file or a block device"),
    ],
)
def test_a_source_that_cannot_be_sent_is_refused_before_anything_is_run(
    tmp_path: Path, make: Callable[[Path], None], says: str
) -> None:
    make(tmp_path / "source")
    text = f"transfer: {{send: sendfile, source: {{file: {tmp_path}/source}}, {SHORT}}}\n"
    with pytest.raises(RequestError, match=f"error: here: open source: {tmp_path}/source{says}"):
        run(text, tmp_path / "r")
    assert not (tmp_path / "r").exists()


@pytest.mark.usefixtures("hasty")
def test_a_source_that_may_not_be_read_is_refused_by_check_and_by_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "closed" / ("a long name" * 20) / "source"
    source.parent.mkdir(parents=True)
    source.write_bytes(b"x" * 4096)
    source.chmod(0)
    text = f"transfer: {{send: sendfile, source: {{file: {source}}}, {SHORT}}}\n"
    says = f"open source: {tmp_path}/closed/a long name.*: Permission denied; name a file that"
    with pytest.raises(RequestError, match=f"error: here: {says}"):
        run(text, tmp_path / "r", powerless)
    monkeypatch.setattr(conductor, "check", lambda *_: [])
    record, *_ = run(text, tmp_path / "r", powerless)
    assert record["status"] == "failed"
    assert re.match(f"here: {says}", record["reason"]), "the path is cut, if anything is"


def test_a_source_shorter_than_a_chunk_is_sent_repeatedly(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"x" * 1001)
    short = f"transfer: {{source: {{file: {tmp_path}/short}}, chunk: 64K, {SHORT}}}\n"
    for record in run(f"{short}sweep: {{send: [{', '.join(FROM_FILE)}]}}\n", tmp_path / "r"):
        assert record["status"] == "ok", record
        opening, closing = record["sender"]["flow"]["bytes"]
        assert (closing[0] - opening[0]) % 1001 == 0, "whole files, one a step"


# Sinks


@pytest.mark.usefixtures("hasty")
def test_a_sink_whose_disk_fills_up(small_disk: Path, tmp_path: Path) -> None:
    sink = f"transfer: {{sink: {{file: {small_disk}/out}}, {SHORT}}}\n"
    found = run(f"{sink}sweep: {{receive: [{', '.join(TO_FILE)}]}}\n", tmp_path)
    assert {record["factors"]["receive"] for record in found} == {*TO_FILE}
    for record in found:
        assert record["status"] == "failed"
        assert f"{small_disk}/out: No space left on device; free some space" in record["reason"]


@pytest.mark.usefixtures("hasty")
@pytest.mark.root
@pytest.mark.parametrize("fsync", ["window", "after"])
def test_a_disk_that_fails_under_fsync_fails_the_run(tmp_path: Path, fsync: str) -> None:
    """A disk image in too small a file system: what the page cache took does not reach it."""
    with (
        tmpfs_on(tmp_path / "disk", "12m") as folder,
        ext4_on(folder / "image", tmp_path / "ext4") as disk,
    ):
        text = f"transfer: {{sink: {{file: {disk}/out}}, bytes: 24M, fsync: {fsync}}}\n"
        record, *_ = run(text, tmp_path / "r")
    assert record["status"] == "failed"
    assert record["reason"].startswith(f"here: fsync: {disk}/out: ")


@pytest.mark.usefixtures("hasty")
def test_no_stream_overwrites_an_existing_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first stream's file is the campaign's own by then; and what is refused is not begun."""
    sink, precious = tmp_path / "out", tmp_path / "out.1"
    precious.write_text("precious")
    text = f"sweep: {{streams: [1, 2]}}\ntransfer: {{sink: {{file: {sink}}}, bytes: 10000, warmup: 0s}}\n"
    says = f"sink: {precious} exists and is a file; choose another path, or write .*overwrite: true"
    with pytest.raises(RequestError, match=says):
        run(text, tmp_path / "r")
    assert not sink.exists()
    monkeypatch.setattr(conductor, "check", lambda *_: [])
    found = {record["factors"]["streams"]: record for record in run(text, tmp_path / "r")}
    assert (found["1"]["status"], found["2"]["status"]) == ("ok", "failed")
    assert f"{precious} exists and is a file" in found["2"]["reason"]
    assert precious.read_text() == "precious"
    again = run(text.replace("out", "other"), tmp_path / "r")
    assert {record["status"] for record in again} == {"ok"}, "its own files it writes again"
    asked = run(text.replace("}, bytes", ", overwrite: true}, bytes"), tmp_path / "r")
    assert {record["status"] for record in asked} == {"ok"}
    assert precious.stat().st_size == 5000


REPLACEMENTS: Mapping[str, Callable[[Path, Path], None]] = {
    "symbolic link": lambda sink, precious: sink.symlink_to(precious),
    "another file": lambda sink, precious: sink.hardlink_to(precious),
}


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("says", "overwrite"), [("symbolic link", ", overwrite: true"), ("another file", "")]
)
def test_what_replaced_a_sink_between_runs_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, overwrite: str
) -> None:
    """The folder of a sink may be anybody's, and the worker may be root."""
    sink, precious = tmp_path / "out", tmp_path / "precious"
    precious.write_text("precious")
    honest = Runner._measure

    def measure(self: Runner, unit: Unit, ends: Ends, number: int, start: Any) -> Any:
        if number == 2:
            sink.unlink()
            REPLACEMENTS[says](sink, precious)
        return honest(self, unit, ends, number, start)

    monkeypatch.setattr(Runner, "_measure", measure)
    text = f"sweep: {{chunk: [4K, 8K]}}\ntransfer: {{sink: {{file: {sink}{overwrite}}}, bytes: 10000, warmup: 0s}}\n"
    first, second, *_ = run(text, tmp_path / "r")
    assert (first["status"], second["status"]) == ("ok", "failed")
    assert f"{sink} is a" in second["reason"]
    assert says in second["reason"]
    assert precious.read_text() == "precious"


@pytest.mark.root
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("make", "overwrite", "there", "says"),
    [
        (Path.symlink_to, "", False, "is a symbolic link"),
        (Path.symlink_to, ", overwrite: true", True, "is a symbolic link"),
        (lambda sink, _: sink.mkdir(), ", overwrite: true", True, "is a directory; name a file"),
        (
            lambda sink, _: os.mknod(sink, 0o600 | 0o060000, os.makedev(1, 0)),
            *("", True, "is a block device; choose another path"),
        ),
    ],
)
def test_a_sink_follows_no_symbolic_link(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path, Path], object],
    overwrite: str,
    there: bool,
    says: str,
) -> None:
    """Nor is it another thing than a file: check and worker refuse it, and never open it."""
    sink, target = tmp_path / "out", tmp_path / "target"
    make(sink, target)
    if there:
        target.write_text("precious")
    text = f"transfer: {{sink: {{file: {sink}{overwrite}}}, {SHORT}}}\n"
    with pytest.raises(RequestError, match=f"sink: {sink} {says}|device, and exists|out exists"):
        run(text, tmp_path / "r")
    monkeypatch.setattr(conductor, "check", lambda *_: [])
    record, *_ = run(text, tmp_path / "r")
    assert (record["status"], says in record["reason"]) == ("failed", True), record["reason"]
    assert (target.read_text() if target.exists() else None) == ("precious" if there else None)


def test_dev_null_is_a_sink_that_is_not_verified(tmp_path: Path) -> None:
    """Nor is it after a resume: a verification is made in the first block."""
    text = BASE.replace("off", "on").replace("min: 1, max: 1", "min: 3, max: 3")
    text += f"transfer: {{sink: {{file: /dev/null}}, streams: 2, {SHORT}}}\n"
    folder = conductor.start(campaign.parse(text, "f.yaml"), tmp_path / "r").path
    why = "the sink /dev/null keeps nothing that could be read again"
    assert {record["unverified"] for record in stored_records(folder)} == {why}
    (caution,) = (c for c in build(folder).source.cautions if c.kind == "unverified")
    assert caution.evidence == why
    assert f"not verified: {why}" in (folder / "log.txt").read_text()
    assert not Path("/dev/null.1").exists()
    assert "made_sink" not in (folder / "journal.jsonl").read_text()
    assert resumed(unfinished(folder, 1)) == [1, 2, 3]
    assert {record["unverified"] for record in stored_records(folder)} == {why}


@pytest.mark.parametrize("made", [True, False])
def test_a_sink_survives_an_interrupt_of_its_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    """Resumed, the campaign may write the file that it made itself, and none from elsewhere."""
    sink = tmp_path / "sink"
    text = BASE + f"transfer: {{sink: {{file: {sink}}}, bytes: 100000}}\n"

    def interrupted(worker: Worker) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Worker, "go", interrupted)
        first = conductor.start(campaign.parse(text, "f.yaml"), tmp_path / "r")
    assert (first.why, sink.exists()) == ("interrupted", True)
    if made:
        conductor.resume(first.path, campaign.parse(text, "f.yaml"))
        assert sink.stat().st_size == 100000
    else:
        state = campaign_state.find(first.path)
        assert state
        for journal in (state.journal, first.path / "journal.jsonl"):
            journal.write_text("")
        with pytest.raises(RequestError, match=r"sink: .* exists"):
            conductor.resume(first.path, campaign.parse(text, "f.yaml"))


# Results

SAFE = "`resume` the campaign: all records are safe"


def filled(folder: Path) -> Path:
    """A file that takes all of a disk's space."""
    command = ["dd", "if=/dev/zero", f"of={folder}/filler", "bs=4k"]
    subprocess.run(command, check=False, capture_output=True)
    return folder / "filler"


@pytest.mark.parametrize(
    "hit", ["records.jsonl", pytest.param("samples", marks=pytest.mark.slow), "journal.jsonl"]
)
def test_a_results_disk_that_fills_up_in_mid_campaign_loses_nothing(
    small_disk: Path, tmp_path: Path, hit: str
) -> None:
    """Which file meets the full disk first is arranged: the others have room of their own."""
    campaign = Running(tmp_path, small_disk, LONG + "settings: {tcp_metrics: keep}\n")
    campaign.await_records(3)
    samples = campaign.folder / "samples"
    if hit != "samples":
        mount("-t", "tmpfs", "tmpfs", samples)
    if hit != "records.jsonl":
        reserve = "fallocate --keep-size --length 256K".split()
        subprocess.run([*reserve, campaign.folder / "records.jsonl"], check=True)
    filler = filled(small_disk)
    code, said = campaign.end()
    assert code == 1
    assert f"netbench: cannot write {campaign.folder / hit}" in said
    assert f"No space left on device; free some space there, then {SAFE}" in said
    kept = stored_records(campaign.folder)
    assert [r["run"] for r in kept] == list(range(1, len(kept) + 1))
    assert (len(kept) == 40) == (hit == "journal.jsonl")
    assert list(samples.glob(".*")) == []
    filler.unlink()
    if hit != "samples":
        subprocess.run(["umount", samples], check=True)
    assert resumed(campaign.folder) == list(range(1, 41))
    assert stored_records(campaign.folder)[: len(kept)] == kept


READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'


def on_read_only(folder: Path, words: list[str | Path]) -> subprocess.CompletedProcess[str]:
    """Run netbench where a folder is mounted read-only, for it alone."""
    argv = ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", str(folder), *netbench_argv(words)]
    return ran(argv, cwd=folder.parent)


@pytest.mark.root
@pytest.mark.parametrize("why", ["Permission denied", "Read-only file system"])
def test_a_results_folder_that_cannot_be_written_is_a_wrong_request(
    tmp_path: Path, why: str
) -> None:
    (tmp_path / "d.yaml").write_text(LONG)
    folder = tmp_path / "closed"
    folder.mkdir()
    words: list[str | Path] = ["run", tmp_path / "d.yaml", "--results", folder]
    if why == "Permission denied":
        folder.chmod(0o555)
        done = ran(as_anyone(netbench_argv(words)))
    else:
        done = on_read_only(folder, words)
    assert (done.returncode, done.stdout) == (2, "")
    says = f"{why}; make it writable, or choose another place with --results"
    assert done.stderr.splitlines()[-1].startswith("netbench: cannot create the result folder")
    assert done.stderr.splitlines()[-1].endswith(says)
    assert list(folder.iterdir()) == []


@pytest.mark.root
def test_a_result_on_a_read_only_disk_is_reported_but_not_resumed(tmp_path: Path) -> None:
    conclusion = conductor.start(campaign.parse(LONG.replace("40", "3"), "d.yaml"), tmp_path / "r")
    records = unfinished(conclusion.path, 2) / "records.jsonl"
    before = records.read_bytes()
    report = on_read_only(tmp_path / "r", ["report", conclusion.path])
    assert (report.returncode, report.stderr) == (0, "")
    assert "throughput" in report.stdout
    resume = on_read_only(tmp_path / "r", ["resume", conclusion.path])
    assert resume.returncode == 1
    says = "records.jsonl: Read-only file system; make it writable, then `resume` the campaign"
    assert says in resume.stderr
    assert records.read_bytes() == before


@pytest.mark.root
def test_a_file_of_another_account_is_no_sink_nor_is_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    os.mkfifo(tmp_path / "fifo")
    for path in tmp_path / "out", tmp_path / "fifo":
        os.chown(path, 1234, 1234)
        text = f"transfer: {{sink: {{file: {path}, overwrite: true}}, bytes: 1M, warmup: 0s}}\n"
        with pytest.raises(RequestError, match=f"{path} is a file of another account"):
            run(text, tmp_path / "r")


@pytest.mark.root
@pytest.mark.parametrize("verb", ["transfer", "export"])
def test_without_a_place_for_scratch_files_a_verb_says_what_to_do(
    tmp_path: Path, verb: str
) -> None:
    result = conductor.start(campaign.parse(LONG.replace("40", "3"), "d.yaml"), tmp_path).path
    words = {
        "transfer": ["transfer", "duration=20ms"],
        "export": ["export", "--table", "samples", result, "samples.csv"],
    }
    closed = [f"mount --bind {p} {p}; mount -o remount,bind,ro {p}" for p in ("/tmp", "/var/tmp")]
    script = "; ".join((*closed, "unset TMPDIR", "cd /proc", 'exec "$@"'))
    done = ran(["unshare", "--mount", "sh", "-ec", script, "sh", *netbench_argv(words[verb])])
    assert done.returncode == 2, done.stderr
    assert "'/var/tmp', '/usr/tmp', '/proc']; make room there, or set TMPDIR" in done.stderr
