"""netbench as its users run it: the command line, a campaign file, a result folder."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import netbench


def timed(*argv: str) -> float:
    """Seconds of a command of netbench, as its user waits for it. Errors: CalledProcessError."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-m", "netbench", *argv], capture_output=True, check=True)
    return time.monotonic() - begun


def run(text: str, folder: Path) -> netbench.Results:
    """`netbench run` on a campaign file of its own below `folder`. Errors: RuntimeError with what
    it printed when it failed.
    """
    file = folder / "campaign.yaml"
    file.write_text(text)
    argv = [sys.executable, "-m", "netbench", "run", str(file), "--results", str(folder / "r")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"`netbench run` ended with status {done.returncode}: {done.stderr.strip()[-2000:]}"
        )
    return netbench.load(done.stdout.splitlines()[-1])
