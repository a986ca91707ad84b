"""The controller's side of the protocol: one Worker is one engine process on a host."""

from __future__ import annotations

import contextlib
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from netbench.base.errors import EngineError, ProtocolError, WorkerLost
from netbench.engine import binding, clock, frames
from netbench.engine.binding import Edge, Frame, Hello, Vector
from netbench.engine.catalogue import Catalogue, Row
from netbench.engine.connection import Connection, Stream
from netbench.engine.frames import Value

HELLO_SECONDS = 20.0
ANSWER_SECONDS = 60.0
ANSWER_BYTES = (2 << 20) + 1024  # of an operation: two texts of the engine's NB_OP_TEXT
# A source of any size is read into the page cache; heartbeats tell whether the worker lives.
SOURCE_SECONDS = 6 * 3600.0
IDLE_SECONDS = 5.0  # a worker gives a run up within 3 s, or leaves
UNDO_SECONDS = 60.0
GOODBYE_SECONDS = 5.0
LOOK_SECONDS = 2.0  # how often it is looked whether the worker beside lives
ABANDON_SECONDS = 1.0
ASKED_AT_ONCE = 64  # questions in one write: together they fit in a pipe
LAST_TAG = 65535
Argument = str | int | Iterable[str] | None
_COUNTED = ("counter", "proof", "readback")
_DECODING = threading.Lock()  # hosts that are reached together would all decode the same rows


class Outcome(NamedTuple):
    """What a run left in one worker: the vectors of its result, of its samples in time order."""

    result: tuple[Vector, ...]
    samples: tuple[Vector, ...]


