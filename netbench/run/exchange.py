"""One transfer between two workers: which messages each gets, in which order, and what both
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from netbench.base.errors import EngineError, NetbenchError, ProtocolError, WorkerLost
from netbench.engine.binding import SAME, Code, Edge, Vector
from netbench.engine.frames import number_of
from netbench.engine.worker import IDLE_SECONDS, Outcome, Worker
from netbench.run import readings
from netbench.run.job import Options

SLACK_SECONDS = 30.0  # beyond the times that were asked for: connecting, draining
# A bytes-bounded run has no known length; heartbeats tell whether the workers live.
UNBOUNDED_SECONDS = 6 * 3600.0
FSYNC_SECONDS = 600.0  # that a sink may take to reach its disk
LAST_WORD_SECONDS = 1.0  # after one side has failed, for the other to say why


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
    both = sender, receiver
    with idle_after_errors(*both):
        ready = receiver.prepare(receive)
        port = readings.readbacks(ready, receiver.catalogue).get("port")
        if not isinstance(port, int):
            raise ProtocolError(f"{receiver.host}: the worker named no data port{SAME}")
        prepared(ready)
        sender.prepare(send | {"peer_port": port})
        start()
        receiver.go()
        sender.go()
        if send.get("bytes"):
            slack = UNBOUNDED_SECONDS
            receiver.mark(sender.await_edge(Edge.WARM, slack))
            receiver.await_edge(Edge.OPEN, slack)
            sender.mark()
        else:
            slack = SLACK_SECONDS + (FSYNC_SECONDS if receive.get("fsync", "none") != "none" else 0)
            seconds = (number_of(send, "warmup") + number_of(send, "duration")) / 1e9 + slack
            if watch:
                for worker in both:
                    worker.await_edge(Edge.OPEN, seconds)
                watch.begin()
            for worker in both:
                worker.await_edge(Edge.CLOSE, seconds)
            if watch:
                watch.end()
            for worker in both:
                worker.stop()
        return Exchange(sender.result(slack), receiver.result(slack))


@contextmanager
def idle_after_errors(sender: Worker, receiver: Worker) -> Iterator[None]:
    """While one of two workers is waited for, it is seen that the other lives too: one that was
    stopped keeps the other waiting. Both give up what they do when an error ends it. Errors: of two
    EngineErrors the one that explains the other; WorkerLost where a silent worker explains it.
    """
    sender.beside, receiver.beside = receiver, sender
    try:
        yield
    except EngineError as error:
        sender.beside = receiver.beside = None
        raise _cause(error, sender, receiver) from error
    except BaseException:
        sender.beside = receiver.beside = None
        give_up(sender, receiver)
        raise
    finally:
        sender.beside = receiver.beside = None


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
