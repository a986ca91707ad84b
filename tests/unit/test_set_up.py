"""What a new user does first: README.md's lines, and the Makefile behind them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT


def printed(*argv: str, cwd: Path = ROOT, status: int = 0) -> str:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(("target", "develops"), [("demo", False), ("lint", True)])
def test_only_what_develops_installs_what_development_takes(target: str, develops: bool) -> None:
    requirements = re.findall(r"requirements.py(.*) >", printed("make", "--dry-run", "-B", target))
    assert [line.strip() for line in requirements] == ["", "dev"][: 1 + develops]


def test_packages_that_are_not_installed_are_named_with_the_line_that_installs_them(
    tmp_path: Path,
) -> None:
    line = "sudo apt-get install -y --no-install-recommends"
    (tmp_path / "README.md").write_text(f"{line} dpkg of-no-debian && make demo\n{line} nor-this\n")
    script = str(ROOT / "tools/packages.sh")
    assert printed(script, cwd=tmp_path) == "dpkg of-no-debian nor-this\n"
    said = printed(script, "missing", cwd=tmp_path, status=2)
    assert said.endswith(f"\n{line} of-no-debian nor-this\n")


@pytest.mark.parametrize(
    "name", ["README.md", "docs/tutorial/first-campaign.md", "campaigns/loopback.yaml"]
)
def test_what_is_tried_first_runs_where_a_user_may_not_choose_cubic(name: str) -> None:
    asked = re.findall(r'congestion(?:: |=)"?([a-z ]+)', (ROOT / name).read_text())
    assert asked
    assert all(each.strip() == "cubic or default" for each in asked)
