"""One part of a campaign as a task of an engine, on whatever machine it is started: a controller in
a process of its own, which goes on from the part's records where there are some.

All that engine and tasks know of each other is in a folder that both see:

    campaign.yaml state K/lease K/attempt-N K/progress.txt K/<name>/<UTC>-<id>/

A controller holds a lock on its part's lease as long as it lives, so no part is run twice at once.
An attempt is made once, whoever starts it again.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from netbench.base.errors import RequestError, StoreError
from netbench.base.locked import is_locked, lock
from netbench.base.opening import make_folder, open_inside, write_new
from netbench.base.ownership import refuse_exchangeable, refuse_foreign

CAMPAIGN, STATE, LEASE, PROGRESS = "campaign.yaml", "state", "lease", "progress.txt"
RUN, STOP = "run\n", "stop\n"
LOOK_SECONDS = 0.25
LEASE_SECONDS = 120.0  # an orphan ends its run, and puts back what it has changed
SAFE_PATH = "PYTHONSAFEPATH"  # set for Dask's processes; a controller has -P, its tools neither
_OF_DASK = (  # what is set for its workers, and no measurement should have
    SAFE_PATH,
    "MALLOC_TRIM_THRESHOLD_",
    *(f"{name}_NUM_THREADS" for name in ("OMP", "MKL", "OPENBLAS")),
)
# Ends in order when whoever started it is gone, in a session that no terminal interrupts.
_LAUNCH = """\
import ctypes, os, runpy, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv.pop(1)):
    sys.exit(130)
runpy.run_module("netbench", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class PartTask:
    """Part `number` of `of`, tried for the `attempt`-th time. `version`: of who asks for it."""

    folder: str
    number: int
    of: int
    attempt: int
    version: str = field(default_factory=lambda: version("netbench"))

    @property
    def own(self) -> Path:
        """The part's folder."""
        return Path(self.folder) / str(self.number)

    @property
    def label(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def result(self) -> Path | None:
        """Its result folder, once there is one."""
        records = sorted(self.own.glob("*/[!.]*/records.jsonl"))
        return records[0].parent if records else None


def run_part(task: PartTask) -> int:
    """Run a part, or go on with it; the controller's exit status, below 0 where a signal ended it.
    Errors: RequestError; StoreError where another controller has the part, or the attempt was made.
    """
    if task.version != (own_version := version("netbench")):
        raise RequestError(
            f"part {task.label}: netbench is {own_version} here and {task.version} where"
            " the campaign was started; install the same version"
        )
    try:
        refuse_exchangeable(Path(task.folder))  # a campaign is code
        refuse_foreign(Path(task.folder) / CAMPAIGN)
    except (OSError, StoreError) as error:
        raise RequestError(
            f"part {task.label}: {error}; on {socket.gethostname()} its folder is not what it is"
            " where the campaign was started: name one that all see with --results"
        ) from error
    make_folder(task.own, 0o755)
    try:
        attempt = task.own / f"attempt-{task.attempt}"
        os.close(open_inside(attempt, 0, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except FileExistsError as error:
        raise StoreError(f"part {task.label}: attempt {task.attempt} was made already") from error
    with _leased(task) as lease:
        how = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with os.fdopen(open_inside(task.own / PROGRESS, 0, how), "ab") as progress:
            child = subprocess.Popen(
                [sys.executable, "-P", "-c", _LAUNCH, str(os.getpid()), *_words(task)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=progress,
                pass_fds=[lease],
                start_new_session=True,
                env={k: v for k, v in os.environ.items() if k not in _OF_DASK},
            )
        os.ftruncate(lease, 0)
        os.pwrite(lease, f"{socket.gethostname()} {os.getpid()} {child.pid}\n".encode(), 0)
        stopped = False
        while child.poll() is None:
            if not stopped and is_stopped(Path(task.folder)):
                child.send_signal(signal.SIGTERM)
                stopped = True
            with suppress(subprocess.TimeoutExpired):
                child.wait(LOOK_SECONDS)
    return child.returncode


def _words(task: PartTask) -> list[str]:
    """The controller's command line."""
    if result := task.result:
        return ["resume", str(result), "--plain"]
    file = str(Path(task.folder) / CAMPAIGN)
    return ["run", file, "--part", task.label, "--results", str(task.own), "--plain"]


@contextmanager
def _leased(task: PartTask) -> Iterator[int]:
    """The part's lease, as a descriptor that the controller inherits. Errors: StoreError where
    another controller keeps it.
    """
    lease = open_inside(task.own / LEASE, 0, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + LEASE_SECONDS
        while not _take(lease):
            if time.monotonic() > deadline or is_stopped(Path(task.folder)):
                holder = " ".join(os.pread(lease, 200, 0).decode("utf-8", "replace").split())
                raise StoreError(
                    f"part {task.label} is run by another controller (host, task and process:"
                    f" {holder}); wait until it ends, or stop it"
                )
            time.sleep(LOOK_SECONDS)
        yield lease
    finally:
        os.close(lease)


def _take(lease: int) -> bool:
    try:
        lock(lease)
    except BlockingIOError:
        return False
    return True


def is_leased(own: Path) -> bool:
    """Whether a controller of a part lives."""
    return is_locked(own / LEASE)


def write_state(folder: Path, state: str) -> None:
    """Tell all tasks whether to go on: in place, since who opens a file of NFS sees what it holds,
    while a new name may be seen late.
    """
    write_new(folder / STATE, state.encode())


def is_stopped(folder: Path) -> bool:
    """Whether all parts are to end; also where the folder is gone."""
    try:
        return (folder / STATE).read_text(encoding="utf-8") == STOP
    except FileNotFoundError:
        return True
