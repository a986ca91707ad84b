"""Parts of a campaign as tasks: in threads of this process, or on Dask distributed by a scheduler
of the site's, whose workers see the results' folder.

Dask starts tasks, and tells when their workers are lost. It repeats none: an attempt that was made
is refused (part_task.py), and what is lost goes on from its records as another attempt.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from netbench.base.errors import NetbenchError, PlaceError, RequestError, StoreError
from netbench.base.opening import make_folder, write_new
from netbench.base.ownership import refuse_exchangeable
from netbench.base.units import count
from netbench.fleet.merge import Merged, merge
from netbench.fleet.part_task import (
    CAMPAIGN,
    LOOK_SECONDS,
    PROGRESS,
    RUN,
    STOP,
    PartTask,
    is_leased,
    run_part,
    write_state,
)
from netbench.fleet.parts import most_parts, split
from netbench.model import Campaign
from netbench.result.journal import Journal
from netbench.result.store import count_records, new_place

FRUITLESS = 3  # attempts in a row that add no record: then a part is given up
END_SECONDS = 60.0  # in which parts end that were told to
INTERRUPTED = 130
GONE = "the Dask scheduler is gone"
OVER = ("done", "limit")


class Future(Protocol):
    """A task that was begun: one of Dask, or of a thread."""

    def done(self) -> bool:
        """Whether it is over."""

    def cancel(self) -> object:
        """See that it is not begun, where it waits for a place."""

    def result(self, timeout: float) -> int:
        """The exit status of the part's controller. Errors: whatever became of it."""


@dataclass(frozen=True)
class Places:
    """Where tasks run: how many at once (0: they wait for some), how one is begun, and whether it
    can still be told of.
    """

    number: int
    submit: Callable[[PartTask], Future]
    is_alive: Callable[[], bool] = lambda: True


class Progress(Protocol):
    """Who is told how parts get on."""

    def say(self, message: str) -> None:
        """A message of the engine."""

    def show(self, line: str) -> None:
        """A line of a part's controller, folded already."""


@dataclass(frozen=True)
class Parted:
    """How a campaign in parts ended: as `exit_code` says, joined into `merged`."""

    merged: Merged
    exit_code: int


@dataclass
class _Part:
    """A part while it runs. `code`: the exit status of its last controller."""

    task: PartTask
    future: Future | None = None
    records: int = 0
    fruitless: int = 0
    code: int | None = None
    why: str = ""
    told: int = 0  # bytes of its progress


def run(
    campaign: Campaign,
    results: Path,
    progress: Progress,
    scheduler: str | None = None,
    parts: int | None = None,
    insecure: bool = False,
) -> Parted:
    """Run a campaign in parts, by default as many as there are places for them: on a Dask scheduler
    by its address, or on this machine. Errors: RequestError without Dask, for parts that cannot be,
    or a scheduler without TLS unless `insecure`; PlaceError.
    """
    if parts is not None:
        split(campaign, parts)
    final = new_place(results, campaign.name)
    most = parts or most_parts(campaign)
    with _on_dask(scheduler, insecure) if scheduler is not None else _here(most) as places:
        folder = _prepared(final, campaign)
        parts = parts or min(most, places.number or most)
        wait = "" if places.number else f", which wait for a worker to join {scheduler}"
        progress.say(f"{count(parts, 'part')} below {folder}{wait}")
        engine = _Engine(places, folder, parts, progress)
        is_interrupted = not engine.run()
    return _joined(engine.parts, final, is_interrupted)


def _require_tls(distributed: Any, scheduler: str) -> None:
    """Whoever connects to a scheduler or a worker runs code there as its user: without certificates
    that is everybody (https://distributed.dask.org/en/stable/tls.html). Errors: RequestError.
    """
    options = "distributed.comm.tls of Dask's configuration: ca-file, client.cert, client.key"
    if not scheduler.startswith("tls://"):
        what = f"{scheduler} is not tls://, so whoever reaches it runs code as its user"
    elif not (security := distributed.Security()).tls_ca_file or not security.tls_client_cert:
        what = f"no files are named for {scheduler}"
    else:
        return
    raise RequestError(
        f"{what}; give a tls:// address and name the files in {options}"
        " (DASK_DISTRIBUTED__COMM__TLS__CA_FILE and so on in the environment), or accept it with"
        " --insecure"
    )


@contextmanager
def _here(most: int) -> Iterator[Places]:
    """Threads of this process, each of which waits for the controller of a part."""
    with ThreadPoolExecutor(most) as threads:
        yield Places(os.cpu_count() or 1, lambda task: threads.submit(run_part, task))


@contextmanager
def _on_dask(scheduler: str, insecure: bool) -> Iterator[Places]:
    """A scheduler's workers. Errors: RequestError where there is none, and without Dask."""
    try:
        import distributed
        from distributed.comm.addressing import get_address_host_port
    except ModuleNotFoundError as error:
        raise RequestError(
            "--scheduler needs Dask distributed; put it beside netbench: `pip install distributed`"
        ) from error
    if not insecure:
        _require_tls(distributed, scheduler)
    for name in ("distributed", "distributed.client"):  # what is lost, the engine says
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        if scheduler.partition("://")[0] in ("tcp", scheduler):  # Dask waits for ever to be greeted
            with socket.create_connection(get_address_host_port(scheduler), 10) as connection:
                connection.recv(1)
        client: Any = distributed.Client(scheduler, timeout="10s")  # type: ignore[no-untyped-call]
    except (OSError, ValueError, MemoryError, TypeError, RuntimeError) as error:
        raise RequestError(
            f"no Dask scheduler answers at {scheduler}: {error}; see that one runs there (`dask"
            " scheduler`), and, for tls://, that each file that Dask's configuration names is there"
        ) from error

    def submit(task: PartTask) -> Future:
        key = f"{Path(task.folder).name}-{task.number}-{task.attempt}"
        future: Future = client.submit(run_part, task, key=key, pure=False, retries=0)
        return future

    try:
        yield Places(sum(client.nthreads().values()), submit, lambda: client.status == "running")
    finally:
        client.close(timeout=5)


