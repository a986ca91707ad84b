"""The documentation site: the build is strict, and the built pages need no network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT


def build(out: Path, *source: Path) -> subprocess.CompletedProcess[str]:
    """Build the site as `make docs` does."""
    command = [sys.executable, "-m", "tools.docs", str(out), *map(str, source)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


DEAD = {  # a text, and what is said of it
    "[gone](gone.md)": "'gone.md'",
    "[gone](index.md#away)": "'away'",
    "[gone](../code/gone.py)": "gone.py",
    "![gone](gone.png)": "gone.png",
}


def test_each_dead_link_and_each_lost_page_fails_the_build(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.md").write_text("# Site\n\n```{toctree}\nfirst\n```\n")
    (pages / "first.md").write_text("\n\n".join(["# First", *DEAD]))
    (pages / "orphan.md").write_text("# Orphan\n")
    built = build(tmp_path / "out", pages)
    assert built.returncode != 0
    told = [*DEAD.values(), "orphan.md: WARNING: document isn't included in any toctree"]
    assert [said for said in told if said not in built.stderr] == []
    assert (tmp_path / "out" / "index.html").exists()
    assert fetched(tmp_path / "out") == []


def fetched(site: Path) -> list[str]:
    """What pages or styles of a site ask of the network."""
    found: list[str] = []
    for page in site.rglob("*.html"):
        tags = re.findall(r"<(?:link|script|img|iframe|source)\b[^>]*>", page.read_text())
        found += [tag for tag in tags if re.search(r"(?:src|href)=.?(?:https?:)?//", tag)]
    for style in site.rglob("*.css"):
        found += re.findall(r"@import|url\(.?(?:https?:)?//", style.read_text())
    return found


def test_the_site_builds_and_fetches_nothing(tmp_path: Path) -> None:
    built = build(tmp_path)
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "index.html").exists()
    assert fetched(tmp_path) == []


def test_the_manual_page_is_as_the_parser_is_now() -> None:
    from tools.docs import man_page

    assert man_page.written() == man_page.FILE.read_text(), "run `make reference`"


def test_every_generated_part_is_on_a_page_as_it_is_now() -> None:
    from tools.docs.reference import GENERATED, PLACE, written

    pages = [page.read_text() for page in (ROOT / "docs").rglob("*.md")]
    assert sorted([name for page in pages for _, name in PLACE.findall(page)]) == sorted(GENERATED)
    if sys.version_info[:2] != (3, 11):  # argparse lays help out otherwise
        pages = [page for page in pages if "<!-- generated: command-line -->" not in page]
    assert [page for page in pages if written(page) != page] == [], "run `make reference`"


def test_the_pages_of_promises_name_tests_that_there_are() -> None:
    pages = ("explanation/safety.md", "reference/settings.md", "reference/allow.md")
    page = "".join((ROOT / "docs" / name).read_text() for name in pages)
    tests = "".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"\b(test_\w+)\b(?!\.py)", page))
    assert [name for name in sorted(named) if f"def {name}(" not in tests] == []
