"""Results made to harm: no verb gives anything from outside, or hangs. Rows: CRAFTED, VERBS."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign
from netbench.base.opening import files_inside
from netbench.fleet import merge
from netbench.fleet.merged_files import write_runs
from netbench.fleet.parts import part_of
from netbench.result import bundles
from netbench.run import conductor
from netbench.tables import samples
from tests.support.local import call
from tests.support.unfinished import unfinished

SECONDS = 10
SECRET = "b54c1a: what only its owner may read"
CAMPAIGN = """\
netbench: 1
name: c
verify: off
hosts: {h1: local, h2: local}
pairs: [{sender: h1, receiver: h1}, {sender: h2, receiver: h2}]
transfer: {duration: 30ms, warmup: 2ms, sample: 10ms}
sweep: {send: [write, sendfile]}
compare: {factor: send, baseline: write}
repeat: {min: 2, max: 2}
profile: {cells: all, seconds: 100ms, runs: 1}
settings: {tcp_metrics: keep}
"""
Craft = Callable[[Path, Path], object]
"""Changes a result; the second path is the secret's, in a folder of its own that is one of
results' files.
"""


def relink(file: Path, target: Path) -> None:
    if file.is_dir():
        shutil.rmtree(file)
    file.unlink(missing_ok=True)
    file.symlink_to(target)


def link(name: str) -> Craft:
    return lambda result, secret: relink(result / name, secret)


def link_folder(name: str) -> Craft:
    """A folder of the result is elsewhere, with the secret under each name that is looked for."""

    def craft(result: Path, secret: Path) -> None:
        for each in (result / name).iterdir():
            shutil.copy(secret, secret.parent / each.name)
        relink(result / name, secret.parent)

    return craft


def pipe(name: str) -> Craft:
    def craft(result: Path, secret: Path) -> None:
        (result / name).unlink(missing_ok=True)
        os.mkfifo(result / name)

    return craft


def deep(result: Path, secret: Path) -> None:
    """1,500 folders, one in the other, as an archive may hold them."""
    here = os.open(result / "samples", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("a", dir_fd=here)
        below = os.open("a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def holes(names: str, size: int) -> Craft:
    """A line, or a file, of so many bytes, of which few are on the disk."""

    def craft(result: Path, secret: Path) -> None:
        for name in names.split():
            with (result / name).open("ab") as file:
                file.truncate(size)

    return craft


def text(names: str, old: str, new: str) -> Craft:
    """Another text in place of what a pattern finds, in one or several files; SECRET is its path."""

    def craft(result: Path, secret: Path) -> None:
        word = new.replace("SECRET", os.path.relpath(secret, result))
        for name in names.split():
            file = result / name
            file.write_text(re.sub(old, word, file.read_text()))

    return craft


def planned(key: str, value: str) -> Craft:
    """A value of the plan, wherever it is."""
    return text("plan.json", rf'("{key}": )[^,]*', rf"\g<1>{value}")


def renamed(name: str) -> Craft:
    """The factor has another name."""
    pattern = r'("send"(?=:)|(?<="factor": )"send"|(?<="swept": \[)\s*"send")'
    return text("plan.json records.jsonl", pattern, f'"{name}"')


def captured(name: str) -> Craft:
    """Each record holds what a tool printed, by this name."""
    found = json.dumps({name: {"text": "1", "value": 1.0, "unit": "s"}})
    return text("records.jsonl", "}\n", f',"captures":{found}}}\n')


def bomb(result: Path, secret: Path) -> None:
    """A YAML of 10^12 values, and one that holds itself."""
    levels = [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]" for n in range(1, 13)]
    with (result / "campaign.yaml").open("a") as file:
        file.write("\n".join(["x0: &x0 x", *levels, "self: &self [*self]", ""]))


FILES = "records.jsonl plan.json facts.json campaign.yaml journal.jsonl log.txt".split()
ALL = r"(?s)\A.*\Z"
SAMPLE = "samples/000001.jsonl"
LONG_NAMES = json.dumps({"ns": 1, "g": {f"c{i}{'c' * 4000}": 1 for i in range(900)}})
FOLDED = r'"file": ?"[^"]*"'
QUICK: Mapping[str, Craft] = {
    "records.jsonl is a pipe": pipe("records.jsonl"),
    "facts.json is a link": link("facts.json"),
    "samples is a link": link_folder("samples"),
    "samples is deep": deep,
    "a sample of 900 long names": text(SAMPLE, ALL, LONG_NAMES),
    "a sample of a number": text(SAMPLE, ALL, "5\n"),
    "a sample of lists": text(SAMPLE, ALL, "[1]\n" + "[" * 100_000),
    "a profile's name leads elsewhere": text("profiles/runs.jsonl", FOLDED, '"file":"../SECRET"'),
    "a campaign is a bomb": bomb,
    "a factor of no cell": text("plan.json", r'(?s)\A(.*?)"send"', r'\g<1>"sand"'),
    "a factor named cell": renamed("cell"),
    "a factor named boot": renamed("boot"),
    "a capture named status": captured("status"),
    "a capture named a.b": captured("a.b"),
    "a precision below 0": planned("precision", "-1"),
    "pairs of others": text("plan.json", '"h1>h1"', '"h3>h1"'),
    "100,001 pairs": text("plan.json", '"h1>h1"', ",".join(f'"h1>h{n}"' for n in range(1, 100002))),
    "every run failed": text("records.jsonl", '"status":"ok"', '"status":"failed"'),
    "bytes of a u64": text("records.jsonl", r'("bytes":\[\[)[^]]*', rf"\g<1>{2**64 - 1}"),
    "CPU time of a u64": text("records.jsonl", r'(steal":\[)[^]]*', rf"\g<1>0,{2**64 - 1}"),
    "CPUs of a u64": text(
        "records.jsonl", r'(pinned_cpus":\[)[^]]*', rf"\g<1>{2**64 - 1},{2**64 - 1}"
    ),
    "no character": text("campaign.yaml", r"\Z", 'about: "\\\\ud800"\n'),
    "records of a terabyte of holes": holes("records.jsonl", 1 << 40),
}
"""Rows that are tried without --slow, with the verbs that draw nothing."""
CRAFTED: Mapping[str, Craft] = {
    **QUICK,
    **{
        f"{name} is a link": link(name)
        for name in (
            *(*FILES, "id", "samples/noise.jsonl", SAMPLE, "samples/000001.txt"),
            *("profiles/runs.jsonl", "profiles/000001.system.folded", "report"),
        )
    },
    "profiles is a link": link_folder("profiles"),
    **{f"{name} is a pipe": pipe(name) for name in (*FILES, "id", SAMPLE, "samples/noise.jsonl")},
    **{f"{name} of 300 MB": holes(name, 300 << 20) for name in FILES},
    "a profile's name begins right": text(
        "profiles/runs.jsonl", FOLDED, '"file":"000001.system.folded/../../SECRET"'
    ),
    "an inventory is read": text("campaign.yaml", "{h1:", "{from: SECRET, h1:"),
    "a list of 500,000": text("campaign.yaml", r"\Z", f"zz: [{'x,' * 500_000}]\n"),
    "a plan of lists": text("plan.json", ALL, "[" * 100_000),
    "a factor named throughput": renamed("throughput"),
    "no runs": planned("min", "0"),
    "a name of two lines": planned("name", r'"c\\n  x"'),
    "levels of 60,000 characters": text("plan.json records.jsonl", "sendfile", "x" * 60_000),
    "a text of a terabyte of holes": holes("samples/000001.txt samples/000002.txt", 1 << 40),
    "a long word": text("records.jsonl", '"reason":"', f'"reason":"{"x" * 200_000}'),
}


class TookLong(BaseException):
    """No error that a verb would take for one of the system's."""


