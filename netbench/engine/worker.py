"""The controller's side of the protocol: one Worker is one engine process on a host.

A worker is talked to by one thread; the Heartbeat's thread only adds heartbeats between whole
frames.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from netbench.engine import binding
from netbench.engine.binding import Edge, Frame, Hello, Vector
from netbench.engine.catalogue import Catalogue
from netbench.errors import EngineError, ProtocolError, WorkerLost

HELLO_SECONDS = 20.0
ANSWER_SECONDS = 60.0
PREPARE_SECONDS = (
    6 * 3600.0
)  # a source of any size is brought into the page cache; heartbeats tell whether the worker lives
GOODBYE_SECONDS = 5.0
ABANDON_SECONDS = 1.0
LOOK_SECONDS = 0.5
ASKED_AT_ONCE = 64  # questions in one write: together they fit in a pipe
HEARTBEATS_AT_ONCE = 64  # that may be stuck at the same time


class Stream(Protocol):
    """What a worker is reached through (hosts.base.Process)."""

    def read(self, timeout: float) -> bytes: ...
    def write(self, data: bytes) -> None: ...
    def finish(self, timeout: float) -> int | None: ...
    def complaint(self) -> str: ...


@dataclass(frozen=True)
class Outcome:
    """What a run left in one worker: the vectors of its result, and of its samples in
    time order.
    """

    result: tuple[Vector, ...]
    samples: tuple[Vector, ...]


class Worker:
    """One engine process. Errors of every method: WorkerLost, ProtocolError, EngineError (it
    refused), TimeoutError.
    """

    def __init__(self, stream: Stream, host: str) -> None:
        self.host = host
        self._stream = stream
        self._buffer = bytearray()
        self._lock = threading.Lock()
        self._tag = 0
        self._samples: list[Vector] = []
        self._interrupted = threading.Event()
        # the longest wait for a word of it since `prepare`, in seconds; it says something every
        # three
        self.silence = 0.0
        self.hello, self.catalogue = self._greet()

    def _greet(self) -> tuple[Hello, Catalogue]:
        kind, _, payload = self._next(time.monotonic() + HELLO_SECONDS)
        if kind is not Frame.HELLO:
            raise ProtocolError(
                f"{self.host}: the worker began with {kind.name}, expected HELLO{binding.SAME}"
            )
        with self._named():
            hello, rows = binding.decode_hello(payload)
        self._write(binding.frame(Frame.HELLO, 0, binding.own_hello()))
        return hello, Catalogue.of(rows)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Errors of the protocol name the host."""
        try:
            yield
        except ProtocolError as error:
            raise ProtocolError(f"{self.host}: {error}") from error

    def _vectors(self, payload: bytes) -> tuple[Vector, ...]:
        """A frame's vectors, each of a row that the hello described."""
        with self._named():
            vectors = tuple(binding.decode_vectors(payload))
        if any(vector.row >= len(self.catalogue.rows) for vector in vectors):
            raise ProtocolError(
                f"{self.host}: the worker sent numbers of something that it never"
                f" described{binding.SAME}"
            )
        return vectors

    def _write(self, data: bytes) -> None:
        try:
            with self._lock:
                self._stream.write(data)
        except (OSError, ValueError) as error:
            raise WorkerLost(self._lost_message(f"it takes no more orders ({error})")) from error

    def _lost_message(self, what: str) -> str:
        complaint = self._stream.complaint()
        said = (
            f"; it said: {complaint}"
            if complaint
            else f"; `dmesg` on {self.host} may say why, or the way to it is cut"
        )
        return f"{self.host}: the worker is gone: {what}{said}"

    def _fill(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        try:
            data = self._read(min(left, binding.SILENCE_SECONDS))
        except TimeoutError as error:
            if left < binding.SILENCE_SECONDS:
                raise TimeoutError(
                    f"{self.host}: the worker lives, but did not answer in time; look at the path"
                    " between the data addresses"
                ) from error
            raise WorkerLost(
                self._lost_message(f"it fell silent for {binding.SILENCE_SECONDS} s")
            ) from error
        except OSError as error:
            raise WorkerLost(self._lost_message(str(error))) from error
        if not data:
            raise WorkerLost(self._lost_message("it closed the connection"))
        self._buffer += data

    def _read(self, seconds: float) -> bytes:
        """What comes within that time, looking up now and then for `interrupt`. Errors:
        TimeoutError; OSError.
        """
        began = time.monotonic()
        while True:
            left = began + seconds - time.monotonic()
            try:
                data = self._stream.read(min(max(left, 0.0), LOOK_SECONDS))
            except TimeoutError:
                if self._interrupted.is_set():
                    raise KeyboardInterrupt from None
                if left <= LOOK_SECONDS:
                    raise
                continue
            self.silence = max(self.silence, time.monotonic() - began)
            return data

    def interrupt(self) -> None:
        """Make the thread that waits for this worker give up as by Ctrl-C."""
        self._interrupted.set()

    def clear_interrupt(self) -> None:
        """After `interrupt`: it can be waited for again."""
        self._interrupted.clear()

    def _next(self, deadline: float) -> tuple[Frame, int, bytes]:
        """The next frame that is not a heartbeat."""
        while True:
            with self._named():
                found = binding.split(self._buffer)
            if found is None:
                self._fill(deadline)
            elif found[0] is not Frame.HEARTBEAT:
                return found

    def _await(self, wanted: Frame, seconds: float) -> bytes:
        """The payload of the next frame of that kind for the request under way; answers to earlier
        requests are passed over.

        Errors: TimeoutError when the worker lives but does not answer within `seconds`.
        """
        deadline = time.monotonic() + seconds
        while True:
            kind, tag, payload = self._next(deadline)
            if tag not in (self._tag, 0):
                continue
            if kind is Frame.ERROR:
                with self._named():
                    raise binding.decode_error(payload, self.host)
            if kind is Frame.SAMPLES:
                self._samples += self._vectors(payload)
            elif kind is wanted:
                return payload
            elif kind is not Frame.EDGE:
                raise ProtocolError(
                    f"{self.host}: the worker sent {kind.name}, expected"
                    f" {wanted.name}{binding.SAME}"
                )

    def _request(self, kind: Frame, payload: bytes = b"") -> None:
        self._tag = self._tag % 65535 + 1
        self._write(binding.frame(kind, self._tag, payload))

    def _order(self, kind: Frame, payload: bytes = b"") -> None:
        self._write(binding.frame(kind, self._tag, payload))

    def values(
        self, options: Mapping[str, int | str | bytes], method: str = "", role: str = ""
    ) -> dict[int, int | str | bytes]:
        """Options by name as values by row id; a method's own options are found through its
        descriptor.
        """
        ids = {name: row.id for name, row in self.catalogue.options.items()}
        table = self.catalogue.send if role == "send" else self.catalogue.receive
        if method in table:
            ids |= {row.name: row.id for row in table[method].options}
        unknown = [name for name in options if name not in ids]
        if unknown:
            raise EngineError(
                0,
                0,
                "job",
                f"this worker has no option {unknown[0]!r}",
                "deploy the worker again",
                self.host,
            )
        return {ids[name]: value for name, value in options.items()}

    def prepare(self, options: Mapping[str, int | str | bytes]) -> tuple[Vector, ...]:
        """Prepare a job given by option names; returns what was read back."""
        values = self.values(options, str(options.get("method", "")), str(options["role"]))
        self._samples = []
        self.silence = 0.0
        self._request(Frame.JOB, binding.encode_values(values))
        return self._vectors(self._await(Frame.READY, PREPARE_SECONDS))

    def go(self) -> None:
        """Start moving data."""
        self._order(Frame.GO)

    def mark(self, arrived: bytes = b"") -> None:
        """Open (or, for a tool, close) the measured window, once the warm-up that `await_edge` of
        the sender told has arrived.
        """
        self._order(Frame.MARK, arrived)

    def stop(self) -> None:
        """Stop moving data, after the window has closed."""
        self._order(Frame.STOP)

    def await_edge(self, edge: Edge, seconds: float) -> bytes:
        """Wait until the run has passed an edge; returns what it carries (WARM: bytes of each
        stream, for `mark`).
        """
        deadline = time.monotonic() + seconds
        while True:
            payload = self._await(Frame.EDGE, deadline - time.monotonic())
            with self._named():
                passed, carried = binding.decode_edge(payload)
            if passed is edge:
                return carried

    def result(self, seconds: float) -> Outcome:
        """Wait for the run's result."""
        payload = self._await(Frame.RESULT, seconds)
        return Outcome(self._vectors(payload), tuple(self._samples))

    def last_word(self, seconds: float) -> EngineError | None:
        """The error that ends the run under way, if it comes within that time."""
        try:
            self._await(Frame.RESULT, seconds)
        except EngineError as error:
            return error
        except TimeoutError:
            pass
        return None

    def abort(self) -> None:
        """Give up the run under way, if there is one; the worker is idle afterwards."""
        self._order(Frame.ABORT)
        # An operation that only reads is answered after the abort, whether or not there was a run
        # to give up.
        with contextlib.suppress(EngineError):
            self.operate("file", "/proc/sys/kernel/random/boot_id")

    def operate(
        self,
        op: str,
        target: str | Iterable[str],
        value: str | None = None,
        hold: bool = False,
        undo: Iterable[str] = (),
        scope: int = 0,
    ) -> tuple[str, str | None]:
        """One operation on the host: (what was there before, what is there after a change). Lists
        are argv.

        What is held in a scope (0 to 255, none below one that is held) is put back together with
        all scopes above it.
        """
        rows = {
            row.name: row.id
            for row in self.catalogue.rows
            if row.kind == "option" and row.owner in self.catalogue.ops
        }
        values: dict[int, int | str | bytes] = {rows["op"]: op}
        values[rows["target"]] = target if isinstance(target, str) else "\0".join(target)
        if value is not None:
            values[rows["value"]] = value
        if hold:
            values[rows["hold"]] = 1
        if undo:
            values[rows["undo"]] = "\0".join(undo)
        if scope:
            values[rows["scope"]] = scope
        self._request(Frame.OP, binding.encode_values(values))
        texts = [v.text or "" for v in self._vectors(self._await(Frame.OP_DONE, ANSWER_SECONDS))]
        if not texts:
            raise ProtocolError(
                f"{self.host}: the worker answered an operation with nothing{binding.SAME}"
            )
        return texts[0], texts[1] if len(texts) > 1 else None

    def ask(self, questions: Sequence[tuple[str, tuple[str, ...]]]) -> list[str | EngineError]:
        """Operations that only read, as (name, target), all sent before the first is answered: the
        answers, in order.

        An error stands in place of an answer that the worker refuses.
        """
        answers: list[str | EngineError] = []
        for first in range(0, len(questions), ASKED_AT_ONCE):
            answers += self._asked(questions[first : first + ASKED_AT_ONCE])
        return answers

    def _asked(
        self, questions: Sequence[tuple[str, tuple[str, ...]]]
    ) -> Iterator[str | EngineError]:
        rows = {
            row.name: row.id
            for row in self.catalogue.rows
            if row.kind == "option" and row.owner in self.catalogue.ops
        }
        frames, tags = b"", list[int]()
        for op, target in questions:
            tags.append(tags[-1] % 65535 + 1 if tags else self._tag % 65535 + 1)
            frames += binding.frame(
                Frame.OP,
                tags[-1],
                binding.encode_values({rows["op"]: op, rows["target"]: "\0".join(target)}),
            )
        self._tag = tags[-1]
        self._write(frames)
        try:
            for self._tag in tags:
                try:
                    vectors = self._vectors(self._await(Frame.OP_DONE, ANSWER_SECONDS))
                except EngineError as error:
                    yield error
                    continue
                if not vectors:
                    raise ProtocolError(
                        f"{self.host}: the worker answered an operation with nothing{binding.SAME}"
                    )
                yield vectors[0].text or ""
        finally:
            self._tag = tags[-1]

    def undo(self, scope: int = 0) -> None:
        """Put back what operations hold in this scope and those above it, in reverse, and see that
        it reads as it did.
        """
        self._request(Frame.UNDO, struct.pack("<I", scope))
        self._await(Frame.UNDONE, ANSWER_SECONDS)

    def send_heartbeat(self) -> None:
        """Say that the controller is alive; never waits and never raises: who talks to the worker
        will see what is wrong.
        """
        if not self._lock.acquire(blocking=False):
            return  # something is being said
        try:
            self._stream.write(binding.frame(Frame.HEARTBEAT, 0))
        except (OSError, ValueError):
            return
        finally:
            self._lock.release()

    def close(self) -> None:
        """Say goodbye and wait until the process has put everything back and left; never raises.

        It may take as long as it shows life: a worker killed in the middle of its undo would leave
        the host half changed.
        """
        self.clear_interrupt()
        with contextlib.suppress(WorkerLost):
            self._write(binding.frame(Frame.BYE, 0))
            while True:
                self._fill(time.monotonic() + 2 * binding.SILENCE_SECONDS)
                self._buffer.clear()
        with self._lock:
            self._stream.finish(GOODBYE_SECONDS)

    def abandon(self) -> None:
        """Let go of a lost worker without waiting for a word of it; never raises. One that lives
        undoes what it holds.
        """
        with self._lock:
            self._stream.finish(ABANDON_SECONDS)


class Heartbeat:
    """Tells all workers every few seconds that the controller is alive; a channel that is stuck
    does not hold up others.
    """

    def __init__(self) -> None:
        self._workers: list[Worker] = []
        self._beating: dict[Worker, Future[None]] = {}
        self._pool = ThreadPoolExecutor(max_workers=HEARTBEATS_AT_ONCE, thread_name_prefix="beat")
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heart", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(binding.HEARTBEAT_SECONDS):
            with self._lock:
                workers = list(self._workers)
            self._beating = {
                worker: beat for worker, beat in self._beating.items() if not beat.done()
            }
            for worker in workers:
                if worker not in self._beating:
                    self._beating[worker] = self._pool.submit(worker.send_heartbeat)

    def add(self, worker: Worker) -> None:
        """Beat for this worker from now on."""
        with self._lock:
            self._workers.append(worker)

    def remove(self, worker: Worker) -> None:
        """Beat for it no longer."""
        with self._lock:
            self._workers = [w for w in self._workers if w is not worker]

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()
        self._pool.shutdown(wait=False, cancel_futures=True)
