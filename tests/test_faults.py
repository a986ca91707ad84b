"""What goes wrong in real life, with the real thing: files, disks, peers, workers. Each ends as a record with its reason, or an error
that says what to do; nothing is lost and nothing hangs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign
from netbench.conductor import conduct
from netbench.conductor.runner import Runner
from netbench.errors import RequestError, StoreError
from netbench.store import Store

BASE = "netbench: 1\nname: f\nverify: off\nrepeat: {min: 1, max: 1}\n"
SHORT = "duration: 100ms, warmup: 20ms, congestion: cubic"


def run(text: str, results: Path) -> list[dict[str, Any]]:
    conclusion = conduct.start(campaign.parse(BASE + text, "f.yaml"), results)
    return list(Store.open(conclusion.path).records())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


# Sources


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "does not exist or cannot be read; name a file on the sender"),
        (Path.touch, "is empty; name a file that holds data"),
        (Path.mkdir, "is neither a file nor a block device; name a file on the sender"),
    ],
)
def test_a_source_that_cannot_be_sent_is_refused_before_anything_is_run(
    tmp_path: Path, make: Callable[[Path], None], says: str
) -> None:
    make(tmp_path / "source")
    with pytest.raises(RequestError, match=f"error: here: source: {tmp_path}/source {says}"):
        run(f"transfer: {{send: sendfile, source: {{file: {tmp_path}/source}}, {SHORT}}}\n", tmp_path / "r")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("send", ["readwrite", "sendfile", "splice", "mmap"])
def test_a_source_that_is_shorter_than_a_chunk_is_sent_round_and_round(tmp_path: Path, send: str) -> None:
    (tmp_path / "short").write_bytes(b"x" * 1001)
    record, *_ = run(f"transfer: {{send: {send}, source: {{file: {tmp_path}/short}}, chunk: 64K, {SHORT}}}\n", tmp_path / "r")
    assert record["status"] == "ok"
    opening, closing = record["sender"]["flow"]["bytes"]
    assert (closing[0] - opening[0]) % 1001 == 0, "whole files, one a step"


@pytest.mark.parametrize("send", ["readwrite", "sendfile", "splice", "mmap"])
def test_a_source_that_is_cut_short_in_mid_run_kills_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, send: str) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(8 << 20))
    sabotage(monkeypatch, lambda runner: os.truncate(source, 4096), 0.4)
    cells = "sweep: {pin: [none, same]}\n"
    transfer = f"transfer: {{send: {send}, source: {{file: {source}}}, duration: 1s, warmup: 0s, congestion: cubic}}\n"
    first, *others = run(transfer + cells, tmp_path / "r")
    assert first["status"] == "failed"
    assert "keep the source as it is during a run" in first["reason"]
    assert [r["status"] for r in others] == ["ok", "ok"], "the workers live on, with what is left of the file"


# Sinks


@pytest.mark.parametrize("receive", ["read", "splice"])
def test_a_sink_whose_disk_fills_up(small_disk: Path, tmp_path: Path, receive: str) -> None:
    record, *_ = run(f"transfer: {{receive: {receive}, sink: {{file: {small_disk}/out}}, {SHORT}}}\n", tmp_path)
    assert record["status"] == "failed"
    assert "No space left on device; " in record["reason"]


def test_an_existing_sink_is_refused_and_overwritten_only_on_request(tmp_path: Path) -> None:
    sink = tmp_path / "precious"
    sink.write_text("precious")
    with pytest.raises(RequestError, match=f"sink: {sink} exists; choose another path, or write .*overwrite: true"):
        run(f"transfer: {{sink: {{file: {sink}}}, {SHORT}}}\n", tmp_path / "r")
    assert sink.read_text() == "precious"
    record, *_ = run(f"transfer: {{sink: {{file: {sink}, overwrite: true}}, bytes: 10000, warmup: 0s}}\n", tmp_path / "r")
    assert (record["status"], sink.stat().st_size) == ("ok", 10000)


def test_a_block_device_is_refused_by_check_and_by_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path / "device"
    os.mknod(device, 0o600 | 0o060000, os.makedev(1, 0))  # a block device's node; what is refused is never opened
    text = f"transfer: {{sink: {{file: {device}}}, {SHORT}}}\n"
    with pytest.raises(RequestError, match="device exists"):
        run(text, tmp_path / "r")
    monkeypatch.setattr(conduct, "check", lambda *_: [])
    record, *_ = run(text, tmp_path / "r")
    assert record["status"] == "failed"
    assert "is a block device; choose another path" in record["reason"]


@pytest.mark.parametrize("made", [True, False])
def test_a_sink_survives_an_interrupt_of_its_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool) -> None:
    """Resumed, the campaign may write the file that it made itself; one that came from elsewhere it may not."""
    sink = tmp_path / "sink"
    text = BASE + f"transfer: {{sink: {{file: {sink}}}, bytes: 100000}}\n"
    from netbench.conductor import exchange as choreography

    honest = choreography._bounded

    def interrupted(*workers: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(choreography, "_bounded", interrupted)
    first = conduct.start(campaign.parse(text, "f.yaml"), tmp_path / "r")
    assert (first.why, sink.exists()) == ("interrupted", True)
    monkeypatch.setattr(choreography, "_bounded", honest)
    if made:
        conduct.resume(first.path, campaign.parse(text, "f.yaml"))
        assert sink.stat().st_size == 100000
    else:
        (first.path / "journal.jsonl").write_text("")
        with pytest.raises(RequestError, match=r"sink: .* exists"):
            conduct.resume(first.path, campaign.parse(text, "f.yaml"))


# Results


def test_a_results_disk_that_fills_up_in_mid_campaign_loses_nothing(small_disk: Path) -> None:
    text = BASE.replace("min: 1, max: 1", "min: 40, max: 40") + "transfer: {duration: 60ms, warmup: 5ms, sample: 1ms}\n"
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (1700 << 10))
    with pytest.raises(StoreError, match=r"No space left on device; free some space.*`resume` goes on"):
        conduct.start(campaign.parse(text, "f.yaml"), small_disk)
    (folder,) = (small_disk / "f").iterdir()
    kept = list(Store.open(folder).records())
    assert len(kept) > 3
    assert [r["run"] for r in kept] == list(range(1, len(kept) + 1))
    filler.unlink()
    conduct.resume(folder, campaign.parse(text, "f.yaml"))
    after = list(Store.open(folder).records())
    assert after[: len(kept)] == kept
    assert [r["run"] for r in after] == list(range(1, 41))


# Peers


def sabotage(monkeypatch: pytest.MonkeyPatch, action: Callable[[Runner], None], after: float) -> None:
    """Do something to the workers some time into the first run."""
    honest, done = Runner._measure, []

    def measure(self: Runner, *args: Any) -> None:
        timer = threading.Timer(after, action, [self])
        if not done:
            done.append(timer)
            timer.start()
        honest(self, *args)

    monkeypatch.setattr(Runner, "_measure", measure)


def worker_pid(runner: Runner, role: str) -> int:
    return runner._crew.worker("here", role).hello.pid


TWO = f"transfer: {{{SHORT.replace('100ms', '700ms')}}}\nsweep: {{pin: [none, same]}}\n"


@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_a_worker_killed_in_mid_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    sabotage(monkeypatch, lambda runner: os.kill(worker_pid(runner, role), signal.SIGKILL), 0.3)
    first, *others = run(TWO, tmp_path)
    assert first["status"] == "interrupted"
    assert "gone" in first["reason"], first["reason"]
    assert [r["status"] for r in others] == ["ok", "ok"], "the other cell, and this one again"


def test_connections_reset_in_mid_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def reset(runner: Runner) -> None:
        command = ["ss", "-K", "state", "established", "dst", "127.0.0.1", "dport", "=", str(port)]
        subprocess.run(command, check=True, capture_output=True)

    sabotage(monkeypatch, reset, 0.3)
    first, *others = run(TWO.replace("transfer: {", f"transfer: {{port: {port}, "), tmp_path)
    assert first["status"] == "failed"
    assert "look at the other side's error" in first["reason"]
    assert [r["status"] for r in others] == ["ok", "ok"], "the other cell, and this one again"


@pytest.mark.slow
def test_a_worker_that_is_stopped_is_given_up_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids: list[int] = []

    def stop(runner: Runner) -> None:
        pids.append(worker_pid(runner, "receiver"))
        os.kill(pids[0], signal.SIGSTOP)

    sabotage(monkeypatch, stop, 0.3)
    first, *others = run(TWO, tmp_path)
    assert first["status"] == "interrupted"
    assert "fell silent" in first["reason"]
    assert [r["status"] for r in others] == ["ok", "ok"], "the other cell, and this one again"
    assert not Path(f"/proc/{pids[0]}").exists()


def test_strangers_at_the_data_port_change_nothing_and_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two who know no token: one says nonsense, one says nothing. They come while the receiver waits for its sender."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    guests: list[socket.socket] = []
    from netbench.engine.worker import Worker

    honest = Worker.prepare

    def prepare(self: Worker, options: Any) -> Any:
        if options["role"] == "send":
            for words in (b"GET / HTTP/1.0\r\nHost: netbench\r\n\r\n", b""):
                guests.append(socket.create_connection(("127.0.0.1", port)))
                guests[-1].sendall(words)
        return honest(self, options)

    monkeypatch.setattr(Worker, "prepare", prepare)
    record, *_ = run(f"transfer: {{port: {port}, duration: 300ms, warmup: 20ms}}\n", tmp_path)
    for guest in guests:
        guest.close()
    assert record["status"] == "ok"
    assert record["receiver"]["strangers"] == 2


def test_a_worker_that_answers_garbage(tmp_path: Path) -> None:
    from netbench.hosts.local import LocalChannel

    script = tmp_path / "worker"
    script.write_text("#!/bin/sh\necho Welcome to Debian, last login yesterday\nsleep 5\n")
    script.chmod(0o755)
    found = campaign.parse(BASE, "f.yaml")
    with pytest.raises(Exception, match=r"no frame of netbench's protocol.*Welcome to") as caught:
        conduct.start(found, tmp_path / "r", channels=lambda host: LocalChannel(host.name, [str(script)]))
    assert not isinstance(caught.value, RequestError)
    assert not (tmp_path / "r").exists()


def test_windows_come_from_the_monotonic_clock_alone(tmp_path: Path) -> None:
    """Stepping this machine's clock would step everybody's: it is shown that no other clock is asked for, and that this one is."""
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    record, *_ = run(f"transfer: {{{SHORT}}}\n", tmp_path)
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    for side in ("sender", "receiver"):
        assert before < record[side]["time_ns"][0] < record[side]["time_ns"][1] < after
    sources = (Path(__file__).parent.parent / "native" / "src").rglob("*.[ch]")
    assert [str(file) for file in sources if "CLOCK_REALTIME" in file.read_text() or "gettimeofday(" in file.read_text()] == []


# The controller


@pytest.mark.slow
def test_a_controller_killed_at_random_instants_loses_only_the_run_in_flight(tmp_path: Path) -> None:
    from random import Random

    from conftest import netbench_argv

    text = (
        "netbench: 1\nname: k\ntransfer: {duration: 20ms, warmup: 5ms, sample: 5ms}\nsweep: {send: [write, sendfile, splice]}\n"
    )
    (tmp_path / "k.yaml").write_text(text + "repeat: {min: 40, max: 40}\n")
    chance, kept = Random(4), []
    command = netbench_argv(["run", "k.yaml"])
    for _ in range(20):
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.8 + chance.random() * 1.5)  # the instant of the kill is what is random
        process.kill()
        process.communicate()
        folders = list(tmp_path.glob("results/k/*"))
        if folders:
            lines = (folders[0] / "records.jsonl").read_text().splitlines(keepends=True)
            found = [json.loads(line) for line in lines if line.endswith("\n")]
            assert found[: len(kept)] == kept
            kept = found
            command = netbench_argv(["resume", folders[0]])
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    records = list(Store.open(folders[0]).records())
    assert records[: len(kept)] == kept
    assert [r["run"] for r in records] == list(range(1, 121))
    assert sorted((r["cell"], r["block"]) for r in records) == sorted(
        (f"send={send}", block) for send in ("write", "sendfile", "splice") for block in range(40)
    )


def test_linger_makes_a_reset(tmp_path: Path) -> None:
    """A peer that resets before it has shown its token is a stranger, not an error."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    stop = threading.Event()

    def knock() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.1) as guest:
                guest.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    knocker = threading.Thread(target=knock)
    knocker.start()
    try:
        record, *_ = run(f"transfer: {{port: {port}, {SHORT}}}\n", tmp_path)
    finally:
        stop.set()
        knocker.join()
    assert record["status"] == "ok", record["reason"]


