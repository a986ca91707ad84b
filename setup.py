"""Build steps that pyproject.toml cannot say: the static worker executable beside the
cffi module.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "netbench" / "engine"))

import build_native  # noqa: E402


class BuildWorker(build_ext):
    """Beside the cffi module: the same sources as one static executable, to be copied to hosts."""

    def run(self) -> None:
        package = HERE if self.inplace or self.editable_mode else Path(self.build_lib)
        target = package / "netbench" / "engine" / build_native.worker_name()
        target.parent.mkdir(parents=True, exist_ok=True)
        command = build_native.worker_command(target)
        with subprocess.Popen(command, cwd=HERE) as worker:  # beside the module: halves the time
            super().run()
        if worker.returncode:
            raise subprocess.CalledProcessError(worker.returncode, command)


setup(
    cffi_modules=["netbench/engine/build_native.py:ffibuilder"], cmdclass={"build_ext": BuildWorker}
)
