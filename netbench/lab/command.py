"""The programs of this machine that a lab is made with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

from netbench.base.control_characters import escape_controls
from netbench.base.errors import APT_INSTALL, LabError, LabRefused
from netbench.base.terminal import fold

PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "qemu-system-x86_64": "qemu-system-x86",
    "depmod": "kmod",
    "apt-get": "apt",
    "apt-cache": "apt",
    "dpkg-deb": "dpkg",
    "dpkg-query": "dpkg",
    "ldd": "libc-bin",
    "mke2fs": "e2fsprogs",
    "setpriv": "util-linux",
}
SYSTEM_FOLDERS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
_DEADLINE = 60.0
_TOGETHER = 8
_BATCH_LINE = re.compile(r"Command failed -:(\d+)")
_T = TypeVar("_T")


class TimedOut(LabError):
    """A program was killed, because it did not end in its time."""


class Tools(NamedTuple):
    """Programs by name. All of them inherit these descriptors: with the lock among them a lab stays
    locked until the last child of a killed maker is gone.
    """

    paths: Mapping[str, str]
    inherited: tuple[int, ...] = ()

    def attempt(
        self,
        argv: Iterable[str],
        text: str = "",
        *,
        seconds: float = _DEADLINE,
        cwd: Path = Path("/"),  # QEMU looks for its firmware there first
    ) -> subprocess.CompletedProcess[str]:
        """Run a program, its name replaced by its path, with `text` as its input. Errors: TimedOut
        when it hangs; LabError.
        """
        words = list(argv)
        words[0] = self.paths.get(words[0], words[0])
        environment = {"PATH": os.pathsep.join(SYSTEM_FOLDERS), "LC_ALL": "C"}
        try:
            return subprocess.run(
                words,
                input=text,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=seconds,
                cwd=cwd,
                pass_fds=self.inherited,
                env=environment,
                umask=0o022,
            )
        except subprocess.TimeoutExpired as error:
            raise TimedOut(f"cannot run {' '.join(words)}: {error}") from error
        except OSError as error:
            raise LabError(f"cannot run {' '.join(words)}: {error}") from error

    def run(self, argv: Iterable[str], text: str = "") -> str:
        """Run a program to its end; its output. Errors: LabError with what it printed."""
        words = list(argv)
        done = self.attempt(words, text)
        if done.returncode:
            raise LabError(
                f"{' '.join(words)} failed (exit {done.returncode}):"
                f" {_complaint(done.stderr or done.stdout, text)}"
            )
        return done.stdout

    def batch(self, argv: Iterable[str], lines: Iterable[str]) -> None:
        """Give ip or tc many commands at once. Errors: LabError with the line that failed."""
        self.run((*argv, "-batch", "-"), "".join(f"{line}\n" for line in lines))


def find(names: Iterable[str], *inherited: int) -> Tools:
    """The named programs. Errors: LabRefused with all that is missing and its packages."""
    folders = os.pathsep.join((os.environ.get("PATH", ""), *SYSTEM_FOLDERS))
    paths = {name: shutil.which(name, path=folders) for name in names}
    missing = [name for name, path in paths.items() if path is None]
    if missing:
        packages = " ".join(dict.fromkeys(PACKAGES[name] for name in missing))
        raise LabRefused(
            f"a lab needs {', '.join(missing)}, not installed on this machine; on Debian: "
            f"{APT_INSTALL} {packages}"
        )
    return Tools({name: path for name, path in paths.items() if path}, inherited)


def together(call: Callable[[_T], object], items: Iterable[_T]) -> None:
    """Call for every item, in parallel. Errors: the first item's that failed, after all that have
    begun have ended.
    """
    with ThreadPoolExecutor(_TOGETHER) as pool:
        list(pool.map(call, items))


def say(line: str) -> None:
    """Say something on standard error, folded on a terminal."""
    text = escape_controls(f"netbench: {line}")
    if sys.stderr.isatty():
        text = fold(text)
    print(text, file=sys.stderr, flush=True)


def _complaint(output: str, text: str) -> str:
    """The last words of a program; those about a line of a batch followed by that line."""
    match = _BATCH_LINE.search(output)
    words = " ".join(_BATCH_LINE.sub("", output).split()) or "it printed nothing"
    return f"{words} (in `{text.splitlines()[int(match[1]) - 1]}`)" if match else words
