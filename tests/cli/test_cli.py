"""The command line as a user meets it: verbs, exit codes, what goes to stdout and what to stderr."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path

import jsonschema
import pytest
import yaml

from netbench import api, campaign, load
from netbench.__main__ import SAME_SECONDS
from netbench.cli import choices
from netbench.plan.plan import Plan
from tests.support.local import SMALL, Command, call, netbench_argv, ran
from tests.support.paths import ROOT, SAMPLE
from tests.support.running import Running, resumed, stored_records, wait_for

VERBS = "check plan run resume watch report list transfer meter schema compare export restore lab".split()
HEAVY = (
    *"pandas matplotlib fabric paramiko numpy scipy pydantic cffi rich dask distributed".split(),
    *"yaml netbench.model dataclasses tempfile fractions datetime".split(),
)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished result of SMALL, shared by the tests that only read."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "small.yaml").write_text(SMALL)
    done = ran(netbench_argv(["run", "small.yaml"]), cwd=folder, check=True)
    path = folder / done.stdout.splitlines()[-1]
    assert re.fullmatch(r"small/\d{8}T\d{6}Z-[0-9a-f]{6}", f"{path.parent.name}/{path.name}")
    return path


def long_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if len(line) > 80]


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_has_80_columns(netbench: Command, verb: str) -> None:
    done = netbench(*verb.split(), "--help")
    assert done.returncode == 0
    assert long_lines(done.stdout) == []
    assert f"netbench {verb}" in done.stdout
    assert verb or all(f"\n    {each}" in done.stdout for each in VERBS)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    formats = "(formats: results 2, printed 1)"
    assert netbench("-V").stdout == f"netbench {project['version']} {formats}\n"
    assert netbench(*f"help {verb}".split()).stdout == done.stdout


def test_help_and_version_import_nothing_heavy() -> None:
    """Nor does the help of what may use Dask import that."""
    code = (
        "import sys; from netbench.__main__ import main; main(['--help']); main(['--version'])\n"
        f"heavy = [m for m in {HEAVY} if m in sys.modules]; main(['run', '--help'])\n"
        "heavy += {'dask', 'distributed', 'netbench.fleet.dask_engine'} & sys.modules.keys()\n"
        "print(*heavy, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout != "", done.stderr.strip()) == (True, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nonsense", "there is no verb 'nonsense'; `python -m netbench help` lists the verbs"),
        ("rport x", "did you mean report?"),
        ("", "run a campaign; prints its summary"),
        *(("run missing.yaml", ""), ("report nowhere", "")),
        ("report campaigns/loopback.yaml", "is a campaign file"),
        ("meter perff", "is not known; did you mean perf?"),
        ("report", "--index DIR"),
        ("report --index results latest", "leave out a result"),
        ("report --index no-such-folder", "no such folder"),
    ],
)
def test_a_wrong_request_exits_2_and_says_why(
    netbench: Command, tmp_path: Path, words: str, said: str
) -> None:
    shutil.copytree(SAMPLE, tmp_path / "results" / "sample" / SAMPLE.name)
    shutil.copytree(ROOT / "campaigns", tmp_path / "campaigns")
    done = netbench(*words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip()
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_progress_goes_to_stderr_the_report_to_stdout_and_what_was_set_is_kept(
    netbench: Command, small_file: Path, tmp_path: Path
) -> None:
    sets = [w for s in ("transfer.chunk=4K", "repeat.max=3", "repeat.min=3") for w in ("--set", s)]
    done = netbench("run", small_file, "--results", "elsewhere", *sets)
    assert done.returncode == 0
    assert "at least 6 runs" in done.stderr
    assert "at least 6 runs" not in done.stdout
    folder = done.stdout.splitlines()[-1]
    assert folder.startswith("elsewhere/small/")
    kept = yaml.safe_load((tmp_path / folder / "campaign.yaml").read_text())
    assert kept["transfer"]["chunk"] == "4K"
    plan = json.loads(netbench("plan", small_file, "--quick", "--json").stdout)
    small = campaign.load(tmp_path / small_file, ["compare.factor=send"])
    assert small.compare
    assert small.compare.baseline == "write", "the first level"
    assert plan["seconds"] == pytest.approx(2 * 3 * 1.2, abs=1.5)


def test_plan_changes_nothing_and_has_the_documented_keys(
    netbench: Command, small_file: Path, tmp_path: Path
) -> None:
    before = sorted(tmp_path.iterdir())
    plan = json.loads(netbench("plan", small_file, "--json").stdout)
    assert [cell["cell"] for cell in plan["cells"]] == ["send=write", "send=sendfile"]
    assert [cell["factors"] for cell in plan["cells"]] == [{"send": "write"}, {"send": "sendfile"}]
    assert sorted(plan["order"]) == ["send=sendfile", "send=write"]
    assert plan["runs_total"] == 4
    assert plan["seconds"] > 0
    text = netbench("plan", small_file).stdout
    assert "2 runs a cell; order from seed 5" in text
    assert long_lines(text) == []
    assert "send=sendfile" in text
    assert sorted(tmp_path.iterdir()) == before


def test_check_says_what_it_found_and_once_what_holds_for_many_hosts(
    netbench: Command, tmp_path: Path
) -> None:
    """In text; as JSON each host has its own."""
    file = tmp_path / "many.yaml"
    file.write_text("netbench: 1\nname: many\nhosts: {'h[1-12]': local}\npairs: ring\n")
    text = netbench("check", file).stdout
    assert long_lines(text) == []
    (told,) = [line for line in text.splitlines() if "engine" in line]
    assert told.startswith("ok: h[1-12]: engine ")
    done = netbench("check", file, "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["possible"]) == (0, True)
    engines = [row for row in found["findings"] if row["what"].startswith("engine ")]
    assert {row["level"] for row in engines} == {"ok"}
    assert sorted(row["host"] for row in engines) == sorted(f"h{n}" for n in range(1, 13))


def test_the_report_shows_the_throughput_of_the_records(netbench: Command, result: Path) -> None:
    ends = [r["receiver"] for r in stored_records(result) if r["cell"] == "send=write"]
    by_hand = [
        8 * (sum(r["flow"]["bytes"][1]) - sum(r["flow"]["bytes"][0])) / (end - begin)
        for r in ends
        for begin, end in [r["time_ns"]]
    ]
    mean = sum(by_hand) / len(by_hand)
    numbers = re.findall(r"\d+\.\d+", netbench("report", result, "--json").stdout)
    assert any(abs(float(n) - mean) < 1e-6 * mean for n in numbers)


def test_a_form_may_take_the_place_of_the_text(
    netbench: Command, result: Path, tmp_path: Path
) -> None:
    for kind in ("csv", "markdown", "html"):
        done = netbench("report", result, f"--{kind}", "-")
        netbench("report", result, f"--{kind}", "file")
        assert done.stdout.rstrip() == (tmp_path / "file").read_text().rstrip(), kind
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file"]
    assert netbench("query", "show tables;", result).stdout.split()[2:4] == ["runs", "cells"]


def test_a_finished_result_is_left_alone(netbench: Command, result: Path) -> None:
    before = (result / "records.jsonl").read_bytes()
    done = netbench("resume", result)
    assert done.returncode == 0
    assert "is finished" in " ".join(done.stderr.split())
    assert done.stdout.splitlines()[-1] == str(result)
    assert "Cautions" not in done.stdout, "its records were not read for a summary"
    assert (result / "records.jsonl").read_bytes() == before


@pytest.mark.parametrize("what", choices.KINDS)
def test_each_list_as_text_and_as_json(netbench: Command, what: str) -> None:
    done = netbench("list", what)
    assert done.returncode == 0
    assert long_lines(done.stdout) == []
    found = json.loads(netbench("list", what, "--json").stdout)
    assert isinstance(found, list)
    assert {row["kind"] for row in found if what != "methods"} <= {what.removesuffix("s")}
    if what == "methods":
        names = {(row["kind"], row["name"]) for row in found}
        assert {("send", n) for n in "null write readwrite sendfile splice mmap".split()} <= names
        assert {("receive", n) for n in "null read trunc splice".split()} <= names


def test_transfer_measures_one_cell_and_leaves_nothing(netbench: Command, tmp_path: Path) -> None:
    source = tmp_path / "f"
    source.write_bytes(b"x" * 100000)
    words = f"source={source} send=sendfile duration=50ms warmup=10ms congestion=cubic".split()
    done = netbench("transfer", *words, "--full")
    assert done.returncode == 0, done.stderr
    assert "Gb/s" in done.stdout
    assert "sendfile_calls" in done.stdout
    assert long_lines(done.stdout) == []
    json.loads(netbench("transfer", *words, "--json").stdout)
    assert sorted(tmp_path.iterdir()) == [source]


def test_a_path_that_cannot_be_read_is_one_line_and_exits_2(
    netbench: Command, result: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(result, tmp_path / "copy")
    (copy / "records.jsonl").unlink()
    (copy / "records.jsonl").mkdir()
    for verb in ("report", "resume"):
        done = netbench(verb, copy)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr


def test_meter_shows_each_cpu(netbench: Command) -> None:
    done = netbench("meter", "procstat", "--seconds", "0.2")
    assert done.returncode == 0
    rows = [line.split() for line in done.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == [str(n) for n in range(os.sysconf("SC_NPROCESSORS_CONF"))]
    found = json.loads(netbench("meter", "procstat", "--seconds", "0.2", "--json").stdout)
    assert found["counters"]["idle"][1] >= found["counters"]["idle"][0]
    wrong = netbench("meter", "procstats")
    assert (wrong.returncode, "did you mean procstat" in wrong.stderr) == (2, True)


def test_schema_accepts_our_campaigns_and_refuses_a_wrong_one(netbench: Command) -> None:
    check = jsonschema.Draft202012Validator(json.loads(netbench("schema").stdout))
    for file in sorted((ROOT / "campaigns").glob("*.yaml")):
        check.validate(yaml.safe_load(file.read_text()))
    assert not check.is_valid({"netbench": 1, "name": "x", "transfr": {}})


LONG = SMALL.replace("60ms", "150ms").replace("{min: 2, max: 2}", "{min: 6, max: 6}")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A campaign under way."""
    started = Running(tmp_path, tmp_path / "results", LONG, start_new_session=True)
    yield started
    if started.process.poll() is None:
        os.killpg(started.process.pid, signal.SIGKILL)
        started.process.communicate()


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


