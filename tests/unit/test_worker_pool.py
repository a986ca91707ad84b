"""Workers of a campaign: waiting for hosts that are lost, interrupts, and limits."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from netbench import campaign
from netbench.base.errors import HostError, HostGone, RequestError
from netbench.engine import frames
from netbench.engine.binding import Frame
from netbench.engine.connection import Connection
from netbench.hosts.host_channel import Channel
from netbench.hosts.local import LocalChannel, LocalProcess
from netbench.model import Host, Pin
from netbench.run import worker_pool
from netbench.run.conductor import Conductor
from netbench.run.ends import Cpus, Numbers, choose
from netbench.run.worker_pool import WorkerPool
from netbench.settings.cpus import cpu_numbers
from tests.unit.conftest import PAIRS, Pressing


def test_hosts_that_are_lost_one_after_another_are_waited_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until something is done again: then the next one that is lost is waited for anew."""
    monkeypatch.setattr(worker_pool, "RECONNECT_SECONDS", 0.1)
    monkeypatch.setattr(worker_pool, "RECONNECT_PAUSE", 0.01)
    tried = Counter[str]()

    def silent(host: Host) -> Channel:
        tried[host.name] += 1
        raise HostError(f"{host.name}: no answer")

    with WorkerPool(campaign.parse(PAIRS, "p.yaml"), silent) as pool:

        def wait_for(host: str, role: str) -> int:
            pool.dismiss(host, role)
            with pytest.raises(HostGone, match="no lost host was back within 0 s"):
                pool.worker(host, role)
            return tried[host]

        assert wait_for("a", "sender") > 1
        assert (wait_for("b", "receiver"), wait_for("c", "sender")) == (1, 1)
        pool.reached()
        assert wait_for("d", "receiver") > 1


def test_each_lost_worker_of_a_host_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first may come back by a connection that dies before the second."""
    monkeypatch.setattr(worker_pool, "RECONNECT_PAUSE", 0.01)
    starts = list[str]()

    class Dying(LocalChannel):
        def start_mover(self, run_as: str = "") -> LocalProcess:
            starts.append(run_as)
            if len(starts) == 4:
                raise HostError("the connection is lost")
            return super().start_mover(run_as)

    one = "netbench: 1\nname: o\nhosts: {here: local}\n"
    roles = ("sender", "receiver")
    with WorkerPool(campaign.parse(one, "o.yaml"), lambda host: Dying(host.name)) as pool:
        before = [pool.worker("here", role) for role in roles]
        for role in roles:
            pool.dismiss("here", role)
        after = [pool.worker("here", role) for role in roles]
        assert not set(before) & set(after)
        assert len(starts) == 5


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_is_not_held_up_by_what_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "INTERRUPT_SECONDS", 0.1)
    never, once, ended = threading.Event(), threading.Lock(), list[str]()

    def act(host: str) -> None:
        if once.acquire(blocking=False):
            os.kill(os.getpid(), signal.SIGINT)
        never.wait(60)
        ended.append(host)

    with WorkerPool(campaign.parse(PAIRS, "p.yaml")) as pool, pytest.raises(KeyboardInterrupt):
        pool.each(act)
    assert ended == []
    never.set()


def test_an_interrupt_while_a_worker_is_started_is_one_of_that_worker_too() -> None:
    """Else a run that begins on it would outlast the campaign's limit."""

    class Interrupting(LocalChannel):
        def start_mover(self, run_as: str = "") -> LocalProcess:
            started = super().start_mover(run_as)
            pool.interrupt()
            return started

    one = "netbench: 1\nname: o\nhosts: {here: local}\n"
    with WorkerPool(campaign.parse(one, "o.yaml"), lambda host: Interrupting(host.name)) as pool:
        worker = pool.worker("here", "sender")
        with pytest.raises(KeyboardInterrupt):
            worker.connection.next_frame(time.monotonic() + 2)


def test_an_interrupt_while_threads_are_started_waits_for_what_they_do(pressing: Pressing) -> None:
    """Two threads that read from one worker would take each other's answers."""
    done, never = list[str](), threading.Event()

    def act(host: str) -> None:
        never.wait(0.1)
        done.append(host)

    with WorkerPool(campaign.parse(PAIRS, "p.yaml")) as pool:
        with pressing(), pytest.raises(KeyboardInterrupt):
            pool.each(act)
        assert sorted(done) == ["a", "b", "c", "d"]


# Ctrl-C in the middle of what a worker sends or is sent


ANSWER = frames.frame(Frame.UNDONE, 1, b"all")