class Worker:
    """One engine process. Errors of all: WorkerLost, ProtocolError, EngineError, TimeoutError."""

    def __init__(self, stream: Stream, host: str) -> None:
        self.host = host
        self.connection = Connection(stream, host)
        self.interrupt = self.connection.interrupt
        self.clear_interrupt = self.connection.clear_interrupt
        self.send_heartbeat = self.connection.send_heartbeat
        self._tag = 0
        self._samples: list[Vector] = []
        self._began = 0  # the present run, by clock.now_ns
        self._room = 0  # for bytes of samples
        self._items: Mapping[str, int] = {}  # numbers of a vector, by what its row counts
        self._holds = False  # whether the host is changed
        self.beside: Worker | None = None
        """The other worker of a transfer: while this one is waited for, it must live."""
        self.sampled: Callable[[Sequence[Vector]], None] | None = None
        """Who is told samples as they arrive."""
        try:
            self.hello, self.catalogue = self._exchange_hellos()
        except BaseException:
            self.abandon()
            raise

    @property
    def silence(self) -> float:
        """The longest time since `prepare` in which one side did not hear the other, in seconds.
        What the worker says of that is known with the run's result.
        """
        return self.connection.silence

    @property
    def untold(self) -> float:
        """Seconds since something was sent to the worker."""
        return self.connection.untold

    @property
    def lost(self) -> bool:
        """Whether the process is known to be gone, or was abandoned."""
        return self.connection.lost

    def _exchange_hellos(self) -> tuple[Hello, Catalogue]:
        try:
            kind, _, payload = self.connection.next_frame(time.monotonic() + HELLO_SECONDS)
        except TimeoutError as error:
            raise self.connection.lost_by(f"no hello in {HELLO_SECONDS:.0f} s") from error
        if kind is Frame.ERROR:
            with self.connection.naming():
                raise frames.decode_error(payload, self.host)
        if kind is not Frame.HELLO:
            raise ProtocolError(
                f"{self.host}: the worker sent {kind.name} first, expected HELLO{binding.SAME}"
            )
        with self.connection.naming(), _DECODING:
            hello, rows = frames.decode_hello(payload)
            catalogue = _catalogue(rows)
        self.connection.write(frames.frame(Frame.HELLO, 0, binding.own_hello()))
        return hello, catalogue

    def _vectors(self, payload: bytes) -> tuple[Vector, ...]:
        """The vectors of a run, each as its row in the hello describes it."""
        with self.connection.naming():
            vectors = tuple(frames.decode_vectors(payload))
            if not all(map(self._fits, vectors)):
                raise ProtocolError(
                    f"the worker sent counters that are not as it has described them{binding.SAME}"
                )
        return vectors

    def _fits(self, vector: Vector) -> bool:
        row = self.catalogue.rows[vector.row] if vector.row < len(self.catalogue.rows) else None
        if row is None or row.kind not in _COUNTED or vector.edge > Edge.DRAINED:
            return False
        if vector.text is not None or row.type == "text":
            return vector.text is not None and row.type == "text"
        if row.per == "bucket":
            return len(vector.numbers) >= 3 and len(vector.numbers) % 2 == 1
        return len(vector.numbers) == self._items[row.per]

    def _keep_samples(self, payload: bytes) -> None:
        self._room -= len(payload)
        if self._room < 0:
            what = "the worker sent more samples than it was asked for"
            raise ProtocolError(f"{self.host}: {what}{binding.SAME}")
        vectors = self._vectors(payload)
        self._samples += vectors
        if self.sampled:
            self.sampled(vectors)

    def _most_bytes(self, options: Mapping[str, Value]) -> int:
        """How many bytes the samples of a job are at most, as the engine has it (window.c)."""
        sample, duration = (frames.number_of(options, name) for name in ("sample", "duration"))
        if not sample:
            return 0
        times = duration // sample + 2 if duration else binding.SAMPLES_MAX
        counters = [row for row in self.catalogue.rows if row.kind == "counter"]
        each = sum(frames.VECTOR_BYTES + 8 * self._items[row.per] for row in counters)
        return min(times * each, (frames.VECTOR_BYTES // 8 + 1) * binding.SAMPLES_BYTES)

    def _await(self, wanted: Frame, seconds: float) -> bytes:
        """The payload of the next frame of that kind for the present request; answers to earlier
        requests are skipped.

        Errors: TimeoutError when the worker lives but does not answer within `seconds`; WorkerLost,
        also where the one beside it is gone.
        """
        deadline = time.monotonic() + seconds
        while True:
            look = time.monotonic() + LOOK_SECONDS if self.beside else deadline
            try:
                kind, tag, payload = self.connection.next_frame(min(look, deadline))
            except TimeoutError:
                for worker in (self, self.beside) if self.beside else ():
                    worker.connection.listen()
                if time.monotonic() >= deadline:
                    raise
                continue
            if tag not in (self._tag, 0):
                continue
            if kind is Frame.ERROR:
                with self.connection.naming():
                    raise frames.decode_error(payload, self.host)
            if kind is Frame.SAMPLES:
                self._keep_samples(payload)
            elif kind is wanted:
                return payload
            elif kind is not Frame.EDGE:
                raise ProtocolError(
                    f"{self.host}: the worker sent {kind.name}, expected"
                    f" {wanted.name}{binding.SAME}"
                )

    def _request(self, kind: Frame, payload: bytes = b"") -> None:
        self._tag = self._tag % LAST_TAG + 1
        self._order(kind, payload)

    def _order(self, kind: Frame, payload: bytes = b"") -> None:
        self.connection.write(frames.frame(kind, self._tag, payload))

    def values(
        self, options: Mapping[str, Value], method: str = "", role: str = ""
    ) -> dict[int, Value]:
        """Options by name as values by row id; a method's own are found by its descriptor."""
        ids = {name: row.id for name, row in self.catalogue.options.items()}
        table = self.catalogue.send if role == "send" else self.catalogue.receive
        if method in table:
            ids |= {row.name: row.id for row in table[method].options}
        unknown = [name for name in options if name not in ids]
        if unknown:
            why = f"this worker has no option {unknown[0]!r}"
            raise EngineError(0, 0, "job", why, "deploy the worker again", self.host)
        return {ids[name]: value for name, value in options.items()}

    def prepare(self, options: Mapping[str, Value]) -> tuple[Vector, ...]:
        """Prepare a job given by option names; returns what was read back."""
        values = self.values(options, str(options.get("method", "")), str(options["role"]))
        self._samples = []
        self._began = clock.now_ns()
        streams = frames.number_of(options, "streams", 1)
        self._items = {"run": 1, "stream": streams, "cpu": self.hello.cpus}
        self._room = self._most_bytes(options)
        self.connection.silence = 0.0
        self._request(Frame.JOB, frames.encode_values(values))
        reads = options.get("source") in ("file", "files")
        return self._vectors(self._await(Frame.READY, SOURCE_SECONDS if reads else ANSWER_SECONDS))

    def go(self) -> None:
        """Start moving data."""
        self._order(Frame.GO)

    def mark(self, arrived: bytes = b"") -> None:
        """Open (or, for a tool, close) the measured window, once the warm-up whose bytes
        `await_edge` of the sender has returned has arrived.
        """
        self._order(Frame.MARK, arrived)

    def next_output(self, seconds: float) -> str:
        """Wait until the tool that runs prints more, and give that, or some of it."""
        self._order(Frame.PRINTED)
        return self._await(Frame.PRINTED, seconds).decode("utf-8", "replace")

    def stop(self) -> None:
        """Stop moving data, after the window has closed."""
        self._order(Frame.STOP)

    def await_edge(self, edge: Edge, seconds: float) -> bytes:
        """Wait for an edge; returns what it carries (WARM: bytes of each stream, for `mark`)."""
        deadline = time.monotonic() + seconds
        while True:
            payload = self._await(Frame.EDGE, deadline - time.monotonic())
            with self.connection.naming():
                passed, carried = frames.decode_edge(payload)
            if passed is edge:
                return carried

    def result(self, seconds: float) -> Outcome:
        """Wait for the run's result."""
        vectors = self._vectors(self._await(Frame.RESULT, seconds))
        with self.connection.naming():
            clock.check_times(vectors, self._samples, self._began)
        for vector in vectors:
            if vector.row == self.catalogue.readbacks["silence"].id and vector.numbers[0]:
                silence = vector.numbers[0] / 1e9
                self.connection.silence = max(self.connection.silence, silence)
        samples, self._samples = tuple(self._samples), []
        return Outcome(vectors, samples)

    def last_word(self, seconds: float) -> EngineError | None:
        """The error that ends the present run, if it comes within that time."""
        try:
            self._await(Frame.RESULT, seconds)
        except EngineError as error:
            return error
        except TimeoutError:
            pass
        return None

    def abort(self) -> None:
        """Order the worker to give up the present run, if any. Who waits for it can wait again."""
        self.clear_interrupt()
        self._order(Frame.ABORT)

    def await_idle(self) -> None:
        """Wait until the worker has given up its run. Errors: TimeoutError when it still works."""
        # An operation that only reads is answered after the abort, with or without a run.
        self._operation("file", "/proc/sys/kernel/random/boot_id")
        with contextlib.suppress(EngineError):
            self._await(Frame.OP_DONE, IDLE_SECONDS)

    @cached_property
    def _arguments(self) -> dict[str, int]:
        """The row ids of an operation's arguments, by name."""
        return {
            row.name: row.id
            for row in self.catalogue.rows
            if row.kind == "option" and row.owner in self.catalogue.ops
        }

    def _operation(self, op: str, target: Argument, **more: Argument) -> None:
        self._request(Frame.OP, self._encoded(op=op, target=target, **more))

    def _encoded(self, **given: Argument) -> bytes:
        """An operation's arguments. Lists are argv; what is None is left out."""
        values = {
            self._arguments[name]: value if isinstance(value, str | int) else "\0".join(value)
            for name, value in given.items()
            if value is not None
        }
        return frames.encode_values(values)

    def _texts(self, seconds: float = 0.0) -> list[str]:
        """Texts that answer an operation; a worker that gives none in `seconds` is abandoned."""
        seconds = seconds or ANSWER_SECONDS
        try:
            payload = self._await(Frame.OP_DONE, seconds)
        except TimeoutError as error:
            self.abandon()
            raise WorkerLost(
                f"{self.host}: the worker did not answer within {seconds:.0f} s"
            ) from error
        with self.connection.naming():
            texts = [vector.text for vector in frames.decode_vectors(payload)]
            if not texts or None in texts or len(payload) > ANSWER_BYTES:
                raise ProtocolError(
                    f"the worker's answer to an operation is no text, or too long{binding.SAME}"
                )
        return [text for text in texts if text is not None]

    def operate(
        self,
        op: str,
        target: str | Iterable[str],
        value: str | None = None,
        hold: bool = False,
        undo: Iterable[str] = (),
        scope: int = 0,
        seconds: float = 0.0,
        restore: bool = False,
        look: Iterable[str] = (),
    ) -> tuple[str, str | None]:
        """One operation on the host: (what was read before, what is read after a change). Lists
        are argv. `restore`: the value was read once, and is written as an undo does.

        What is held in a scope (from 1, none below one that is held) is undone together with all
        scopes above it; `look` prints the same after an `undo` as before. `seconds`: how long the
        answer may take; 0: ANSWER_SECONDS.
        """
        self._holds = self._holds or hold or bool(undo)
        self._operation(
            op,
            target,
            value=value,
            hold=hold,
            restore=restore,
            undo=undo or None,
            look=look or None if undo else None,
            scope=scope,
        )
        before, *after = self._texts(seconds)
        return before, after[0] if after else None

    def aside(self, op: str, target: Iterable[str]) -> str:
        """What an operation reads while a run is prepared, or goes on. Errors: as operate."""
        of_run = self._tag
        try:
            return self.operate(op, target)[0]
        finally:
            self._tag = of_run

    def ask_permission(
        self, op: str, target: str | Iterable[str], value: str | None, undo: Iterable[str] = ()
    ) -> None:
        """Ask whether the host allows an operation. Errors: EngineError where it does not."""
        self._operation(op, target, value=value, undo=undo or None, ask=True)
        self._texts()

    def ask(self, questions: Sequence[tuple[str, tuple[str, ...]]]) -> list[str | EngineError]:
        """Operations that only read, as (name, target), all sent before the first is answered: the
        answers, in order.

        An error stands in place of an answer that the worker refuses.
        """
        answers: list[str | EngineError] = []
        for first in range(0, len(questions), ASKED_AT_ONCE):
            answers += self._ask_at_once(questions[first : first + ASKED_AT_ONCE])
        return answers

    def _ask_at_once(
        self, questions: Sequence[tuple[str, tuple[str, ...]]]
    ) -> Iterator[str | EngineError]:
        tags = [(self._tag + i) % LAST_TAG + 1 for i in range(len(questions))]
        payloads = (self._encoded(op=op, target=target) for op, target in questions)
        requests = (frames.frame(Frame.OP, *pair) for pair in zip(tags, payloads, strict=True))
        self.connection.write(b"".join(requests))
        try:
            for self._tag in tags:
                try:
                    answer = self._texts()[0]
                except EngineError as error:
                    yield error
                else:
                    yield answer
        finally:
            self._tag = tags[-1]

    def end_stopped(self, pid: int, campaign: str = "") -> bool:
        """End a worker of the same kind that was lost, if it is stopped: it would hold its lock,
        and undo when it is continued. One that runs leaves by itself; whether it has. `campaign`:
        by whose log another copy of the program is known.
        """
        state = ""
        with contextlib.suppress(EngineError):
            if campaign:
                self.operate("undone", (campaign, "holders"))
        with contextlib.suppress(EngineError):
            state = self.operate("worker", str(pid))[0].strip()
            if state == "stopped":
                self.operate("worker", str(pid), "ended")
        return state != "running"

    def undo(self, scope: int = 0) -> None:
        """Undo what is held in this scope and those above it, in reverse, and check that."""
        self._request(Frame.UNDO, struct.pack("<I", scope))
        self._await(Frame.UNDONE, UNDO_SECONDS)
        self._holds = self._holds and scope > 0

    def close(self) -> None:
        """Send GOODBYE and wait until the process has undone everything and exited; never raises.

        One that holds changes has UNDO_SECONDS for it: a worker killed in the middle of its undo
        would leave the host half changed.
        """
        self.clear_interrupt()
        with contextlib.suppress(WorkerLost, TimeoutError):
            self._order(Frame.BYE)
            self.connection.read_to_end(UNDO_SECONDS if self._holds else GOODBYE_SECONDS)
        self.connection.finish(GOODBYE_SECONDS)

    def abandon(self) -> None:
        """Release a lost worker; never raises. A process that lives undoes what it holds."""
        self.connection.finish(ABANDON_SECONDS)


@lru_cache(maxsize=16)
def _catalogue(rows: tuple[Row, ...]) -> Catalogue:
    """What these rows of a hello describe."""
    return Catalogue.of(rows)