# a terminal that closes is among the faults
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_all_records_and_resume_goes_on(running: Running, signum: int) -> None:
    running.await_records(3)
    workers = running.workers()
    os.kill(running.process.pid, signum)
    out, err = running.process.communicate(timeout=60)
    assert running.process.returncode == 130
    assert "resume" in err
    kept = running.records()
    assert len(kept) >= 3
    assert not any(map(is_there, workers))
    resumed(Path(out.splitlines()[-1]))
    after = running.records()
    assert after[: len(kept)] == kept
    assert [r["reason"] for r in after if r["status"] not in ("ok", "interrupted")] == []
    good = [(r["cell"], r["block"]) for r in after if r["status"] == "ok"]
    assert sorted(good) == sorted(product(("send=write", "send=sendfile"), range(6)))


def test_an_interrupt_in_an_exec_does_not_end_it_by_the_signal(tmp_path: Path) -> None:
    """Imports run exec, as for each dataclass: Ctrl-C may come in one."""
    (tmp_path / "interrupted.py").write_text(
        "import sys; from netbench import __main__ as command\n"
        "command._outcome = lambda words: exec('raise KeyboardInterrupt')\n"
        "sys.exit(command.main())\n"
    )
    argv = [sys.executable, "-m", "interrupted"]
    assert subprocess.run(argv, cwd=tmp_path, check=False).returncode == 130