@contextmanager
def soon() -> Iterator[None]:
    """TookLong after SECONDS, also in the midst of open(2)."""

    def end(number: int, frame: object) -> None:
        raise TookLong

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two parts, whole, of which the first is crafted."""
    importlib.import_module("matplotlib.font_manager")  # it takes seconds to look for fonts
    place = tmp_path_factory.mktemp("parts")
    whole = campaign.parse(CAMPAIGN, "c.yaml")
    return [conductor.start(part_of(whole, n, 2), place / "r").path for n in (1, 2)]


VERBS = {
    "report": "report BAD --html OUT/r.html --markdown OUT/r.md --csv OUT/r.csv",
    "json": "report BAD --json",
    "redact": "report BAD --redact --html OUT/redacted.html",
    "index": "report --index HERE --html OUT/i.html",
    "list": "list results --results ALL",
    "query": "query 'SELECT * FROM samples, facts' BAD",
    "query of many": "query 'SELECT run FROM runs' ALL",
    "csv": "export --table samples BAD OUT/runs.csv",
    "parquet": "export BAD OUT/runs.parquet",
    "benchstat": "export --benchstat BAD OUT/b.txt",
    "merge": "merge BAD GOOD OUT/merged",
    "bundle": "bundle BAD --output OUT/b.zip",
    "bundle --redact": "bundle BAD --redact --output OUT/redacted.zip",
    "watch": "watch BAD",
    "compare": "compare GOOD BAD",
    "history": "compare GOOD GOOD --history HERE",
    "resume": "resume BAD --plain",
    "restore": "restore BAD",
}
MANY = ("index", "list", "query of many")
DRAWN = ("report", "redact", "bundle", "bundle --redact")
QUICK_VERBS = [verb for verb in VERBS if verb not in (*DRAWN, "parquet", "benchstat", "watch")]


def contents(folder: Path) -> Iterator[bytes]:
    """What of a folder's files, and of archives among them, is there to be read."""
    for file in folder.rglob("*"):
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                yield from map(archive.read, archive.namelist())
        elif file.is_file():
            yield file.read_bytes()


