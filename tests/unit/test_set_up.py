"""What a new user does first: README.md's lines and the Makefile; and budgets of lines."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from netbench import campaign
from netbench.cli import parser
from tests.support.local import ran
from tests.support.paths import ROOT
from tools import size


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


def test_the_readme_is_short_and_its_campaign_and_links_are_good() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 80
    ((written,),) = [re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    asked = campaign.parse(written, "README.md").compare
    assert asked
    assert all(f"{asked.factor}={level}" in text for level in (asked.baseline, "sendfile"))
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert [link for link in links if not (ROOT / link).exists()] == []
    verbs = re.findall(r"netbench ([a-z]+) ", text.partition("```yaml")[2])
    assert set(verbs) <= parser.VERBS.keys() | {"beside"}


# One line length for everything that a person writes: 100 columns, a tab counting to the next
# multiple of 8. Python is ruff's (E501) and clang-format breaks C; here are the files that neither reads


WIDTH = 100
PATTERNS = "*.md *.yaml *.yml *.toml *.c *.h *Makefile :!results/** :!**/earlier_result/**".split()


def long_lines(text: str) -> Iterator[int]:
    """Numbers of lines too long, but for tables, single words and the README's command."""
    for number, line in enumerate(text.splitlines(), 1):
        exempt = line.startswith(("|", "sudo apt-get install ")) or " " not in line.strip()
        if len(line.expandtabs(8)) > WIDTH and not exempt:
            yield number


def test_lines_have_at_most_100_columns() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("which files are the project's is known in a clone only")
    files = ran(["git", "ls-files", "--", *PATTERNS], cwd=ROOT, check=True).stdout.splitlines()
    assert "README.md" in files
    assert "native/Makefile" in files
    long = [f"{file}:{n}" for file in files for n in long_lines((ROOT / file).read_text())]
    assert long == []


def test_the_house_keeps_to_its_budgets() -> None:
    """Rooms may take from each other."""
    sums = [row for row in size.table() if not row[0].startswith(" ")]
    over = [what for what, today, most in sums if most is not None and today > most]
    assert over == [], "see `make size`: what a new capability needs is added there, by its name"
