"""Whole campaigns on this machine, with real workers and real sockets."""

from __future__ import annotations

import json
import os
import socket
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import netbench
from netbench import api, campaign, load
from netbench.engine.worker import Worker
from netbench.hosts.local import LocalChannel
from netbench.model import Campaign
from netbench.report.build import build
from netbench.run import conductor
from netbench.run.check import check
from netbench.run.worker_pool import WorkerPool
from tests.conftest import SMALL
from tests.support.engine_pair import WORKER
from tests.support.local import call
from tests.support.running import run_whole as run
from tests.support.running import stored_records

BASE = "netbench: 1\nname: c\nrepeat: {min: 1, max: 1}\n"
SHORT = "duration: 60ms, warmup: 20ms, congestion: cubic"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of a small campaign."""
    conclusion = conductor.start(campaign.parse(SMALL, "s.yaml"), tmp_path_factory.mktemp("done"))
    assert (conclusion.why, conclusion.exit_code) == ("done", 0)
    return conclusion.path


def test_a_campaign_leaves_records_with_raw_counters_at_both_edges(done: Path) -> None:
    found = stored_records(done)
    assert [r["run"] for r in found] == [1, 2, 3, 4]
    assert [r["block"] for r in found] == [0, 0, 1, 1]
    for record in found:
        assert record["status"] == "ok"
        for side in ("sender", "receiver"):
            opening, closing = record[side]["flow"]["bytes"]
            assert 0 < opening[0] < closing[0]
            assert 0.9 < (record[side]["time_ns"][1] - record[side]["time_ns"][0]) / 60e6 < 3
            assert record[side]["rusage"]["cpu_ns"][1] > record[side]["rusage"]["cpu_ns"][0]
        assert "procstat" in record["sender"]
        assert "procstat" not in record["receiver"], "one kernel, one set of its meters"
        assert record["settings"]["sender"]["congestion"] == {"asked": "cubic", "read": "cubic"}
        assert len(json.dumps(record, separators=(",", ":"))) < 1900


def test_samples_tell_bytes_in_time_order_and_facts_are_kept_by_host_and_boot(done: Path) -> None:
    lines = map(json.loads, (done / "samples" / "000001.jsonl").read_text().splitlines())
    mine = [line for line in lines if line["side"] == "receiver" and "edge" not in line]
    assert len(mine) >= 2
    for values in ([m["ns"] for m in mine], [m["flow"]["bytes"][0] for m in mine]):
        assert values == sorted(values)
    assert all("rtt_us" in m["tcp"] for m in mine)
    (entry,) = json.loads((done / "facts.json").read_text())["hosts"]["here"]
    kernel = Path("/proc/sys/kernel")
    assert entry["boot_id"] == (kernel / "random/boot_id").read_text().strip()
    assert entry["facts"]["kernel"] == (kernel / "osrelease").read_text().strip()
    assert all(entry["missing"].get(name) for name, v in entry["facts"].items() if v is None)


MOST = int(Path("/proc/sys/net/core/wmem_max").read_text())
KINDS = f"""\
transfer: {{{SHORT}}}
include:
- {{ip: 6, send_buffer: {MOST * 2}, receive_buffer: 64K}}
- {{bytes: 5000001, streams: 3, warmup: 0s, chunk: 4K}}
- {{bytes: 5000001, streams: 3, warmup: 30ms, chunk: 4K}}
- {{send: null, receive: null}}
- {{rate: 200Mb/s, duration: 500ms, warmup: 100ms, chunk: 16K, streams: 2}}
"""


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of a campaign with one cell of each kind."""
    return run(BASE + KINDS, tmp_path_factory.mktemp("kinds"))[0].path


def with_level(result: Path, factor: str) -> list[dict[str, Any]]:
    return [record for record in stored_records(result) if factor in record["factors"]]


def test_socket_buffers_are_read_back_beside_what_was_asked(kinds: Path) -> None:
    """One over the limit is clamped; the kernel doubles both. Over IPv6."""
    (record,) = with_level(kinds, "ip")
    assert record["status"] == "ok"
    settings = record["settings"]
    assert settings["sender"]["send_buffer"] == {"asked": MOST * 2, "read": MOST * 2}
    assert settings["receiver"]["receive_buffer"] == {"asked": 65536, "read": 131072}


