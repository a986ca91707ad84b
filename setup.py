"""Build steps that pyproject.toml cannot say: static worker executables beside the cffi module, and
the files that shells and `man` look for.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from argcomplete import shellcode
from setuptools import setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "netbench" / "engine"))

import build_native  # noqa: E402


class BuildWorker(build_ext):
    """Beside the cffi module: the same sources as static executables, to be copied to hosts."""

    def run(self) -> None:
        package = HERE if self.inplace or self.editable_mode else Path(self.build_lib)
        folder = package / "netbench" / "engine"
        folder.mkdir(parents=True, exist_ok=True)
        running = []  # beside the module: halves the time
        for machine, compiler in build_native.workers().items():
            command = build_native.worker_command(compiler, folder / f"worker-{machine}")
            running.append(subprocess.Popen(command, cwd=HERE))
        super().run()
        for worker in running:
            if worker.wait():
                raise subprocess.CalledProcessError(worker.returncode, worker.args)


def completion(shell: str, name: str) -> str:
    """The file that has a shell ask netbench what to complete; returns its path."""
    file = HERE / "build" / "share" / shell / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(shellcode(["netbench"], shell=shell))
    return str(file.relative_to(HERE))


setup(
    cffi_modules=["netbench/engine/build_native.py:ffibuilder"],
    cmdclass={"build_ext": BuildWorker},
    data_files=[
        ("share/man/man1", ["docs/share/netbench.1"]),
        ("share/bash-completion/completions", [completion("bash", "netbench")]),
        ("share/zsh/site-functions", [completion("zsh", "_netbench")]),
        ("share/fish/vendor_completions.d", [completion("fish", "netbench.fish")]),
    ],
)
