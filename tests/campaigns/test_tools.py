"""External programs as cells, beside netbench's own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign, load
from netbench.report.build import build
from netbench.report.text import render as text_of
from netbench.run import conductor, external_tool, ledger
from tests.support.paths import ROOT
from tests.support.running import Running, stored_records, wait_for

BASE = "netbench: 1\nname: t\nrepeat: {min: 1, max: 1}\n"


def run(text: str, results: Path) -> tuple[Path, list[dict[str, Any]]]:
    conclusion = conductor.start(campaign.parse(text, "t.yaml"), results)
    return conclusion.path, stored_records(conclusion.path)


def test_iperf3_runs_as_a_cell_under_the_same_meters(tmp_path: Path) -> None:
    assert shutil.which("iperf3"), "README.md names iperf3 among the packages"
    text = (
        BASE
        + "transfer: {duration: 1s, warmup: 0s, congestion: cubic, pin: apart}\nsweep: {tool: [none, iperf3]}\n"
    )
    path, found = run(text, tmp_path)
    assert [r["status"] for r in found] == ["ok", "ok"], [r["reason"] for r in found]
    tool = next(r for r in found if r["factors"]["tool"] == "iperf3")
    said = json.loads((path / f"samples/{tool['run']:06d}.txt").read_text().partition("\n")[2])
    received = said["end"]["sum_received"]
    assert tool["receiver"]["tool"] == {"bytes": received["bytes"], "seconds": received["seconds"]}
    runs = load(path).runs.set_index("tool")
    assert runs.loc["iperf3", "throughput"] == pytest.approx(
        received["bits_per_second"] / 1e9, rel=1e-3
    )
    for name in ("sender_cpu.rusage", "receiver_cpu.rusage", "system_cpu.procstat"):
        assert runs.loc["iperf3", name] > 0
    # iperf3 accounts its CPU over its whole life, in percent of one: the same in a wide band.
    own = said["end"]["cpu_utilization_percent"]["host_total"] / 100
    assert runs.loc["iperf3", "sender_cpu.rusage"] == pytest.approx(own, rel=0.3, abs=0.1)


@pytest.mark.parametrize("how", ["close", "talk"])
def test_a_run_says_that_others_connected_to_its_server(tmp_path: Path, how: str) -> None:
    user = {"user": 1234, "group": 1234, "extra_groups": []} if os.geteuid() == 0 else {}
    argv = ["/usr/bin/python3", "-c", (ROOT / "tests/support/knock.py").read_text(), how]
    first = external_tool.FIRST_PORT
    with subprocess.Popen([*argv, str(first), str(first + 9)], **user) as other:
        text = BASE.replace("1}", "2}") + "transfer: {duration: 300ms, warmup: 0s, tool: iperf3}\n"
        _, found = run(text, tmp_path)
        other.kill()
    for record in found:
        said = f"connected to its port {first + record['run']}" in record["reason"]
        assert record["status"] == "ok" or said, record["reason"]


def test_a_program_of_the_users_and_its_pattern(tmp_path: Path) -> None:
    script = tmp_path / "tool.sh"
    script.write_text("#!/bin/sh\necho moved 2500000 bytes in 0.5 s to $1\n")
    script.chmod(0o755)
    argv = f"argv: [{script}, '{{address}}'], pattern: 'moved (?P<bytes>[0-9]+) bytes in (?P<seconds>[0-9.]+) s'"
    path, found = run(BASE + f"transfer: {{tool: {{{argv}}}}}\n", tmp_path / "r")
    assert found[0]["status"] == "ok", found[0]["reason"]
    assert found[0]["receiver"]["tool"] == {"bytes": 2500000, "seconds": 0.5}
    shutil.copytree(path.rename(tmp_path / "own"), path)  # another account may rename it
    (path / "records.jsonl").write_text("")
    assert load(path).runs["throughput"].iloc[0] == pytest.approx(0.04)
    assert "to 127.0.0.1" in (path / "samples" / "000001.txt").read_text()
    said = "".join(text_of(build(path)).split())  # lines may end at hyphens of the path
    assert f"Thetooltool.shis`{script}'{{address}}'`." in said


TOOL = "tools: {{mine: {{client: {client}, server: {server}{more}, captures: {{throughput: '(?P<rate>[0-9.]+ Gb/s)'}}}}}}\n"
USES = "transfer: {tool: mine, duration: 100ms, warmup: 0s}\n"
SAYS = "[echo, 9.4 Gb/s]"
LISTENS = "[python3, -c, \"import socket, sys, time; s = socket.create_server(('', int(sys.argv[1]))); time.sleep(1000)\", '{port}']"


def mine(tmp_path: Path, server: str, client: str = SAYS, more: str = "") -> dict[str, Any]:
    text = BASE + TOOL.format(client=client, server=server, more=more) + USES
    path, found = run(text, tmp_path / "r")
    return {**found[0], "folder": path}


def test_a_server_is_ready_once_it_listens(tmp_path: Path) -> None:
    """It is connected to by nobody, and sees no connection of netbench's own."""
    client = (
        '[python3, -c, "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])));'
        " print('9.4 Gb/s')\", '{address}', '{port}']"
    )
    record = mine(tmp_path, LISTENS, client)
    assert record["status"] == "ok", record["reason"]
    assert record["receiver"]["tool"] == {"rate": "9.4 Gb/s"}
    assert record["receiver"]["rusage"]["cpu_ns"][0] > 0, "it ran before the window opened"


