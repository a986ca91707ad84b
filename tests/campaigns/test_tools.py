"""External programs as cells, beside netbench's own."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign, load
from netbench.conductor import conductor, tool_commands
from netbench.model import Source, Tool, Transfer
from tests.support.running import stored_records

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
    said = json.loads(
        "".join(
            (path / "samples" / f"{tool['run']:06d}.txt").read_text().splitlines(keepends=True)[1:]
        )
    )
    received = said["end"]["sum_received"]
    assert tool["receiver"]["tool"] == {"bytes": received["bytes"], "seconds": received["seconds"]}
    runs = load(path).runs.set_index("tool")
    assert runs.loc["iperf3", "throughput"] == pytest.approx(
        received["bits_per_second"] / 1e9, rel=1e-3
    )
    for name in ("sender_cpu.rusage", "receiver_cpu.rusage", "system_cpu.procstat"):
        assert runs.loc["iperf3", name] > 0
    # iperf3 accounts its own CPU over its whole life, in percent of one CPU: the same within a wide
    # band.
    own = said["end"]["cpu_utilization_percent"]["host_total"] / 100
    assert runs.loc["iperf3", "sender_cpu.rusage"] == pytest.approx(own, rel=0.3, abs=0.1)


def test_bytes_bounded_iperf3(tmp_path: Path) -> None:
    _, found = run(BASE + "transfer: {bytes: 50M, warmup: 0s, tool: iperf3}\n", tmp_path)
    assert found[0]["status"] == "ok", found[0]["reason"]
    # Its server stops when the client has sent enough, and may not have read all of it: what it
    # says is what is recorded.
    assert 25 * 2**20 < found[0]["receiver"]["tool"]["bytes"] < 51 * 2**20


def test_a_program_of_the_users_and_its_pattern(tmp_path: Path) -> None:
    script = tmp_path / "tool.sh"
    script.write_text("#!/bin/sh\necho moved 2500000 bytes in 0.5 s to $1\n")
    script.chmod(0o755)
    argv = f"argv: [{script}, '{{address}}'], pattern: 'moved (?P<bytes>[0-9]+) bytes in (?P<seconds>[0-9.]+) s'"
    path, found = run(BASE + f"transfer: {{tool: {{{argv}}}}}\n", tmp_path / "r")
    assert found[0]["status"] == "ok", found[0]["reason"]
    assert found[0]["receiver"]["tool"] == {"bytes": 2500000, "seconds": 0.5}
    assert load(path).runs["throughput"].iloc[0] == pytest.approx(0.04)
    assert "to 127.0.0.1" in (path / "samples" / "000001.txt").read_text()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo nothing of use", "its output does not match the pattern"),
        ("echo broken >&2; exit 3", "exit status 3: broken"),
    ],
)
def test_a_program_that_fails_says_what_it_printed(
    tmp_path: Path, script: str, reason: str
) -> None:
    tool = f"{{argv: [sh, -c, '{script}'], pattern: '(?P<rate>[0-9]+ Gb/s)'}}"
    _, found = run(BASE + f"transfer: {{tool: {tool}}}\n", tmp_path)
    assert found[0]["status"] == "failed"
    assert reason in found[0]["reason"]


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    _, found = run(
        BASE + "transfer: {tool: {argv: [no-such-program], pattern: '(?P<rate>x)'}}\n", tmp_path
    )
    assert found[0]["status"] == "failed"
    assert (
        "no-such-program: No such file or directory; install it on this host" in found[0]["reason"]
    )


def test_what_iperf3_cannot_do_is_unsupported_with_the_reason() -> None:
    transfer = Transfer(
        send="splice", tool=Tool("iperf3"), source=Source("files", count=3, size=10), preamble=5
    )
    why = tool_commands.unable(transfer)
    assert "it sends by write or sendfile" in why
    assert "one file as source" in why
    assert "preamble" in why
    assert "one size of buffer" in tool_commands.unable(
        Transfer(tool=Tool("iperf3"), receive_buffer=65536)
    )
    assert "page cache" in tool_commands.unable(
        Transfer(tool=Tool("iperf3"), source=Source("file", "/x"), cache="cold")
    )
    assert (
        tool_commands.unable(Transfer(tool=Tool("iperf3"), send_buffer=65536, receive_buffer=65536))
        == ""
    )


@pytest.mark.parametrize(
    ("pattern", "output"),
    [
        ("Rate: (?P<rate>.*)", "Rate: "),
        (r"(?P<bytes>\d+)? in (?P<seconds>\S+)", "lost in 3"),
        ("(?P<rate>x)|y", "y"),
    ],
)
def test_an_odd_line_of_a_tool_fails_its_run_alone(pattern: str, output: str) -> None:
    transfer = Transfer(tool=Tool("argv", ("mine",), pattern=pattern))
    with pytest.raises(ValueError, match="mine: no number where the pattern matches"):
        tool_commands.reading(transfer, output, "", 0)


def test_the_client_command_line() -> None:
    transfer = Transfer(
        send="sendfile", source=Source("file", "/a b"), chunk=131072, send_buffer=65536, congestion="cubic", rate=10**9, streams=4,
        tool=Tool("iperf3"), duration=1500 * 10**6, warmup=200 * 10**6,
    )  # fmt: skip
    made = tool_commands.commands(transfer, "10.0.0.2", 5000, (0, 1))
    assert " ".join(made.client) == (
        "iperf3 -c 10.0.0.2 -p 5000 -J -l 131072 -P 4 -t 2 -O 1 -w 65536 -C cubic -b 250000000 -Z -F /a b -i 60 -A 0"
    )
    bounded = tool_commands.commands(replace(transfer, bytes=10), "10.0.0.2", 5000, (None, None))
    words = " ".join(bounded.client)
    assert " -n 10 " in words
    assert " -i 60" in words, "with -n and -i 0, iperf3 3.18 never ends"
    server = ("iperf3", "-s", "-1", "-B", "10.0.0.2", "-p", "5000", "--forceflush")
    assert made.server == (*server, "-A", "1")
    one = tool_commands.commands(transfer, "10.0.0.2", 5000, (None, 1))
    assert ("-A" in one.client, one.server) == (False, (*server, "-A", "1"))
    assert tool_commands.commands(transfer, "10.0.0.2", 5000, (1, None)).server == server, (
        "the one that is not pinned runs anywhere"
    )
