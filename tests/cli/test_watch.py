"""`watch`, and the view of `run`, on real terminals; what they must not do to a campaign."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from netbench.live.watched import snapshot
from netbench.report.source import Source
from tests.support.local import call, netbench_argv
from tests.support.running import Running, stored_records, wait_for
from tests.support.screen import Screen

KILLS = 2  # at random; `make bench PARTS=watch` has 50
COMPARED = """\
netbench: 1
name: compared
about: Which way is cheaper?
verify: off
meters: [rusage]
transfer: {duration: 40ms, warmup: 10ms, sample: 10ms, congestion: cubic}
sweep: {send: [write, sendfile, splice], chunk: [16K, 64K]}
compare: {factor: send, baseline: write, control: off}
repeat: {min: 4, max: 4, metrics: [throughput, system_cpu]}
"""
LONG = COMPARED.replace("min: 4, max: 4", "min: 200, max: 200")
OPENED = re.compile(r'open(?:at)?\((?:AT_FDCWD, |\d+, )?"([^"]+)", (\S+?)[,)]')
WRITING = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND")
OnTerminal = Callable[..., Screen]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished result of COMPARED."""
    folder = tmp_path_factory.mktemp("watch")
    (folder / "c.yaml").write_text(COMPARED)
    done = call("run", folder / "c.yaml", "--results", folder / "r")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[-1])