class Interrupted:
    """A stream during whose calls the user presses Ctrl-C: bytes have moved by then."""

    def __init__(self) -> None:
        self.chunks = [ANSWER[:7], ANSWER[7:]]
        self.written = b""
        self.pressed = False

    def _press(self) -> None:
        if not self.pressed:
            self.pressed = True
            signal.raise_signal(signal.SIGINT)

    def read(self, timeout: float) -> bytes:
        chunk = self.chunks.pop(0)
        self._press()
        return chunk

    def write(self, data: bytes) -> None:
        self.written += data[:5]
        self._press()
        self.written += data[5:]

    def finish(self, timeout: float) -> int | None:
        return 0

    def complaint(self) -> str:
        return ""


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_loses_nothing_of_what_was_read() -> None:
    connection = Connection(Interrupted(), "h")
    with pytest.raises(KeyboardInterrupt):
        connection.next_frame(time.monotonic() + 5)
    assert connection.next_frame(time.monotonic() + 5) == (Frame.UNDONE, 1, b"all")


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_leaves_no_half_of_a_frame() -> None:
    stream = Interrupted()
    connection = Connection(stream, "h")
    with pytest.raises(KeyboardInterrupt):
        connection.write(ANSWER)
    connection.write(ANSWER)
    assert stream.written == ANSWER + ANSWER


# The limit of open files, as a fleet needs it. Each case is a process of its own


PROGRAM = """\
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from netbench import campaign
from netbench.run.worker_pool import WorkerPool
WorkerPool(campaign.parse("netbench: 1\\nname: p\\nhosts: {{a: local}}\\n", "p.yaml")).close()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard", "left"), [(256, 1024, 1024), (1024, 1 << 17, 1 << 16)])
def test_the_limit_is_raised_as_far_as_the_hard_one_lets_it(
    soft: int, hard: int, left: int
) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    hard = hard if most == resource.RLIM_INFINITY else min(hard, most)
    argv = [sys.executable, "-c", PROGRAM.format(soft=soft, hard=hard)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert list(map(int, said)) == [min(left, hard), hard]


# The campaign's limit


def test_what_the_limit_interrupts_is_interrupted_before_settings_are_put_back() -> None:
    """An interrupt that came afterwards would end that."""
    begun, done = threading.Event(), list[str]()

    def interrupt(reason: object) -> None:
        begun.set()
        time.sleep(0.2)
        done.append("interrupted")

    conductor: Any = SimpleNamespace(
        _campaign=SimpleNamespace(limit=1),
        _begun=time.monotonic(),
        _pool=SimpleNamespace(interrupt=interrupt),
    )
    with Conductor._limited(conductor):
        assert begun.wait(60)
    assert done == ["interrupted"]


# Which CPU each side runs on


FOUR = Cpus((0, 1, 2, 3), {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)})
ONE = Cpus((5,), {5: (5,)})


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8", {0, 1, 2, 3, 8}), ("0", {0}), ("2,4-5", {2, 4, 5})]
)
def test_cpu_lists_of_the_kernel(text: str, cpus: set[int]) -> None:
    assert cpu_numbers(text) == cpus


@pytest.mark.parametrize(
    ("pin", "one_machine", "chosen"),
    [
        (Pin(), True, ((), ())),
        (Pin("same"), True, ((0,), (0,))),
        (Pin("apart"), True, ((0,), (2,))),  # another core, not the sibling
        (Pin("same"), False, ((0,), (0,))),
        (Pin("cpus", (3,), ()), True, ((3,), ())),
        (Pin("cpus", (), (1,)), True, ((), (1,))),
        (Pin("cpus", (3, 0), (0, 1, 2)), True, ((3, 0), (0, 1, 2))),  # in the order written
    ],
)
def test_choice(pin: Pin, one_machine: bool, chosen: tuple[Numbers, Numbers]) -> None:
    assert choose(pin, FOUR, FOUR, one_machine) == chosen
    two = Cpus((0, 1), {0: (0, 1), 1: (0, 1)})  # there is no other core
    assert choose(Pin("apart"), two, two, True) == ((0,), (1,))


def test_what_is_not_there_is_refused_with_what_is() -> None:
    with pytest.raises(RequestError, match="apart needs two CPUs"):
        choose(Pin("apart"), ONE, ONE, True)
    with pytest.raises(
        RequestError, match="receiver: the worker may not use CPU 9, only 0, 1, 2, 3"
    ):
        choose(Pin("cpus", (0,), (1, 9)), FOUR, FOUR, True)
    with pytest.raises(RequestError, match="sender: the worker may not use CPUs 4, 7, only 0, 1"):
        choose(Pin("cpus", (0, 4, 7), ()), FOUR, FOUR, True)
