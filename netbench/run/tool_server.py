"""The server of an external tool, which lives as long as one run."""

from __future__ import annotations

import time
from contextlib import suppress

from netbench.base.errors import EngineError
from netbench.engine.binding import Edge
from netbench.engine.worker import Outcome, Worker
from netbench.run import job
from netbench.run.exchange import SLACK_SECONDS
from netbench.tools.search import SEARCHED, search
from netbench.tools.tool import shown

READY_SECONDS = 10.0
LOOK_SECONDS = 0.05  # for what has arrived to be read


class ToolServer:
    """A program on a worker, with a port. `printed`: the end of what it printed, as far as that was
    read; `ended`: it is known to have exited; `others`: who connected to it before its
    client.
    """

    def __init__(self, worker: Worker, port: int) -> None:
        self._worker, self._port = worker, port
        self.others: list[str] = []
        self.printed = ""
        self.ended = False

    def start(self, options: job.Options, ready: str) -> None:
        """Start it, and wait until its output matches `ready`; "": until it listens on the port.
        Errors: EngineError where it ends before; TimeoutError; ValueError for a pattern that takes
        for ever.
        """
        listens: job.Options = {} if ready else {"await_port": self._port}
        self._worker.prepare(options | {"marks": 1} | listens)
        self._worker.go()
        deadline = time.monotonic() + READY_SECONDS
        try:
            if not ready:
                self._worker.await_edge(Edge.WARM, READY_SECONDS)
            while ready and search([ready], self.printed) == [None]:
                self.read_more(deadline - time.monotonic())
        except TimeoutError as error:
            what = f"it listens on port {self._port}" if not ready else f"it prints {ready!r}"
            raise TimeoutError(
                f"{self._worker.host}: not ready within {READY_SECONDS:.0f} s, that is, until"
                f" {what}; it printed {shown(self.printed)}; write `ready`, a pattern of what it"
                " prints then, or correct it"
            ) from error

    def see_others(self) -> None:
        """Note who is connected before its client is, by ss(8); where there is none, nobody."""
        argv = ["ss", "-Htn", "state", "established", "sport", "=", f":{self._port}"]
        with suppress(EngineError):
            self.others = [
                line.split()[3] for line in self._worker.aside("exec", argv).splitlines()
            ]

    def read_more(self, seconds: float) -> None:
        """Wait until it prints more. Errors: TimeoutError; EngineError where it ends before."""
        text = self._worker.next_output(max(0.0, seconds))
        self.printed = (self.printed + text)[-SEARCHED:]

    def mark(self) -> None:
        """Open its window, or close it."""
        self._worker.mark()

    def has_ended(self) -> bool:
        """Look whether it has exited, by itself."""
        try:
            self._worker.await_edge(Edge.CLOSE, LOOK_SECONDS)
        except TimeoutError:
            return False
        self.ended = True
        return True

    def end(self) -> Outcome:
        """End it, after `mark` has closed its window, and get its result."""
        self._worker.stop()
        return self._worker.result(SLACK_SECONDS)
