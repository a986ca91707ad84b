"""Modules in the working directory are not imported: that folder may be anybody's."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from importlib.util import resolve_name
from pathlib import Path

import pytest

from netbench.hosts.local import LocalChannel
from tests.support.paths import ROOT

CAMPAIGN = "netbench: 1\nname: f\nverify: off\ntransfer: {duration: 20ms, warmup: 2ms}\nrepeat: {min: 1, max: 1}\n"
DECOY = "import os\nos.write(2, b'decoy ' + __name__.encode())\nos._exit(99)\n"


def loaded_by_python(tmp_path: Path) -> set[str]:
    """What Python imports for `-m` before the first line of a package."""
    (tmp_path / "probe.py").write_text("import sys\nprint(*sys.modules)\n")
    done = subprocess.run(
        [sys.executable, "-m", "probe"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
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


@pytest.mark.parametrize(
    "words", ["plan c.yaml", "run c.yaml --results out", "--version", "no-such-verb"]
)
def test_python_m_imports_nothing_of_the_working_directory(decoys: Path, words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "netbench", *words.split()],
        check=False,
        cwd=decoys,
        capture_output=True,
        text=True,
    )
    assert "decoy" not in done.stderr
    assert done.returncode == (2 if words == "no-such-verb" else 0), done.stderr


def test_a_worker_imports_nothing_of_the_working_directory(decoys: Path) -> None:
    (decoys / "netbench").mkdir()
    (decoys / "netbench" / "__init__.py").write_text(DECOY)
    done = subprocess.run(
        [*LocalChannel("here").worker_argv(), "mover"],
        check=False,
        cwd=decoys,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    assert b"decoy" not in done.stderr
    assert done.returncode == 0


def test_an_installed_script_is_declared() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"netbench": "netbench.__main__:main"}
    module, _, name = scripts["netbench"].partition(":")
    assert callable(getattr(__import__(resolve_name(module, None), fromlist=[name]), name))