def check(place: Path, bad: Path, good: Path, verb: str) -> None:
    """One verb of a crafted result beside a good one."""
    out = place / f"out of {verb}"
    out.mkdir()
    with soon():
        places = {"BAD": bad, "GOOD": good, "HERE": good.parent, "ALL": good.parents[1], "OUT": out}
        named = re.compile(r"\b(BAD|GOOD|HERE|ALL|OUT)\b")
        line = shlex.split(VERBS[verb])
        done = call(*(named.sub(lambda name: str(places[name[0]]), word) for word in line))
    said = f"{verb}: {done.stdout[-500:]}{done.stderr}"
    assert "defect" not in done.stderr, said
    assert "Traceback" not in done.stderr, said
    assert done.returncode in ((0,) if verb in MANY else (0, 1, 2)), said
    assert (done.returncode == 0) or done.stderr.startswith(("netbench: ", "warning: ")), said
    told = "".join([done.stdout, done.stderr]).encode(errors="replace")
    assert [each for each in (told, *contents(out)) if SECRET.encode() in each] == [], said


@pytest.mark.parametrize(
    ("row", "verbs"),
    [
        *((row, QUICK_VERBS) for row in QUICK),
        ("samples is a link", DRAWN[-1:]),
        ("a long word", DRAWN[-1:]),
        ("no character", ["report", "bundle"]),
        ("samples is deep", ["bundle"]),
        ("a text of a terabyte of holes", ["merge", "bundle"]),
        ("levels of 60,000 characters", DRAWN[:1]),
        *(pytest.param(row, list(VERBS), marks=pytest.mark.slow) for row in CRAFTED),
    ],
)
def test_no_verb_is_harmed_by_a_crafted_result(
    parts: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    row: str,
    verbs: Sequence[str],
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "results" / "c"
    bad, good = (shutil.copytree(p, folder / f"20260301T00000{n}Z-a") for n, p in enumerate(parts))
    (bad / "report").mkdir()
    secret = tmp_path / "own" / "secret"
    secret.parent.mkdir()
    secret.write_text(f"{SECRET}\n")
    CRAFTED[row](unfinished(bad, 3), secret)
    try:
        for verb in verbs:
            check(tmp_path, bad, good, verb)
    finally:  # pytest, which removes what it has made, goes no 1,500 folders down
        subprocess.run(["rm", "-rf", tmp_path / "results"], check=True)


ANOTHERS = "{}.* is no host or pair of part 2/2"


@pytest.mark.parametrize(
    ("names", "own", "anothers", "why"),
    [
        (["facts.json"], "h2", "h1", ANOTHERS.format("facts.json")),
        (["samples/noise.jsonl"], "}\n", ',"kernel":["h1"]}\n', ANOTHERS.format("noise.jsonl")),
        (["profiles/runs.jsonl"], "h2", "h1", ANOTHERS.format("runs.jsonl")),
        (["*.json*", "samples/*.jsonl", "profiles/*.jsonl"], "h2", "h1", "yaml does not match"),
    ],
)
def test_a_part_says_nothing_of_hosts_that_are_another_parts(
    parts: list[Path], tmp_path: Path, names: list[str], own: str, anothers: str, why: str
) -> None:
    one, other = (shutil.copytree(part, tmp_path / part.name) for part in parts)
    for file in (file for name in names for file in other.glob(name)):
        told, of_all, rest = file.read_text().partition('"part":')
        file.write_text(told.replace(own, anothers) + of_all + rest)
    done = call("merge", one, other, tmp_path / "merged")
    assert done.returncode == 2, done.stderr
    assert re.search(why, done.stderr)
    assert not (tmp_path / "merged").exists()


@pytest.mark.root
def test_what_becomes_a_link_after_it_was_found_is_not_followed(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results of another account, who changes them while they are read."""
    result = shutil.copytree(parts[0], tmp_path / "c" / "r")
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"side": "s", "ns": 1, "auth": {"token": SECRET}}) + "\n")
    (result / "samples" / "000009.jsonl").write_text('{"side":"s","ns":1,"auth":{"token":"x"}}\n')
    for each in (result, *result.rglob("*")):
        os.chown(each, 1234, 1234)

    def found(*words: Any) -> list[Path]:
        files = files_inside(*words)
        for file in files:
            if file.name == "000009.jsonl":
                file.unlink()
                file.symlink_to(secret)
        return files

    monkeypatch.setattr(bundles, "files_inside", found)
    monkeypatch.setattr(samples, "files_inside", found)
    rows = "SELECT * FROM samples WHERE run = 9"
    for verb in (["query", rows, result], ["bundle", result, "--output", tmp_path / "b.zip"]):
        (result / "samples" / "000009.jsonl").unlink()
        (result / "samples" / "000009.jsonl").write_text("{}\n")
        done = call(*verb)
        assert done.returncode != 0, verb
        assert "a symbolic link, which is not followed" in done.stderr, verb
    monkeypatch.undo()
    for sample in files_inside(result, "samples/0*.jsonl"):
        os.truncate(sample, 1 << 40)
    assert "it is sparse" in call("query", rows, result).stderr
    assert not (tmp_path / "b.zip").exists()
    (result / "index.html").symlink_to(secret)
    (tmp_path / "own").mkdir()
    (result / "report").symlink_to(tmp_path / "own")
    for link in (result / "index.html", result / "report"):
        os.lchown(link, 1234, 1234)
    forms = [f"--{form}" for form in ("html", "markdown", "csv")]
    page = ["report", result, "--html", result / "index.html"]
    for words in (page, *(["report", result, form, result / "report" / "x"] for form in forms)):
        done = call(*words)
        assert (done.returncode, "is not followed; choose another" in done.stderr) == (2, True)
    assert SECRET in secret.read_text()
    assert list((tmp_path / "own").iterdir()) == []


def test_what_takes_the_place_of_a_merged_result_is_not_written(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the owner of the folder that it is made in."""
    own = tmp_path / "own"
    own.mkdir()

    def exchanged(*words: Any) -> None:
        draft = words[-1]
        draft.rename(tmp_path / "away")
        draft.mkdir()
        for name in ("samples", "profiles", "parts"):
            (draft / name).symlink_to(own)
        write_runs(*words)

    monkeypatch.setattr(merge, "write_runs", exchanged)
    assert "defect" not in call("merge", *parts, tmp_path / "out").stderr
    assert list(own.iterdir()) == []
    monkeypatch.undo()
    part = shutil.copytree(parts[0], tmp_path / "part")
    for name in ("000001", "000001.d.txt", "000001.txt"):
        (part / "samples" / name).write_text("* * * * * root id")
    assert call("merge", part, parts[1], tmp_path / "whole").returncode == 0
    merged = {file.name for file in (tmp_path / "whole" / "samples").iterdir()}
    assert {name.partition(".")[2] for name in merged} == {"txt", "jsonl"}
