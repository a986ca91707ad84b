"""This machine as a host: workers are child processes."""

from __future__ import annotations

import contextlib
import os
import platform
import select
import subprocess
import time
from collections.abc import Sequence

from netbench.base.errors import HostError
from netbench.hosts.deploy import HELPER, MOVER, START_SECONDS, start_worker, worker_file
from netbench.hosts.host_channel import Process
from netbench.hosts.shell import LINE, Shell

PATIENCE_SECONDS = 10  # how long a program may leave its input unread
ERROR_BYTES = 1 << 16  # of standard error that are looked at
# Who became root, and how, is of no account where root starts a worker.
ORIGINS = {"SUDO_UID", "DOAS_USER", "PKEXEC_UID"}
KEPT = {"PATH", "LANG"}  # what a mover that leaves root has of root's environment


class LocalProcess:
    """A child in a session of its own, so that a Ctrl-C at the terminal reaches only the
    controller. `bare`: with KEPT alone of the environment.
    """

    def __init__(self, argv: Sequence[str], bare: bool = False) -> None:
        pipe = subprocess.PIPE
        names = (KEPT if bare else os.environ.keys()) - ORIGINS
        environment = {name: text for name, text in os.environ.items() if name in names}
        self._child = subprocess.Popen(
            argv,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
            bufsize=0,
            env=environment,
        )
        if self._child.stdin is None or self._child.stdout is None or self._child.stderr is None:
            raise OSError("a child process without pipes")  # Popen made them: for the type checker
        self._in, self._out, self._err = self._child.stdin, self._child.stdout, self._child.stderr
        os.set_blocking(self._err.fileno(), False)
        os.set_blocking(self._in.fileno(), False)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._room = select.poll()
        self._room.register(self._in, select.POLLOUT)

    @property
    def pid(self) -> int:
        return self._child.pid

    def read(self, timeout: float) -> bytes:
        if not self._poll.poll(max(0.0, timeout) * 1000):
            raise TimeoutError
        return os.read(self._out.fileno(), 1 << 16)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while view:
            if not self._room.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError(f"it has not read its input for {PATIENCE_SECONDS} s")
            view = view[os.write(self._in.fileno(), view) :]

    def write_end(self) -> None:
        self._in.close()

    def finish(self, timeout: float) -> int | None:
        self._in.close()
        try:
            status: int | None = self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
            # one by sudo is root's: its input has ended
            with contextlib.suppress(PermissionError, subprocess.TimeoutExpired):
                self._child.kill()
                self._child.wait(timeout)
        self._out.close()
        return status

    def complaint(self) -> str:
        if self._err.closed:
            return ""
        text = self._err.read(ERROR_BYTES) or b""
        return "\n".join(text.decode("utf-8", "replace").strip().splitlines()[-3:])

    errors = complaint


class LocalChannel:
    """The machine that the controller runs on. `worker` replaces the command that starts one."""

    def __init__(self, name: str, worker: Sequence[str] = ()) -> None:
        self.name = name
        self._given = tuple(worker)

    @property
    def _worker(self) -> tuple[str, ...]:
        return self._given or (str(worker_file(platform.machine(), self.name)),)

    def start(self, argv: Sequence[str], bare: bool = False) -> LocalProcess:
        try:
            return LocalProcess(argv, bare)
        except OSError as error:
            raise HostError(
                f"{self.name}: cannot start {argv[0]}: {error.strerror}; check that it exists and"
                " is executable"
            ) from error

    def start_mover(self, run_as: str = "") -> LocalProcess:
        if not run_as:
            return self.start((*self._worker, MOVER))
        return self.start((*self._worker, MOVER, run_as), bare=os.geteuid() == 0)

    def start_helper(self) -> Process:
        if os.geteuid() == 0:
            return self.start((*self._worker, HELPER))
        process = self.start(("sh", "-c", LINE))
        try:  # by sudo: as on any other host
            return start_worker(Shell(process, self.name, START_SECONDS), HELPER)
        except BaseException:
            process.finish(1.0)
            raise

    def close(self) -> None:
        pass