def test_a_server_that_prints_and_exits_before_its_client_does_is_read(tmp_path: Path) -> None:
    """Its end is known before anyone asks for what it printed."""
    begun = tmp_path / "begun"
    server = f"[sh, -c, 'echo up; until [ -e {begun} ]; do sleep 0.01; done; echo 9.4 Gb/s']"
    record = mine(tmp_path, server, f"[sh, -c, 'touch {begun}; sleep 0.3']", ", ready: up")
    assert record["status"] == "ok", record["reason"]
    assert record["receiver"]["tool"] == {"rate": "9.4 Gb/s"}


FAULTS: list[tuple[str, str, str, str, str]] = [
    # what, server, client, more, the reason's words
    ("no server's program", "[no-such-server, '{port}']", SAYS, "", "mine: its server: .*no-such-server: No such file.*install it on this host"),
    ("the server dies at once", "[sh, -c, 'echo why it died >&2; exit 3', '{port}']", SAYS, "", "mine: its server: .*exited with status 3.*why it died"),
    ("it never listens", "[sleep, '1000', '{port}']", SAYS, "", "mine: its server: .*not ready within 1 s.*listens on port 15202"),
    ("another account listens", LISTENS.replace("[", "[setpriv, --reuid=1234, --clear-groups, ", 1), SAYS, "", "mine: its server: .*(not ready within 1 s|setpriv)"),
    ("the server dies in the run", "[sh, -c, 'echo up; sleep 0.3; exit 3']", "[sleep, '1000']", ", ready: up", "mine: sleep has not ended 1 s after its server has"),
    ("the server fails, and its client has been answered", "[sh, -c, 'echo up; sleep 0.2; echo not mine >&2; exit 3']", "[sh, -c, 'sleep 0.5; echo 9.4 Gb/s']", ", ready: up", "mine: its server exited with status 3: .*not mine.*samples/ has"),
    ("the client fails", LISTENS, "[sh, -c, 'echo \"\\\\033]0;oh\\\\007 no\" >&2; exit 4']", "", "mine: exit status 4: .*no; samples/ has"),
    ("nothing to match", LISTENS, "[sh, -c, 'yes no | head -c 5000000']", "", "mine: throughput: its output does not match the pattern .*no no"),
]  # fmt: skip


@pytest.mark.parametrize("ready", ["", ", ready: up"])
def test_a_port_that_another_program_has_is_no_server_s(
    tmp_path: Path, ready: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ipv6 = LISTENS.replace("('', int(sys.argv[1]))", "('::1', int(sys.argv[1])), family=10")
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 17402))  # no earlier test had it
        monkeypatch.setattr(external_tool, "FIRST_PORT", 17401)
        record = mine(
            tmp_path, ipv6.replace("; time", "; print('up', flush=True); time"), more=ready
        )
    assert record["status"] == "failed"
    assert "every port from 17402 to 17402 is taken" in record["reason"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_a_fault_of_a_tool_fails_its_run_and_leaves_nothing_behind(
    tmp_path: Path, fault: tuple[str, str, str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if "not ready" in fault[4]:
        monkeypatch.setattr(external_tool, "READY_SECONDS", 1.0)
    monkeypatch.setattr(external_tool, "GRACE_SECONDS", 1.0)
    monkeypatch.setattr(ledger, "FAILURES_IN_A_ROW", 1)  # each failure would say the same
    _, server, client, more, words = fault
    tag = f"netbench-{os.getpid()}-{tmp_path.name}"
    monkeypatch.setenv("NETBENCH_TEST_TAG", tag)
    record = mine(tmp_path, server, client, more)
    assert record["status"] == "failed"
    assert re.search(words, record["reason"]), record["reason"]
    assert len(record["reason"]) < 1000
    assert left_behind(tag) == []


def left_behind(tag: str) -> list[str]:
    """The programs that still run with this word in their environment, but for this one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (process / "environ").read_text(errors="replace")
            if int(process.name) != os.getpid() and tag in environment:
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


def test_a_dying_controller_leaves_no_tool_behind(tmp_path: Path) -> None:
    """Also what a client or a server has started in a session of its own."""
    tag = f"netbench-{os.getpid()}-{tmp_path.name}"
    script = "echo up; setsid sleep 1000 & (sleep 1000 &) ; exec sleep 1000"
    client = f"[sh, -c, 'touch {tmp_path}/began; {script}']"
    text = BASE + TOOL.format(client=client, server=f"[sh, -c, '{script}']", more=", ready: up")
    env = {**os.environ, "NETBENCH_TEST_TAG": tag}
    running = Running(tmp_path, tmp_path / "r", text + USES, env=env)
    wait_for((tmp_path / "began").exists, lambda: running.process.poll() is None)
    assert len(left_behind(tag)) >= 6
    running.process.kill()
    running.process.communicate()
    wait_for(lambda: left_behind(tag) == [])


def test_the_reads_and_writes_of_dd_are_cells(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(bytes(3 * 2**20))
    ends = f"source: {{file: {tmp_path}/in}}", f"source: zero, sink: {{file: {tmp_path}/out}}"
    for busy, more in zip(("sender", "receiver"), ends, strict=True):
        body = f"transfer: {{bytes: 3M, warmup: 0s, tool: dd, {more}}}\n"
        path, (record,) = run(BASE + body, tmp_path / busy)
        assert record["status"] == "ok", record["reason"]
        assert record["receiver"]["tool"]["bytes"] == 3 * 2**20
        assert record[busy]["rusage"]["cpu_ns"][1] > 0
        (entry,) = json.loads((path / "facts.json").read_text())["hosts"]["here"]
        assert entry["facts"]["tools"].startswith("dd (coreutils)")
    assert (tmp_path / "out").stat().st_size == 3 * 2**20