@pytest.mark.parametrize(
    ("before", "says"),
    [
        ("signal.signal(signal.SIGCHLD, signal.SIG_IGN)", ""),
        ("os.mkdir('gone'), os.chdir('gone'), os.rmdir('../gone')", "go to another: `cd`"),
    ],
)
def test_what_a_parent_hands_on_hangs_nothing(tmp_path: Path, before: str, says: str) -> None:
    words = ["transfer", "duration=50ms", "warmup=0s"]
    script = f"import os, signal, sys; {before}; os.execv(sys.argv[1], sys.argv[1:])"
    argv = [sys.executable, "-c", script, *netbench_argv(words)]
    run = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    done = run(argv, check=False)
    assert done.returncode == (2 if says else 0), done.stderr
    assert says in done.stderr
    assert "defect" not in done.stderr


def test_a_second_interrupt_ends_at_once_and_loses_nothing(running: Running) -> None:
    running.await_records(2)
    workers = running.workers("mover")
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)  # so that stopping them takes its time
    os.kill(running.process.pid, signal.SIGINT)
    first = time.monotonic()  # later than this it takes the second for another one
    alive = lambda: running.process.poll() is None  # noqa: E731
    wait_for(lambda: time.monotonic() - first > 2 * SAME_SECONDS, alive)
    os.kill(running.process.pid, signal.SIGINT)
    running.process.communicate(timeout=60)
    assert running.process.returncode == 130
    kept = running.records()
    for pid in workers:
        with suppress(ProcessLookupError):  # a controller that had the time has killed it
            os.kill(pid, signal.SIGCONT)
    resumed(running.folder)
    assert running.records()[: len(kept)] == kept


