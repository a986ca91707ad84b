"""One transfer between two workers: which messages each gets, in which order, and what both
answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from netbench.base.errors import EngineError, NetbenchError, ProtocolError, WorkerLost
from netbench.engine.binding import SAME, Code, Edge, Vector
from netbench.engine.frames import number_of
from netbench.engine.worker import IDLE_SECONDS, Outcome, Worker
from netbench.run.job import Options

SLACK_SECONDS = 30.0  # beyond the times that were asked for: connecting, draining
# A bytes-bounded run has no known length; heartbeats tell whether the workers live.
UNBOUNDED_SECONDS = 6 * 3600.0
FSYNC_SECONDS = 600.0  # that a sink may take to reach its disk
LAST_WORD_SECONDS = 1.0  # after one side has failed, for the other to say why
LOOK_SECONDS = 2.0  # how often it is looked whether both sides live
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Exchange:
    """What both sides answered."""

    sender: Outcome
    receiver: Outcome


@dataclass(frozen=True)
class Watch:
    """What is done while data moves: `begin` once both windows are open, `end` after both have
    closed.
    """

    begin: Callable[[], None] = lambda: None
    end: Callable[[], None] = lambda: None


def read_back(worker: Worker, vectors: tuple[Vector, ...], name: str) -> int | str | None:
    """A read-back by name, or None if it is not there."""
    row = worker.catalogue.readbacks[name].id
    for vector in vectors:
        if vector.row == row:
            return vector.text if vector.text is not None else vector.numbers[0]
    return None


def exchange(
    sender: Worker,
    receiver: Worker,
    send: Options,
    receive: Options,
    prepared: Callable[[tuple[Vector, ...]], None] = lambda _: None,
    watch: Watch | None = None,
    start: Callable[[], None] = lambda: None,
) -> Exchange:
    """Prepare, run and finish one transfer; both sides are idle afterwards, whatever happens.
    `prepared`: the receiver is ready, with these read-backs. `watch`: of a run that is bounded by
    time. `start` returns when data may move.

    Errors: EngineError of the side that failed first; WorkerLost; TimeoutError.
    """
    with idle_after_errors(sender, receiver):
        ready = receiver.prepare(receive)
        port = read_back(receiver, ready, "port")
        if not isinstance(port, int):
            raise ProtocolError(f"{receiver.host}: the worker named no data port{SAME}")
        prepared(ready)
        sender.prepare(send | {"peer_port": port})
        start()
        if send.get("bytes"):
            return _bounded(sender, receiver)
        slack = SLACK_SECONDS + (FSYNC_SECONDS if receive.get("fsync", "none") != "none" else 0)
        return _timed(sender, receiver, send, slack, watch)


@contextmanager
def idle_after_errors(sender: Worker, receiver: Worker) -> Iterator[None]:
    """Both workers give up what they do when an error ends it. Errors: of two EngineErrors the one
    that explains the other; WorkerLost where a silent worker explains it.
    """
    try:
        yield
    except EngineError as error:
        raise _cause(error, sender, receiver) from error
    except BaseException:
        give_up(sender, receiver)
        raise


def _timed(
    sender: Worker, receiver: Worker, send: Options, slack: float, watch: Watch | None
) -> Exchange:
    seconds = (number_of(send, "warmup") + number_of(send, "duration")) / 1e9 + slack
    both = (sender, receiver)
    receiver.go()
    sender.go()
    if watch:
        for worker in both:
            _edge(worker, Edge.OPEN, seconds, both)
        watch.begin()
    for worker in both:
        _edge(worker, Edge.CLOSE, seconds, both)
    if watch:
        watch.end()
    for worker in both:
        worker.stop()
    return Exchange(*(_while_both_live(worker.result, slack, both) for worker in both))


def _bounded(sender: Worker, receiver: Worker) -> Exchange:
    both = (sender, receiver)
    receiver.go()
    sender.go()
    receiver.mark(_edge(sender, Edge.WARM, UNBOUNDED_SECONDS, both))
    _edge(receiver, Edge.OPEN, UNBOUNDED_SECONDS, both)
    sender.mark()
    results = (_while_both_live(worker.result, UNBOUNDED_SECONDS, both) for worker in both)
    return Exchange(*results)


def _edge(worker: Worker, edge: Edge, seconds: float, both: Sequence[Worker]) -> bytes:
    return _while_both_live(partial(worker.await_edge, edge), seconds, both)


def _while_both_live(
    wait: Callable[[float], Answer], seconds: float, both: Sequence[Worker]
) -> Answer:
    """Wait for one side's answer; where that takes long, see now and then that both sides live: one
    that was stopped keeps the other waiting. Errors: as of `wait`; WorkerLost.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return wait(min(LOOK_SECONDS, max(0.0, deadline - time.monotonic())))
        except TimeoutError:
            for worker in both:
                worker.connection.listen()
            if time.monotonic() >= deadline:
                raise


def give_up(*workers: Worker) -> list[Worker]:
    """Make workers idle, those that are still there. One that stays busy is abandoned: it undoes
    its changes when it sees that, and whoever needs it next finds it lost. Those of them that gave
    no sign of life meanwhile: they were stopped, or cut off.
    """
    silent = []
    for worker in workers:
        with suppress(WorkerLost):
            worker.abort()
    for worker in workers:
        if worker.lost:
            continue
        try:
            worker.await_idle()
        except TimeoutError:
            if worker.connection.unheard >= IDLE_SECONDS:
                silent.append(worker)
            worker.abandon()
        except NetbenchError:
            continue
    return silent


def _cause(error: EngineError, sender: Worker, receiver: Worker) -> NetbenchError:
    """What explains the errors of both: a connection that went away is a consequence, of the other
    side's error or of its silence.
    """
    errors = [error]
    for worker in (sender, receiver):
        if error.code == Code.PEER:
            other = worker.last_word(LAST_WORD_SECONDS)
            errors += [other] if other is not None else []
    silent = give_up(sender, receiver)
    causes = [e for e in errors if e.code not in (Code.PEER, Code.ABORTED)]
    if silent and not causes:
        return WorkerLost(f"{silent[0].host}: the worker does not answer; {errors[0]}")
    return (causes or errors)[0]