def test_a_bytes_bounded_run_counts_exactly_what_was_asked(kinds: Path) -> None:
    first, second = with_level(kinds, "bytes")
    for record, side in product((first, second), ("sender", "receiver")):
        opening, closing = record[side]["flow"]["bytes"]
        assert sum(closing) - sum(opening) == 5000001
        assert (sum(opening) > 0) == (record["factors"]["warmup"] != "0s")


def test_null_counts_steps_alone_and_rate_holds_the_offered_load(kinds: Path) -> None:
    (record,) = with_level(kinds, "send")
    assert "bytes" not in record["sender"]["flow"]
    assert record["sender"]["flow"]["steps"][1][0] > 1000
    runs = load(kinds).runs
    assert runs[runs["send"].notna()]["throughput"].isna().all()
    (reached,) = runs[runs["rate"].notna()]["throughput"]
    # Never above; below it where the machine gave the sender no CPU at the window's end.
    assert 0.1 < reached < 0.21


def test_a_failing_cell_is_recorded_with_its_reason_and_the_others_finish(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        sweep = f"sweep: {{port: [{port}, 20000-60000]}}\n"
        conclusion, found = run(f"{BASE}verify: off\ntransfer: {{{SHORT}}}\n{sweep}", tmp_path)
    assert conclusion.exit_code == 1
    by_status = {record["status"]: record for record in found}
    assert set(by_status) == {"ok", "failed"}
    why = f"every port from {port} to {port} is taken: Address already in use; widen the range"
    assert why in by_status["failed"]["reason"]
    assert [r["status"] for r in found].count("failed") == 3, "three in a row, and no more"


def test_verification_finds_what_was_changed_on_the_way(
    small: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wire can't be made to lie here, so one digest is bent on its way out of the worker."""
    from netbench.run import readings

    honest = readings.readbacks

    def bent(vectors: Any, catalogue: Any) -> dict[str, Any]:
        found = honest(vectors, catalogue)
        if "digest" in found and "port" in found:
            found["digest"] = [n ^ 1 for n in found["digest"]]
        return found

    monkeypatch.setattr(readings, "readbacks", bent)
    conclusion = conductor.start(small, tmp_path)
    found = stored_records(conclusion.path)
    assert conclusion.exit_code == 1
    assert {r["status"] for r in found} == {"failed"}
    assert all(r["reason"].startswith("verify: what arrived is not what was sent") for r in found)
    assert api.resume(conclusion.path, plain=True).exit_code == 1, "nothing to do is no success"


def barred() -> str:
    """A congestion control that only CAP_NET_ADMIN may choose."""
    kernel = Path("/proc/sys/net/ipv4")
    free = (kernel / "tcp_allowed_congestion_control").read_text().split()
    known = (kernel / "tcp_available_congestion_control").read_text().split()
    found = [name for name in known if name not in free]
    return found[0] if found else pytest.skip(f"this kernel allows all of them: {free}")


@pytest.mark.parametrize("may", [True, pytest.param(False, marks=pytest.mark.root)])
def test_cells_that_a_host_cannot_run_are_unsupported_and_the_others_run(
    may: bool, tmp_path: Path
) -> None:
    """Where `or default` was written, they use the default."""
    name, why = ("tahoe", "No such file") if may else (barred(), "Operation not permitted")
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    caps = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"]
    argv = [*(() if may else caps), *WORKER]
    levels = f"[{default}, {name}, {name} or default]"
    text = f"{BASE}transfer: {{duration: 60ms}}\nsweep: {{congestion: {levels}}}\n"
    found = campaign.parse(text, "c.yaml")
    with WorkerPool(found, lambda host: LocalChannel(host.name, argv)) as pool:
        said = [one for one in check(found, pool) if name in one.what]
    assert [one.level for one in said] == ["warning"] * 2
    assert all(one.what.startswith(f"set congestion control: {name}: {why}") for one in said)
    assert said[0].remedy.endswith(", or its cells are unsupported")
    assert said[1].what.endswith(f": it uses its default, {default}")
    conclusion = conductor.start(
        found, tmp_path, channels=lambda host: LocalChannel(host.name, argv)
    )
    assert conclusion.exit_code == 0
    records = {r["factors"]["congestion"]: r for r in stored_records(conclusion.path)}
    assert [records[level]["status"] for level in (default, name, f"{name} or default")] == [
        "ok", "unsupported", "ok",
    ]  # fmt: skip
    assert f"{name}: {why}" in records[name]["reason"]
    note = {"asked": f"{name} or default", "read": default}
    settings = records[f"{name} or default"]["settings"]
    assert settings["sender"]["congestion"] == settings["receiver"]["congestion"] == note


def test_a_result_that_the_limit_ended_goes_on_after_a_reboot_and_says_so(
    small: Campaign, tmp_path: Path
) -> None:
    """This machine can't reboot in a test: the first boot's id in facts.json is made another one."""
    first = conductor.start(small._replace(limit=1), tmp_path)
    assert (first.why, first.exit_code, stored_records(first.path)) == ("limit", 0, [])
    facts = json.loads((first.path / "facts.json").read_text())
    facts["hosts"]["here"][0]["boot_id"] = "11111111-2222-3333-4444-555555555555"
    (first.path / "facts.json").write_text(json.dumps(facts))
    conductor.resume(first.path, small)
    assert {r["boot"] for r in stored_records(first.path)} == {1}
    after = json.loads((first.path / "facts.json").read_text())["hosts"]["here"]
    assert [entry["boot"] for entry in after] == [0, 1]


@pytest.mark.parametrize("more", ["", "streams: 4, pin: same"])
def test_what_a_cold_source_gave_twice_is_named(tmp_path: Path, more: str) -> None:
    """Whatever the streams: each byte is read once, and what is sent again is in the page cache."""
    source = Path(__file__).parent / f"cold.{os.getpid()}.tmp"  # on a disk, and never sent before
    source.write_bytes(b"x" * (1 << 20))
    transfer = f"send: sendfile, source: {{file: {source}}}, cache: cold, bytes: {2 if more else 1}M, {more}"
    try:
        done, found = run(f"{BASE}verify: off\ntransfer: {{{transfer}}}\n", tmp_path)
    finally:
        source.unlink()
    opened, closed = found[0]["sender"]["disk"]["read_bytes"]
    assert (found[0]["sender"]["source_size"], found[0]["sender"]["resident"]) == (1 << 20, 0)
    assert closed - opened == 1 << 20
    cautions = [c.evidence for c in build(done.path).source.cautions if c.kind == "cache"]
    assert cautions == (["in 1 run, 50% of the bytes"] if more else [])


def test_soak_is_read_with_the_idle_window_before_its_block(tmp_path: Path) -> None:
    text = (
        BASE.replace("min: 1, max: 1", "min: 2, max: 2")
        + f"verify: off\ntransfer: {{{SHORT}, rate: 100Mb/s}}\nsoak: {{footprint: 64K}}\n"
        + "sweep: {meters: [[procstat, rusage], [soak, procstat, rusage]]}\n"
    )
    conclusion, found = run(text, tmp_path)
    assert [r["status"] for r in found] == ["ok"] * 4, [r["reason"] for r in found]
    windows = set()
    for record in found:
        soaked = "soak" in record["factors"]["meters"]
        assert "soak" not in record["receiver"], "one kernel, one soaker a CPU"
        assert ("soak" in record["sender"]) == soaked
        if soaked:
            counters = record["sender"]["soak"]
            windows.add(tuple(counters["idle_time_ns"]))
            assert counters["idle_time_ns"][1] <= record["sender"]["time_ns"][0]
            assert counters["idle_cpus"] == counters["cpus"]
            assert counters["used_ns"][1] >= counters["used_ns"][0]
            assert len(json.dumps(record, separators=(",", ":"))) < 2500
    assert len(windows) == 2, "one before each block"
    assert load(conclusion.path).runs["system_cpu.procstat"].notna().all()


# A control: its records, what is left of it after a kill, and its report


TEXT = """\
netbench: 1
name: c
transfer: {duration: 20ms, warmup: 0ms, congestion: cubic}
sweep: {chunk: [16K, 32K, 64K, 128K]}
repeat: {min: 3, max: 3}
compare: {factor: chunk, baseline: 32K}
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("results")
    conclusion = conductor.start(campaign.parse(TEXT, "c.yaml"), results)
    assert (conclusion.why, conclusion.exit_code) == ("done", 0)
    return conclusion.path


def test_its_records_have_the_factors_of_the_baseline_and_say_what_they_are(result: Path) -> None:
    records = stored_records(result)
    mine = [r for r in records if r["cell"].endswith(",control")]
    assert [r["block"] for r in mine] == [0, 1, 2]
    for record in mine:
        assert record["cell"] == "chunk=32K,control"
        assert record["factors"] == {"chunk": "32K"}
        assert record["control"] is True
        assert record["status"] == "ok"
    assert len(records) == 15
    assert not any("control" in r for r in records if r not in mine)
    planned = json.loads((result / "plan.json").read_text())
    assert planned["compare"]["control"] is True
    assert planned["runs_total"] == len(records)
    assert planned["order"] == [r["cell"] for r in records if r["block"] == 0]


def test_a_campaign_that_was_killed_goes_on_with_its_control(result: Path) -> None:
    whole = stored_records(result)
    places = [(r["cell"], r["block"]) for r in whole]
    at = next(n for n, r in enumerate(whole) if r["block"] == 1 and r.get("control"))
    file = result / "records.jsonl"
    for kept in (at, at + 1):  # right before a run of the control, and right after it
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(lines[:kept]))
        for _ in range(2):  # the second finds nothing to do
            done = call("resume", result)
            assert done.returncode == 0, done.stderr
            assert [(r["cell"], r["block"]) for r in stored_records(result)] == places


def test_its_report_averages_none_of_it(result: Path) -> None:
    found = netbench.load(result)
    assert (len(found.runs), len(found.control_runs), set(found.cells["n"])) == (12, 3, {3})
    told = " ".join(call("report", "--full", result).stdout.split())
    assert "12 runs and 3 of the baseline again (1 control)" in told


def test_the_sender_alone_is_asked_to_tell_each_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody reads what a receiver would say before the run ends, so its pipe would be full."""
    asked, prepare = dict[str, bool](), Worker.prepare

    def seen(self: Worker, options: dict[str, Any]) -> Any:
        asked[options["role"]] = bool(options.get("report"))
        return prepare(self, options)

    monkeypatch.setattr(Worker, "prepare", seen)
    found = campaign.parse(f"{BASE}verify: off\ntransfer: {{{SHORT}}}\n", "c.yaml")
    conductor.start(found, tmp_path, seconds=lambda second: None)
    assert (asked["send"], asked["receive"]) == (True, False)


def test_each_second_of_a_window_has_its_histogram(tmp_path: Path) -> None:
    """Which together are that of the run."""
    asked = "transfer: {request: 9, response: 9, connections: 4, duration: 2200ms}\n"
    ended, _ = run(f"{BASE}{asked}", tmp_path)
    lines = (ended.path / "samples/000001.jsonl").read_text().splitlines()
    kept = [json.loads(line) for line in lines if '"requests"' in line]
    (whole,) = (line["requests"] for line in kept if line["edge"] == "drained")
    seconds = [line for line in kept if line["edge"] == "second"]
    assert len({line["ns"] for line in seconds}) == 3
    total = Counter[int]()
    for of in (line["requests"] for line in seconds):
        assert of["count"]
        total.update(dict(zip(of["bucket"], of["count"], strict=True)))
    assert total == dict(zip(whole["latency_bucket"], whole["latency_count"], strict=True))
    assert build(ended.path).source.by_second


def test_an_open_loop_has_a_curve_and_its_histograms_are_exported(tmp_path: Path) -> None:
    asked = f"transfer: {{request: 9, response: 9, connections: 4, {SHORT}}}\n"
    ended, records = run(f"{BASE}{asked}sweep: {{rate: [20000/s, 30000/s]}}\n", tmp_path)
    result = ended.path
    assert [len(curve.cells) for curve in build(result).source.load_curves] == [2]
    exported = call("export", "--hgrm", result, tmp_path / "h")
    assert (exported.returncode, exported.stderr) == (0, "")
    for record in records:
        file = result / "samples" / f"{record['run']:06}.jsonl"
        (kept,) = (
            json.loads(x)["requests"] for x in file.read_text().splitlines() if "_bucket" in x
        )
        made = (tmp_path / "h" / f"{record['cell'].replace('/', '_')}.hgrm").read_text()
        assert f"Total count    = {sum(kept['latency_count']):12d}]" in made
        assert f"#[Max     = {record['captures']['max']['value']:12.3f}," in made