def test_a_worker_that_is_lost_again_and_again_ends_the_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Runner._measure

    def deadly(self: Runner, *args: Any) -> None:
        os.kill(worker_pid(self, "sender"), signal.SIGKILL)
        honest(self, *args)

    monkeypatch.setattr(Runner, "_measure", deadly)
    conclusion = conduct.start(campaign.parse(BASE + TWO, "f.yaml"), tmp_path)
    assert (conclusion.why, conclusion.exit_code) == ("lost", 1)
    assert "3 times in a row" in conclusion.reason
    assert [r["status"] for r in Store.open(conclusion.path).records()] == ["interrupted"] * 3


def test_a_changed_campaign_is_not_resumed_under_the_old_records(tmp_path: Path) -> None:
    text = BASE + f"transfer: {{{SHORT}}}\nsweep: {{chunk: [4K, 64K]}}\n"
    first = conduct.start(campaign.parse(text, "f.yaml"), tmp_path)
    before = (first.path / "records.jsonl").read_bytes()
    with pytest.raises(StoreError, match=r"does not give the cells of plan\.json any more"):
        conduct.resume(first.path, campaign.parse(text.replace("4K", "8K"), "f.yaml"))
    assert (first.path / "records.jsonl").read_bytes() == before


@pytest.mark.slow
def test_orders_that_take_longer_than_silence_may_last_are_no_silence(tmp_path: Path) -> None:
    """Three orders of five seconds at once, then an undo of six: the worker does all of it, and leaves only then."""
    from netbench.engine import binding
    from netbench.engine.binding import Frame
    from netbench.engine.worker import Heart, Worker
    from netbench.hosts.local import LocalChannel

    channel, heart = LocalChannel("here"), Heart()
    worker = Worker(channel.start(channel.worker_argv()), "here")
    heart.add(worker)
    rows = {row.name: row.id for row in worker.catalogue.rows if row.kind == "option" and row.owner in worker.catalogue.ops}
    order = binding.encode_values({rows["op"]: "exec", rows["target"]: "sleep\x005"})
    for _ in range(3):
        worker._write(binding.frame(Frame.OP, 9, order))
    undone = tmp_path / "undone"
    worker.operate("exec", ["true"], undo=["sh", "-c", f"sleep 6; echo yes > {undone}"])
    heart.stop()
    worker.close()
    assert undone.read_text() == "yes\n"
