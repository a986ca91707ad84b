"""This machine as a host that could be booted."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from netbench.base.errors import HostError
from netbench.hosts.host_channel import Result
from netbench.hosts.local import LocalChannel


class ThisMachine(LocalChannel):
    """Its programs and files, as those of another one are reached."""

    def run(self, argv: Sequence[str], timeout: float = 30.0) -> Result:
        try:
            done = subprocess.run(argv, capture_output=True, timeout=timeout, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HostError(f"{self.name}: cannot run {argv[0]}: {error}") from error
        output, errors = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
        return Result(tuple(argv), done.returncode, output, errors)

    def put(self, source: Path, target: str, mode: int = 0o644) -> None:
        shutil.copyfile(source, target)
        Path(target).chmod(mode)
