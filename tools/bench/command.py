"""netbench as its users run it: a campaign file, the command line, a result folder."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import netbench


@dataclass(frozen=True)
class Ran:
    """A campaign's result, and the seconds from the start of the command to its end."""

    results: netbench.Results
    seconds: float


def run(text: str, folder: Path) -> Ran:
    """`netbench run` on a campaign file of its own below `folder`. Errors: RuntimeError with what
    it printed when it failed.
    """
    file = folder / "campaign.yaml"
    file.write_text(text)
    argv = [
        sys.executable,
        "-m",
        "netbench",
        "run",
        str(file),
        "--results",
        str(folder / "results"),
    ]
    begun = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    if done.returncode:
        raise RuntimeError(
            f"`netbench run` ended with status {done.returncode}: {done.stderr.strip()[-2000:]}"
        )
    return Ran(netbench.load(done.stdout.splitlines()[-1]), seconds)