@pytest.fixture
def on_terminal() -> Iterator[OnTerminal]:
    """Starts a program on a terminal."""
    screens: list[Screen] = []

    def start(*words: str | Path, **options: Any) -> Screen:
        screens.append(Screen(netbench_argv(words), **options))
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A campaign that has begun, and is not over before it is ended."""
    campaign = Running(tmp_path, tmp_path / "r", LONG)
    campaign.await_records(1)
    yield campaign
    with suppress(ProcessLookupError):
        campaign.process.send_signal(signal.SIGINT)
    campaign.end()


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its time of change and its bytes."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_without_a_terminal_it_prints_where_the_campaign_stands(finished: Path) -> None:
    before = contents(finished)
    done = call("watch", "latest", "--results", finished.parent.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert "compared  done" in done.stdout
    assert "6 cells" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80 + len(str(finished))
    assert f"python -m netbench report {finished}" in " ".join(done.stdout.split())
    assert contents(finished) == before


def test_its_numbers_are_those_of_the_report(finished: Path) -> None:
    """Means, intervals, statuses and verdicts: one rule, whoever asks."""
    shown = snapshot(finished)
    source = Source.of(finished)
    assert [cell.cell for cell in shown.cells] == [cell.cell for cell in source.cells]
    for cell, reported in zip(shown.cells, source.cells, strict=True):
        assert (cell.runs, cell.failed) == (reported.n, 0)
        assert cell.status == reported.status
        for metric in ("throughput", "system_cpu"):
            interval = reported.intervals[metric]
            mine = cell.intervals[metric]
            assert mine.mean == pytest.approx(interval.mean)
            assert mine.precision == pytest.approx(interval.precision)
    families = [source.comparisons[name] for name in source.result.repeat.metrics]
    assert list(shown.findings.comparisons) == [c for family in families for c in family]
    assert len(shown.findings.comparisons) == 8


def test_it_opens_nothing_for_writing_and_locks_nothing(finished: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    calls = "open,openat,flock,fcntl,unlink,unlinkat,rename,renameat2,mkdir,mkdirat"
    # Not as what runs where nothing else wants a CPU: that takes minutes beside other tests.
    eager = "inject=sched_setscheduler:retval=0"
    strace = ["strace", "-f", "--seccomp-bpf", "-e", calls, "-e", eager, "-o", trace]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    argv = list(map(str, [*strace, *netbench_argv(["watch", finished])]))
    subprocess.run(argv, check=True, capture_output=True, env=env)
    text = trace.read_text()
    opened = OPENED.findall(text)
    assert any(name == "records.jsonl" for name, _ in opened)
    written = [name for name, flags in opened if any(word in flags for word in WRITING)]
    assert [name for name in written if not name.startswith("/dev/")] == []
    changing = r"\b(flock|F_SETLK\w*|F_OFD_SETLK\w*|unlink\w*|rename\w*|mkdir\w*)\b"
    assert re.findall(changing, text) == []


def test_what_matters_most_fits_in_80_columns_and_24_lines(
    on_terminal: OnTerminal, running: Running
) -> None:
    screen = on_terminal("watch", running.folder)
    screen.await_text("compared: send, against write")
    wait_for(lambda: "system_cpu" in screen.text)
    for part in ("compared  running", "of 1200 runs", "throughput Gb/s", "ends watching"):
        assert part in screen.text, screen.text
    assert os.sched_getscheduler(screen.process.pid) == os.SCHED_IDLE
    screen.resize(60, 12)
    screen.await_text("more cells")
    assert len(screen.lines) <= 12
    screen.press("\x03")
    assert screen.end() == 0
    assert screen.is_echoing()
    assert "Traceback" not in screen.text
    assert "no longer watched; the campaign goes on" in " ".join(screen.text.split())
    assert running.process.poll() is None


def test_killing_it_at_any_instant_does_nothing_to_the_campaign(
    on_terminal: OnTerminal, tmp_path: Path
) -> None:
    campaign = Running(
        tmp_path, tmp_path / "r", COMPARED.replace("min: 4, max: 4", "min: 6, max: 6")
    )
    campaign.await_records(1)
    followed = on_terminal("watch", campaign.folder)
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    print(f"seed {seed}")
    for _ in range(KILLS):
        screen = on_terminal("watch", campaign.folder)
        with suppress(subprocess.TimeoutExpired):
            screen.process.wait(chance.uniform(0.0, 1.5))
        screen.process.kill()
    assert campaign.end()[0] == 0
    assert followed.end() == 0
    assert "36 of 36 runs" in followed.text
    assert "the campaign is done: python -m netbench report" in " ".join(followed.lines)
    assert [record["run"] for record in campaign.records()] == list(range(1, 37))
    assert {record["status"] for record in campaign.records()} == {"ok"}


def test_how_a_campaign_has_ended_is_said(running: Running) -> None:
    running.process.kill()
    running.process.wait()
    told = " ".join(call("watch", running.folder).stdout.split())
    assert "no controller" in told
    assert f"`python -m netbench resume {running.folder}` continues it" in told
    assert snapshot(running.folder).state == "dead"


def test_what_is_damaged_or_unfinished(finished: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(finished, tmp_path / "copy")
    whole = (copy / "records.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "records.jsonl").write_bytes(b"".join(whole[:10]) + whole[10][:100])
    assert snapshot(copy).ledger.counts["ok"] == 10
    with open(copy / "campaign.yaml", "ab") as file:
        file.write(b"\xff\n")
    for folder, why in ((copy, "got the byte 0xff"), (tmp_path, "is not a result folder")):
        done = call("watch", folder)
        assert (done.returncode, why in done.stderr) == (2, True)


# The view of `run`


def test_run_shows_the_same_view_until_ctrl_c(on_terminal: OnTerminal, tmp_path: Path) -> None:
    """Which ends the campaign in order, and leaves a usable terminal."""
    (tmp_path / "c.yaml").write_text(LONG)
    words = ["run", tmp_path / "c.yaml", "--results", tmp_path / "r"]
    screen = on_terminal(*words, stdout=subprocess.PIPE)
    screen.await_text("compared: send, against write")
    assert "throughput Gb/s" in screen.text
    screen.press("\x03")
    printed = screen.process.communicate(timeout=60)[0].decode()
    assert screen.end() == 130, screen.text
    assert screen.is_echoing()
    assert not screen.display.cursor.hidden
    assert "Traceback" not in screen.seen.decode()
    assert "netbench: interrupted" in screen.text
    assert "throughput Gb/s" not in screen.text  # it is removed at the end
    assert "\x1b" not in printed
    (result,) = (tmp_path / "r").glob("*/[!.]*")
    assert printed.splitlines()[-1] == str(result)
    assert all(record["run"] for record in stored_records(result))


def test_a_message_stays_above_the_view(on_terminal: OnTerminal, tmp_path: Path) -> None:
    """Runs of a level fail, each of which is told; the view stays whole and says it too."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = f"port: [15000-15999, {taken.getsockname()[1]}]"
        text = LONG.replace("chunk: [16K, 64K]", port).replace("compare:", "# compare:")
        (tmp_path / "c.yaml").write_text(text)
        words = ["run", tmp_path / "c.yaml", "--results", tmp_path / "r"]
        screen = on_terminal(*words, lines=50, stdout=subprocess.DEVNULL)
        screen.await_text("9 failed")
        assert screen.text.count("compared  running") == 1
        assert screen.text.index("failed: here:") < screen.text.index("compared  running")
        assert "! run " in screen.text
        screen.process.send_signal(signal.SIGINT)
        screen.end()


# `transfer`


def test_transfer_shows_each_second_on_standard_error() -> None:
    done = call("transfer", "duration=2300ms", "warmup=0", "congestion=cubic")
    lines = re.findall(
        r"^ *([\d.]+)- *([\d.]+) s +([\d.]+) GB +([\d.]+) Gb/s sent  retransmits \d+$",
        done.stderr,
        re.M,
    )
    assert len(lines) >= 2, done.stderr
    for (_, end, *_), (begin, *_) in pairwise(lines):
        assert end == begin
    assert float(lines[0][1]) < 2  # it did not come at the end
    assert all(float(rate) > 0 for *_, rate in lines)
    assert "Gb/s  retransmits" not in done.stdout
