"""One line length for everything that a person writes: 100 columns, a tab counting to the next
multiple of 8.

Python is ruff's (E501) and clang-format breaks C; here are the files that neither reads.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 100
PATTERNS = "*.md *.yaml *.yml *.toml *.c *.h *Makefile :!results/** :!**/earlier_result/**".split()


def long_lines(text: str) -> Iterator[int]:
    """The numbers of lines that are too long. Exempt: rows of a Markdown table, lines that are one
    word, such as an address, and the README's command that installs packages, which `.ci/run` reads
    as one line.
    """
    for number, line in enumerate(text.splitlines(), 1):
        exempt = line.startswith(("|", "sudo apt-get install ")) or " " not in line.strip()
        if len(line.expandtabs(8)) > WIDTH and not exempt:
            yield number


def test_lines_have_at_most_100_columns() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("which files are the project's is known in a clone only")
    listed = subprocess.run(
        ["git", "ls-files", "--", *PATTERNS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = listed.stdout.splitlines()
    assert "README.md" in files
    assert "native/Makefile" in files
    long = [f"{file}:{n}" for file in files for n in long_lines((ROOT / file).read_text())]
    assert long == []