def test_a_killed_controller_loses_only_the_run_in_flight(running: Running) -> None:
    running.await_records(3)
    workers = running.workers()
    assert len(running.workers("mover")) == 2
    running.process.kill()
    running.process.communicate()
    kept = running.records()
    wait_for(lambda: not any(map(is_there, workers)), seconds=30)  # they do not outlive it
    assert resumed(running.folder) == list(range(1, 13))
    after = running.records()
    assert after[: len(kept)] == kept
    plan = Plan(campaign.parse((running.folder / "campaign.yaml").read_text(), "campaign.yaml"))
    order = [u.cell.id for block in range(6) for u in plan.wanted(block, lambda key: True, ())]
    assert [r["cell"] for r in after] == order, "resume keeps the order of the plan"


def test_names_of_results(result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    b, a, c = "b/20260101T000000Z-aa", "a/20260301T000000Z-bb", "b/20260201T000000Z-cc"
    for name in (b, a, c):
        shutil.copytree(result, tmp_path / "results" / name)
    names = {"latest": a, "latest~1": c, "latest~2": b, "b": c, "b~0": c, "b~1": b, "a": a}
    assert {n: str(api.find_result(n).relative_to("results")) for n in names} == names
    for word in ("nowhere", "b/..", "~1", "results"):  # paths, there or not
        assert api.find_result(word) == Path(word)
    assert load("b~1").path == Path("results") / b
    done = call("report", "b~2")
    assert done.returncode == 2
    assert "there are 2 of these results below results" in done.stderr
    done = call("compare", "b~1", "a", "--json", "--force")
    assert json.loads(done.stdout)["results"] == {"A": f"results/{b}", "B": f"results/{a}"}
    done = call("export", "b~1", "latest", "a.csv")
    assert (done.returncode, Path("a.csv").exists()) == (0, True), done.stderr
    for words in ("report nowhere", "query SELECT~1 nowhere", "resume nowhere", "restore nowhere"):
        done = call(*words.split())
        assert (done.returncode, "a campaign's NAME, or latest" in done.stderr) == (2, True)


def test_latest_is_the_newest_result_and_a_page_and_a_list_have_all(
    netbench: Command, result: Path, tmp_path: Path
) -> None:
    for name in ("b/20260101T000000Z-aaaaaa", "a/20260301T000000Z-bbbbbb", "c/20260201T000000Z-cc"):
        shutil.copytree(result, tmp_path / "results" / name)
    rows = json.loads(netbench("list", "results", "--json").stdout)
    assert [Path(row["folder"]).parent.name for row in rows] == ["a", "c", "b"]
    (tmp_path / rows[1]["folder"] / "records.jsonl").write_text("{}\n")
    assert netbench("report", "latest").returncode == 0
    (tmp_path / rows[0]["folder"] / "records.jsonl").write_text("{}\n")
    done = netbench("report", "latest")
    assert (done.returncode, rows[0]["folder"] in done.stderr) == (1, True)
    done = netbench("report", "--index", "results")
    assert (done.returncode, done.stdout) == (0, "results/index.html\n")
    assert "records.jsonl:1" in (tmp_path / "results" / "index.html").read_text()
    told = netbench("list", "results").stdout
    assert all(word in told for word in ("unreadable", "finished", "results/b/20260101T000000Z-aa"))
    first, *_, last = json.loads(netbench("list", "results", "--json").stdout)
    assert (first["status"], last["status"]) == ("unreadable", "finished")
    assert last["finding"]
    assert "records.jsonl:1" in first["why"]
    (tmp_path / "results").rename(tmp_path / "elsewhere")
    done = netbench("report", "latest", "--results", "elsewhere")
    assert (done.returncode, "elsewhere/a/" in done.stderr) == (1, True)
    done = netbench("compare", "elsewhere/b/20260101T000000Z-aaaaaa", "latest")
    assert (done.returncode, "no results below results" in done.stderr) == (2, True)


# Input that must end as a plain error with exit status 2. A new case is one row: what the message
# says, a campaign file, and the words of the command


TOP = "netbench: 1\nname: x\n"
PLAN = ("plan", "c.yaml")
DEEP = ".".join(["a"] * 3000)


@dataclass(frozen=True)
class Bad:
    """A file, a command line, and what standard error says about them."""

    says: str
    file: str = ""
    words: Sequence[str | bytes] = PLAN
    without: Sequence[str] = field(default=())


CASES = {
    # --set PATH=VALUE
    "a path of 3,000 steps": Bad("at most 32 levels", "", (*PLAN, "--set", f"{DEEP}=1")),
    "a transfer with 3,000 steps": Bad("at most 32 levels", "", ("transfer", f"{DEEP}=1")),
    "a key that is not UTF-8": Bad("U+DCFF", "", (*PLAN, "--set", b"a\xff=1")),
    "a transfer's key that is not UTF-8": Bad("U+DCFF", "", ("transfer", b"a\xff=1")),
    "a key that moves the cursor": Bad(
        "U+001B", "", (*PLAN, "--set", "a\x1b[2J=1"), without=["\x1b"]
    ),
    # times and names
    "a transfer of 1 ns": Bad(
        "duration: expected auto or a time of at least 1ms", "", ("transfer", "duration=1ns")
    ),
    "a folder of results with a name of 300 letters": Bad(
        "File name too long; give a shorter name",
        "transfer: {duration: 10ms, warmup: 0}\nrepeat: {min: 1, max: 1}\n",
        ("run", "c.yaml", "--results", "a" * 300),
        without=["make it writable"],
    ),
    # characters that make a text look like another one
    "a text that turns the writing": Bad(
        "3: expected text, got the control character U+202E",
        'about: "abc \u202e def"\n',
        without=["\u202e"],
    ),
    # rows of include, levels and keys
    "a row that --set of a factor has left without its level": Bad(
        "include[0]: this matches no cell",
        "sweep: {send: [write], chunk: [1K, 2K]}\ninclude: [{chunk: 1K, streams: 2}]\n",
        (*PLAN, "--set", "sweep.chunk=[4K]"),
    ),
    "a transfer with a setting": Bad("did you mean 'settings.mtu'?", "", ("transfer", "mtu=9000")),
    **{
        change: Bad("nothing is known that undoes", "", ("ab", "c.yaml", "--change", change))
        for change in ("ethtool -K eth0 tso off", "sysctl -w a.b=1 c.d=2", "sysctl -w a.b=1; true")
    },
    "the latest of no results": Bad("no results below results", "", ("report", "latest")),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_bad_input_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Bad
) -> None:
    (tmp_path / "c.yaml").write_text(TOP + case.file)
    monkeypatch.chdir(tmp_path)
    done = call(*case.words)
    message = " ".join(done.stderr.split())
    assert (done.returncode, done.stdout) == (2, ""), message
    assert case.says in message
    assert [part for part in ("defect", *case.without) if part in message] == []
    assert not (tmp_path / "results").exists()


def test_letters_of_other_scripts_are_text(tmp_path: Path) -> None:
    about = "שלום, μs, 中文, सहयोग, 👩‍🔬"
    (tmp_path / "c.yaml").write_text(f"{TOP}about: {about}\n")
    assert about in ran(netbench_argv(PLAN), cwd=tmp_path, check=True).stdout