def _prepared(final: Path, campaign: Campaign) -> Path:
    """The folder of the parts, with what each needs, by a path that nobody else can lead elsewhere:
    a part's campaign is code. Errors: PlaceError.
    """
    folder = final.with_name(f"{final.name}-parts").absolute()
    try:
        make_folder(folder, 0o755)
        refuse_exchangeable(folder)
        write_new(folder / CAMPAIGN, campaign.text.encode(), forced=True)
        write_state(folder, RUN)
    except (OSError, StoreError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise PlaceError(
            f"cannot write {folder}: {why}; choose another place with --results"
        ) from error
    return folder


class _Engine:
    """Sees that each part is run to its end, and tells what they say."""

    def __init__(self, places: Places, folder: Path, of: int, progress: Progress) -> None:
        self._places = places
        self._folder = folder
        self._say = progress.say
        self._show = progress.show
        tasks = (PartTask(str(folder), number, of, 0) for number in range(1, of + 1))
        self.parts = list(map(_Part, tasks))

    def run(self) -> bool:
        """Run all parts; False where the user has interrupted them."""
        try:
            for part in self.parts:
                self._submit(part)
            while any(part.future for part in self.parts):
                time.sleep(LOOK_SECONDS)
                self._look()
        except KeyboardInterrupt:
            self._say("interrupted: all parts end, and put back what they have changed")
            self._stop()
            return False
        except BaseException:
            self._stop()
            raise
        if any(is_leased(part.task.own) for part in self.parts):
            self._stop()
        return True

    def _look(self) -> None:
        self._relay()
        if not self._places.is_alive():
            self._say(f"{GONE}: all parts end")
            for part in self.parts:
                if part.future:
                    part.future, part.code, part.why = None, 1, GONE
            return
        for part in self.parts:
            if part.future and part.future.done():
                self._ended(part, part.future)

    def _ended(self, part: _Part, future: Future) -> None:
        """A task is over: its part is, or goes on in another attempt."""
        part.future = None
        try:
            part.code = future.result(timeout=5)
            why = "its campaign was lost" if part.code == 1 else "its controller was killed"
        except RequestError as error:
            part.code, part.why = RequestError.exit_code, str(error)
            return
        except Exception as error:  # whatever Dask calls it, or an error of the task
            part.code = None
            why = str(error) if isinstance(error, NetbenchError) else "its task was lost"
        if part.code in (0, RequestError.exit_code) or (part.code == 1 and _is_over(part.task)):
            return
        records = count_records(part.task.result) or 0 if part.task.result else 0
        part.fruitless = 0 if records > part.records else part.fruitless + 1
        part.records = records
        if part.fruitless < FRUITLESS:
            goes_on = f"it goes on from its {count(records, 'record')}"
            self._say(f"part {part.task.label}: {why}; {goes_on}")
            self._submit(part)
        else:
            part.code, part.why = 1, f"part {part.task.label}: {why}, {FRUITLESS} times in a row"
            self._say(f"{part.why}: given up")

    def _submit(self, part: _Part) -> None:
        part.task = replace(part.task, attempt=part.task.attempt + 1)
        part.future = self._places.submit(part.task)

    def _relay(self) -> None:
        """Tell what the parts' controllers have said since."""
        for part in self.parts:
            file = part.task.own / PROGRESS
            if not file.is_file():
                continue
            with file.open("rb") as progress:
                progress.seek(part.told)
                text, _, _ = progress.read().rpartition(b"\n")
            if text:
                part.told += len(text) + 1
                for line in text.decode("utf-8", "replace").splitlines():
                    self._show(f"part {part.task.label}: {line}")

    def _stop(self) -> None:
        """Let all parts end, and wait for that. One without a controller holds no lease."""
        write_state(self._folder, STOP)
        for part in self.parts:
            if part.future:
                part.future.cancel()
        deadline = time.monotonic() + END_SECONDS
        while time.monotonic() < deadline and any(self._lives(part) for part in self.parts):
            time.sleep(LOOK_SECONDS)
            self._relay()

    def _lives(self, part: _Part) -> bool:
        waits = part.future is not None and not part.future.done()
        return is_leased(part.task.own) or (waits and self._places.is_alive())


def _is_over(task: PartTask) -> bool:
    """Whether a part ended as it should, or by its limit, though a cell of it may have failed."""
    result = task.result
    return result is not None and Journal(result / "journal.jsonl").ended() in OVER


def _joined(parts: Sequence[_Part], final: Path, is_interrupted: bool) -> Parted:
    """The parts as one result. Errors: RequestError where no part was begun."""
    results = [result for part in parts if (result := part.task.result)]
    if not results:
        if is_interrupted:
            raise KeyboardInterrupt
        raise RequestError(
            next((p.why for p in parts if p.why), "no part could be begun; each said why")
        )
    merged = merge(results, final)
    failed = bool(merged.holes) or any(part.code for part in parts)
    return Parted(merged, INTERRUPTED if is_interrupted else int(failed))
