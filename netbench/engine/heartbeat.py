"""Heartbeats to all workers: one that gets none for SILENCE_SECONDS undoes its changes, exits."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from netbench.engine import binding

AT_ONCE = 64  # heartbeats that may be blocked in a write at the same time
LOOK_SECONDS = 1.0  # between two looks at which workers need one


class Receiver(Protocol):
    """What receives heartbeats (engine.worker.Worker); sending must neither wait nor raise."""

    @property
    def untold(self) -> float:
        """Seconds since something was sent to it."""
        ...

    def send_heartbeat(self) -> None: ...


class Heartbeat:
    """Tells all workers to which nothing was sent for a while that the controller is alive: at
    least every HEARTBEAT_SECONDS. A channel that blocks does not delay the others.
    """

    def __init__(self) -> None:
        self._workers: list[Receiver] = []
        self._sending: dict[Receiver, Future[None]] = {}
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="heartbeat")
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeats", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            with self._lock:
                workers = list(self._workers)
            self._sending = {w: sent for w, sent in self._sending.items() if not sent.done()}
            for worker in workers:
                due = worker.untold + LOOK_SECONDS >= binding.HEARTBEAT_SECONDS
                if due and worker not in self._sending:
                    self._sending[worker] = self._pool.submit(worker.send_heartbeat)

    def add(self, worker: Receiver) -> None:
        """Send heartbeats to this worker from now on."""
        with self._lock:
            self._workers.append(worker)

    def remove(self, worker: Receiver) -> None:
        """Send it no more."""
        with self._lock:
            self._workers = [other for other in self._workers if other is not worker]

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()
        self._pool.shutdown(wait=False, cancel_futures=True)
