"""Steps side by side: they begin together, and what breaks one pair is told from what breaks all."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from netbench import campaign
from netbench.base.cancel import aside, side_by_side
from netbench.base.errors import HostGone, Lost, WorkerLost
from netbench.plan.plan import Plan, Run, Unit
from netbench.result.record import Record
from netbench.run.check import check_overlap
from netbench.run.ends import Measurement
from netbench.run.runner import Runner, StartGate
from tests.support.local import ran
from tests.support.running import wait_for
from tests.unit.conftest import PAIRS, Pressing

# --- the gate ---


def test_nobody_passes_the_gate_before_all_are_there_or_have_left() -> None:
    gate = StartGate(["a>b", "c>d", "e>f"])
    prepared: list[str] = []
    passed: dict[str, tuple[Collection[str], tuple[str, ...]]] = {}

    def run(name: str) -> None:
        prepared.append(name)
        if name == "e>f":
            gate.leave(name)
        else:
            others = gate.wait(name)
            passed[name] = set(prepared), others

    side_by_side([lambda name=name: run(name) for name in ("a>b", "c>d", "e>f")], lambda: None)
    every = {"a>b", "c>d", "e>f"}
    assert passed == {"a>b": (every, ("c>d",)), "c>d": (every, ("a>b",))}


FEW_THREADS = """\
import re, resource, threading
from pathlib import Path
from netbench.base.errors import NetbenchError
from netbench.base.cancel import side_by_side
stack, done = 64 << 20, []
threading.stack_size(stack)
used = int(re.search(r"VmSize:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (used + 3 * stack + (stack >> 1), -1))
try:
    side_by_side([lambda at=at: done.append(at) for at in range(9)], lambda: None, {at_once})
except NetbenchError as error:
    print(error)
print(sorted(done))
"""
REFUSED = "things cannot be done at the same time: can't start new thread; raise the limit"


# at once, some would wait for the others
@pytest.mark.parametrize(
    ("at_once", "said", "done"), [(0, f"9 {REFUSED}", []), (6, "", [*range(9)])]
)
def test_where_the_system_refuses_threads_fewer_do_or_none_begins(
    at_once: int, said: str, done: list[int]
) -> None:
    ended = ran([sys.executable, "-c", FEW_THREADS.format(at_once=at_once)], check=True, timeout=60)
    *told, last = ended.stdout.splitlines()
    assert " ".join(told).startswith(said)
    assert bool(told) == bool(said)
    assert last == str(done)


def test_of_several_errors_that_of_the_first_act_is_raised_when_all_are_done() -> None:
    later, done = threading.Event(), list[int]()

    def act(at: int) -> None:
        if at == 0:
            later.wait(60)
        later.set()
        done.append(at)
        if at < 2:
            raise ValueError(f"act {at}")

    with pytest.raises(ValueError, match="act 0"):
        side_by_side([partial(act, at) for at in range(3)], lambda: None)
    assert sorted(done) == [0, 1, 2]


def test_an_interrupt_while_runs_begin_lets_none_wait_for_one_that_never_does(
    pressing: Pressing,
) -> None:
    gate, passed = StartGate(["a>b", "c>d"]), list[str]()

    def run(name: str) -> None:
        gate.wait(name)
        passed.append(name)

    told = threading.Event()
    with pressing(), pytest.raises(KeyboardInterrupt):
        side_by_side([partial(run, "a>b"), partial(run, "c>d")], told.set)
    assert sorted(passed) == ["a>b", "c>d"]
    assert told.is_set()


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("what", ["side by side", "aside"])
def test_an_interrupt_that_wakes_nobody_is_seen_soon(what: str) -> None:
    """As one that comes just before the wait: here another thread takes the signal."""
    told, heard, main = threading.Event(), list[bool](), threading.main_thread().ident or 0

    def press() -> None:
        wait_for(lambda: sys._current_frames()[main].f_code.co_name == "_take")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        os.kill(os.getpid(), signal.SIGINT)
        heard.append(told.wait(60))

    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        with pytest.raises(KeyboardInterrupt):
            side_by_side([press], told.set) if what == "side by side" else aside(press)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        told.set()
    wait_for(lambda: bool(heard))
    assert heard == [True]


def test_nothing_is_begun_after_an_interrupt_but_what_has_a_thread(pressing: Pressing) -> None:
    done, told = list[int](), threading.Event()

    def act(at: int) -> None:
        told.wait(60)
        done.append(at)

    with pressing(), pytest.raises(KeyboardInterrupt):
        side_by_side([partial(act, at) for at in range(9)], told.set, 2)
    assert sorted(done) == [0, 1]


# --- pairs that break ---


class Kept(SimpleNamespace):
    """A recorder: `records` of runs by pair, and `failed`: what units are said to have failed of."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.failed: dict[str, str] = {}
        self.ledger = SimpleNamespace(is_open=lambda key: key[1] not in self.failed)
        self.store = SimpleNamespace(note=lambda line: None)
        self.next_number = itertools.count(1).__next__

    def keep(self, unit: Unit, record: Record, *beside: object) -> None:
        self.records[unit.pair.name] = record

    def keep_unmeasured(self, unit: Unit, status: str, reason: str) -> None:
        self.failed[unit.pair.name] = reason


def runner(plan: Plan, kind: type[Runner] = Runner, **more: Any) -> Any:
    """A runner without workers; `more`: of its pool and its settings."""
    names = ("pair_workers", "dismiss_pair", "dismiss_lost", "interrupt", "reached", "renew")
    fake: Any = SimpleNamespace(
        **{name: lambda *_: (None, None) for name in names},
        wanted=lambda unit: "enter" in more,
        note=lambda unit, record: record,
    )
    vars(fake).update(more)
    kept: Any = Kept()
    nothing: Any = None
    return kind(plan, plan.campaign, fake, fake, nothing, nothing, kept, lambda line: None)


class Losing(Runner):
    """A runner whose runs lose what `lost` says, by pair; `ran`: those that lose nothing."""

    lost: Callable[[str], Exception | None]
    ran: tuple[str, ...] = ()

    def _run(self, step: Run, gate: StartGate | None) -> None:
        name = step.unit.pair.name
        if error := self.lost(name):
            raise error
        self.ran = (*self.ran, name)

    @property
    def failed(self) -> dict[str, str]:
        return dict(vars(self._recorder)["failed"])


GONE, KILLED = HostGone("d is gone"), WorkerLost("killed")


@pytest.mark.parametrize(
    ("lost", "failed", "ran"),
    [
        ({"c>d": [GONE] * 3}, {"c>d": "lost: d is gone"}, {"a>b": 3, "c>d": 0}),
        # three in a row
        ({"c>d": [KILLED, KILLED, None, KILLED, KILLED]}, {}, {"a>b": 5, "c>d": 1}),
        (
            {"c>d": [KILLED, KILLED, None, KILLED, KILLED, KILLED]},
            {"c>d": "lost: killed"},
            {"a>b": 6, "c>d": 1},
        ),
        ({"a>b": [GONE], "c>d": [GONE]}, None, {}),  # all pairs: the campaign ends
    ],
)
def test_a_pair_that_is_lost_has_failed_and_takes_no_further_part(
    lost: dict[str, list[Exception | None]], failed: dict[str, str] | None, ran: dict[str, int]
) -> None:
    plan = Plan(campaign.parse(PAIRS, "w.yaml"))
    left = {name: iter(errors) for name, errors in lost.items()}
    executed = runner(plan, Losing)
    executed.lost = lambda name: next(left[name]) if name in left else None
    ends = pytest.raises((Lost, HostGone), match="is gone") if failed is None else nullcontext()
    with ends:
        for block in range(max(map(len, lost.values()))):
            (wave,) = plan.block(block, lambda key: True)
            executed.execute(wave)
            executed.end_block()
    assert executed.failed == (failed or {})
    assert Counter(executed.ran) == Counter(ran)


def test_of_a_pair_that_is_given_up_only_units_that_are_open_have_failed() -> None:
    plan = Plan(campaign.parse(f"{PAIRS}sweep: {{chunk: [16K, 32K]}}\n", "w.yaml"))
    executed = runner(plan, Losing)
    executed.lost = lambda name: GONE if name == "c>d" else None
    failed = list[str]()
    executed._recorder.ledger.is_open = lambda key: key[0] == "chunk=32K"
    executed._recorder.keep_unmeasured = lambda unit, *_: failed.append(unit.cell.id)
    wave = sorted(next(plan.block(0, lambda key: True)), key=lambda step: step.unit.pair.name)
    for step in wave:
        executed.execute([step])
    executed.end_block()  # the one that was lost was its last
    executed.execute(wave[:1])
    assert failed == ["chunk=32K"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("error", [TimeoutError("no answer"), WorkerLost("c: killed")])
def test_no_run_waits_at_the_gate_for_one_that_fails_before_it_is_there(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    plan = Plan(campaign.parse(PAIRS, "w.yaml"))

    def measure(unit: Unit, ends: object, number: int, start: Callable[[], None]) -> Measurement:
        if unit.pair.name == "a>b":
            start()
            raise ValueError("it began")
        raise error

    executed = runner(plan)
    monkeypatch.setattr(executed, "_measure", measure)
    monkeypatch.setattr(executed, "_ends", SimpleNamespace(ends=lambda unit, beside: ()))
    executed.execute([Run(unit, 0, 0, 0, round=1) for unit in plan.units])
    kept = executed._recorder.records
    assert kept["a>b"].concurrent == ()
    assert kept["a>b"].reason == "it began"
    assert kept["c>d"].status == ("interrupted" if isinstance(error, WorkerLost) else "failed")


# --- settings of the whole kernel ---


@pytest.mark.parametrize(
    ("more", "networks", "refused"),
    [
        ("overlap: kernel\nsettings: {sysctl.kernel.nmi_watchdog: 0}\n", (1, 2, 3, 4), True),
        ("overlap: kernel\nsettings: {sysctl.net.ipv4.tcp_sack: 0}\n", (1, 2, 3, 4), False),
        ("overlap: kernel\nsettings: {sysctl.net.ipv4.tcp_sack: 0}\n", (1, 2, 3, 1), True),
        ("overlap: kernel\nsweep: {tso: [on, off]}\n", (1, 1, 1, 1), True),
        ("overlap: kernel\n", (1, 1, 1, 1), False),
        ("settings: {sysctl.kernel.nmi_watchdog: 0}\n", (1, 1, 1, 1), False),
    ],
)
def test_pairs_side_by_side_on_one_kernel_do_not_set_what_is_of_all_of_it(
    more: str, networks: Sequence[int], refused: bool
) -> None:
    hosts: Any = [SimpleNamespace(boot_id="b", network=number) for number in networks]
    found = list(check_overlap(campaign.parse(PAIRS + more, "w.yaml"), hosts))
    assert bool(found) == refused
    assert all(one.level == "error" for one in found)
