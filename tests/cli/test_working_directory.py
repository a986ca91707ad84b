"""Modules in the working directory are not imported: that folder may be anybody's."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from importlib.util import resolve_name
from pathlib import Path

import pytest

from tests.support.engine_pair import WORKER
from tests.support.local import ran
from tests.support.paths import ROOT, SAMPLE
from tests.support.synthetic import Synth

CAMPAIGN = "netbench: 1\nname: f\nverify: off\ntransfer: {duration: 20ms, warmup: 2ms}\nrepeat: {min: 1, max: 1}\n"
DECOY = "import os\nos.write(2, b'decoy ' + __name__.encode())\nos._exit(99)\n"


def loaded_by_python(tmp_path: Path) -> set[str]:
    """What Python imports for `-m` before the first line of a package."""
    (tmp_path / "probe.py").write_text("import sys\nprint(*sys.modules)\n")
    done = ran([sys.executable, "-m", "probe"], cwd=tmp_path, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.fixture
def decoys(tmp_path: Path) -> Path:
    """A folder with a module of every name that can be imported, and a campaign."""
    names = {*sys.stdlib_module_names, *packages_distributions()} - {"netbench", "tests"}
    folder = tmp_path / "campaign"
    folder.mkdir()
    for name in names - loaded_by_python(tmp_path):
        if name.isidentifier():
            (folder / f"{name}.py").write_text(DECOY)
    assert (folder / "yaml.py").exists()
    (folder / "c.yaml").write_text(CAMPAIGN)
    return folder


def ends_without_decoy(argv: list[str], folder: Path, status: int = 0) -> None:
    """Run a program there: its status, and that it imported nothing of the folder."""
    done = subprocess.run(argv, check=False, cwd=folder, capture_output=True, input=b"")
    assert b"decoy" not in done.stderr
    assert done.returncode == status, done.stderr


@pytest.mark.parametrize("words", ["run c.yaml --results out", "no-such-verb"])
def test_python_m_imports_nothing_of_the_working_directory(decoys: Path, words: str) -> None:
    argv = [sys.executable, "-m", "netbench", *words.split()]
    ends_without_decoy(argv, decoys, 2 if words == "no-such-verb" else 0)


def test_a_worker_imports_nothing_of_the_working_directory(decoys: Path) -> None:
    (decoys / "netbench").mkdir()
    (decoys / "netbench" / "__init__.py").write_text(DECOY)
    ends_without_decoy([*WORKER, "mover"], decoys)


def test_an_installed_script_is_declared() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"netbench": "netbench.__main__:main"}
    module, _, name = scripts["netbench"].partition(":")
    assert callable(getattr(__import__(resolve_name(module, None), fromlist=[name]), name))


def test_modules_that_nobody_has_installed_are_not_found_there_either(tmp_path: Path) -> None:
    """pandas imports what it could use, from any relative entry of sys.path (`pip install -e`)."""
    asked = [sys.executable, "-P", "-c", "import sys; print(*sys.path, sep='\\n')"]
    entries = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split("\n")
    for entry in {entry for entry in entries if not os.path.isabs(entry)} | {"."}:
        (tmp_path / entry).mkdir(exist_ok=True)
        for name in ("pyarrow", "numexpr", "bottleneck", "gssapi", "sspi"):
            (tmp_path / entry / f"{name}.py").write_text(DECOY)
    made = Synth({"send": ("write",)}, runs=3).write(tmp_path / "made" / "r")
    ends_without_decoy(
        [sys.executable, "-m", "netbench", "report", str(made), "--html", "o.html"], tmp_path
    )


@pytest.mark.slow  # two reports with plots, of 10 s each
def test_a_style_of_drawings_in_the_working_directory_changes_no_report(tmp_path: Path) -> None:
    """matplotlib reads `matplotlibrc` of the working directory, which may make it run TeX."""
    pages = []
    for style in ("", "text.usetex: True\nfigure.facecolor: red\nfont.size: 40\n", None):
        (tmp_path / "matplotlibrc").unlink(missing_ok=True)
        if style is None:
            os.mkfifo(tmp_path / "matplotlibrc")
        else:
            (tmp_path / "matplotlibrc").write_text(style)
        command = [sys.executable, "-m", "netbench", "report", str(SAMPLE), "--html", "o.html"]
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
        pages.append((tmp_path / "o.html").read_text())
    assert pages[0] == pages[1] == pages[2]


LATE = """import os, sys
class Attacker:
    def find_spec(name, *_): name == "matplotlib" and os.mkfifo(sys.argv[1])
sys.meta_path.insert(0, Attacker)
import netbench.report.plots"""


def test_a_style_that_comes_with_the_import_is_not_read(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", LATE, str(tmp_path / "matplotlibrc")]
    subprocess.run(argv, cwd=tmp_path, check=True, timeout=60)
