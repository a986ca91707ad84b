"""The page of the five experiments says what the committed results say."""

from __future__ import annotations

import subprocess
import sys

from tests.support.paths import ROOT


def test_the_tables_are_those_of_the_results() -> None:
    argv = [sys.executable, "tools/experiments.py", "--check"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}; run {' '.join(argv[1:2])}"
