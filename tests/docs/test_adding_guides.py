"""The ```diff blocks of the guides to adding things are applied to a copy, built and used."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.local import ran
from tests.support.paths import ROOT

PARTS = ("native", "netbench", "pyproject.toml", "setup.py", "README.md", "LICENSE")
BUILT = shutil.ignore_patterns("*.so", "worker-*", "_native.c", "__pycache__")
STRICT = ("-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only")


def blocks(document: str, language: str) -> list[str]:
    """The fenced blocks of a document in docs/ in one language."""
    found = re.findall(
        rf"^```{language}\n(.*?)^```$",
        (ROOT / "docs" / document).read_text(),
        re.DOTALL | re.MULTILINE,
    )
    assert found, f"docs/{document} has no {language} block"
    return found


def copied(folder: Path, *documents: str, keep_build: bool = False) -> Path:
    """A copy of the project in `folder` with the diffs of these documents applied, and nothing else
    changed. With `keep_build` it has the engine as it is built here: enough for what is Python
    alone.
    """
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=None if keep_build else BUILT)
        elif source.exists():
            shutil.copy(source, folder / part)
    for document in documents:
        for diff in blocks(document, "diff"):
            subprocess.run(["git", "apply", "-"], cwd=folder, input=diff, text=True, check=True)
    return folder


def built(folder: Path) -> Path:
    """Build the copy's engine in place, as `pip install -e .` does; unoptimised, to be faster."""
    flags = folder / "netbench/engine/build_native.py"
    flags.write_text(flags.read_text().replace('"-O2"', '"-O0"'))
    done = ran([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def python(folder: Path, code: str) -> object:
    """Run Python code in the copy, with its netbench; its `answer` comes back as JSON."""
    check = f"import json, netbench; assert netbench.__file__.startswith({str(folder)!r}), netbench.__file__\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}
    command = [sys.executable, "-c", f"{check}{code}\nprint(json.dumps(answer))"]
    done = ran(command, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy with both toys, since building it takes a while."""
    return built(copied(tmp_path_factory.mktemp("toys"), "adding-a-method.md", "adding-a-meter.md"))


@pytest.mark.parametrize(
    ("document", "new", "table", "row"),
    [
        ("method", "native/src/methods/send_toy.c", "native/src/methods/table.c", "\trow(toy) \\"),
        ("meter", "native/src/meters/toyio.c", "native/src/meters/table.c", "\trow(toyio) \\"),
        (
            "section",
            "netbench/report/sections/spread.py",
            "netbench/report/sections/__init__.py",
            '    _Row("spread", of_cells=True),',
        ),
        ("setting", "netbench/settings/txqueuelen.py", "", ""),
        ("caution", "netbench/read/cautions/uneven.py", "", ""),
    ],
)
def test_a_toy_is_one_new_file_and_at_most_one_row(
    tmp_path: Path, document: str, new: str, table: str, row: str
) -> None:
    (diff,) = blocks(f"adding-a-{document}.md", "diff")
    copied(tmp_path, f"adding-a-{document}.md")
    assert set(re.findall(r"^\+\+\+ b/(\S+)", diff, re.MULTILINE)) == {new, table} - {""}
    assert diff.count("--- /dev/null") == 1
    if table:
        rows = diff.split(f"+++ b/{table}\n")[1].split("diff --git")[0]
        assert [line for line in rows.splitlines() if line[:1] in "+-" and line] == [f"+{row}"]


@pytest.mark.parametrize(
    ("document", "place"), [("adding-a-method.md", "methods"), ("adding-a-meter.md", "meters")]
)
def test_the_skeleton_compiles(tmp_path: Path, document: str, place: str) -> None:
    copied(tmp_path)
    for code in blocks(document, "c"):
        source = tmp_path / "native" / "src" / place / "skeleton.c"
        source.write_text(code)
        subprocess.run(["cc", *STRICT, f"-I{tmp_path}/native/include", str(source)], check=True)


RUN = """
from tests.support.engine_pair import open_pair
worker = (str(next(__import__("pathlib").Path("netbench/engine").resolve().glob("worker-*"))),)
answer = []
with open_pair(worker, worker) as pair:
    for more in (0, 1):
        sent, received = pair.run("toy", "read", {"more": more}, bytes=1_000_001, verify=1, meters="toyio")
        answer.append({"moved": received.moved("flow", "bytes"), "calls": sent.total("toy", "send_calls"), "corked": sent.total("toy", "corked_bytes"),
                       "same": sent.numbers("", "digest") == received.numbers("", "digest"),
                       "wchar": sent.moved("toyio", "wchar"), "syscr": received.moved("toyio", "syscr")})
"""


@pytest.mark.slow
def test_a_run_with_the_toys_moves_data_and_returns_their_counters(toys: Path) -> None:
    answer = python(toys, RUN)
    assert isinstance(answer, list)
    for more, run in enumerate(answer):
        assert run["moved"] == 1_000_001
        assert run["same"]
        assert run["calls"] >= 1_000_001 // 65536
        assert run["corked"] == more * 1_000_001
        assert run["syscr"] > 0


SETTING = """
import json, subprocess
from pathlib import Path
from netbench import campaign
from netbench.run import conductor
subprocess.run("ip link add nba0 type veth peer name nba1; ip addr add 10.199.8.1/24 dev nba0; ip link set nba0 up; ip link set nba1 up",
               shell=True, check=True)
length = lambda: json.loads(subprocess.check_output(["ip", "-j", "link", "show", "nba0"]))[0]["txqlen"]
text = '''netbench: 1
name: toy
hosts: {here: {address: 10.199.8.1, interface: nba0}}
transfer: {duration: 50ms, warmup: 10ms, sample: 0}
sweep: {txqueuelen: [123, 456]}
repeat: {min: 1, max: 1}
'''
before = length()
try:
    path = conductor.start(campaign.parse(text, "toy.yaml"), Path("results")).path
    records = [json.loads(line) for line in (path / "records.jsonl").read_text().splitlines()]
    answer = [sorted((r["status"], r["settings"]["sender"]["txqueuelen"]["read"]) for r in records), length() == before]
finally:
    subprocess.run(["ip", "link", "delete", "nba0"])
"""


@pytest.mark.root
@pytest.mark.netns
def test_a_toy_setting_is_swept_read_back_and_put_back(tmp_path: Path) -> None:
    folder = copied(tmp_path, "adding-a-setting.md", keep_build=True)
    assert python(folder, SETTING) == [[["ok", "123"], ["ok", "456"]], True]


CAUTION = """
from pathlib import Path
from tests.support.synthetic import Synth
from netbench.read.cautions.rule import rules
from netbench.report import build, html, markdown, text
import netbench.report.json as as_json

def uneven(record):
    flow = record["receiver"]["flow"]
    moved = flow["bytes"][1][0] - flow["bytes"][0][0]
    flow["bytes"] = [[0, 0], [moved * 3 // 4, moved // 4]]
    return record

sound = build.build(Synth(pairs=("snd>rcv",)).write(Path("sound")))
report = build.build(Synth(pairs=("snd>rcv",), edit=uneven).write(Path("uneven")))
forms = [render(report) for render in (text.render, html.render, markdown.render, as_json.render)]
answer = [("Spread of the runs" in form, "did not share the link evenly" in form) for form in forms]
answer += [[c.evidence for c in report.source.cautions], len(sound.source.cautions), "uneven" in {rule.name for rule in rules()}]
"""


def test_a_toy_section_and_a_toy_caution_are_in_every_form_of_a_report(tmp_path: Path) -> None:
    documents = ("adding-a-section.md", "adding-a-caution.md")
    answer = python(copied(tmp_path, *documents, keep_build=True), CAUTION)
    assert answer == [
        *[[True, True]] * 4,
        *(["the slowest stream moved 33% of the fastest"], 0, True),
    ]
