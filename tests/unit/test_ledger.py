"""When cells close: replaying records gives the same answer as living through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from netbench import campaign
from netbench.plan.plan import Key, Plan
from netbench.plan.plan_json import plan_json
from netbench.read.accounts import ACCOUNTS
from netbench.result.files import HostEntry
from netbench.result.record import Record, SideCounters, Status
from netbench.result.store import Store, now
from netbench.run.ledger import FAILURES_IN_A_ROW, Ledger
from netbench.run.run_history import finished

TEXT = """\
netbench: 1
name: l
sweep: {send: [write, sendfile]}
repeat: {min: 3, max: 6, precision: 5%}
"""
WRITE, SENDFILE = ("send=write", "here>here"), ("send=sendfile", "here>here")


BASE, OTHER, CONTROL = (
    (cell, "here>here") for cell in ("chunk=2K", "chunk=1K", "chunk=2K,control")
)
COMPARED = """\
netbench: 1
name: c
sweep: {chunk: [1K, 2K]}
compare: {factor: chunk, baseline: 2K, control: on}
repeat: {min: 3, max: 6, precision: 5%}
"""
STEADY, WILD = [10, 10.001, 9.999, 10, 10.002, 9.998], [10.0, 30, 5, 22, 50, 7]


def ledger(text: str = TEXT) -> Ledger:
    plan = Plan(campaign.parse(text, "l.yaml"))
    return Ledger(plan, {"here": 100}, {"here>here": True}, ACCOUNTS)


def record(
    run: int, key: Key, block: int, gigabits: float, status: Status = "ok", reason: str = ""
) -> Record:
    sides = (
        SideCounters("here", (0, 10**9), meters={"flow": {"bytes": [[0], [count]]}})
        for count in (1, int(gigabits * 1e9 / 8))
    )
    factors = dict(word.split("=") for word in key[0].removesuffix(",control").split(","))
    return Record(run, *key, block, 0, factors, status, reason, now(), *sides)


def play(book: Ledger, values: Mapping[Key, Sequence[float]]) -> list[Record]:
    """Give each unit its values block by block, while it is open."""
    told: list[Record] = []
    for block in range(max(map(len, values.values()))):
        for key, mine in values.items():
            if book.is_open(key) and block < len(mine):
                told.append(record(len(told) + 1, key, block, mine[block]))
                book.add(told[-1])
        book.next_block()
    return told


def test_a_closed_unit_may_run_along_until_it_has_the_most_runs() -> None:
    book = ledger()
    play(book, {WRITE: [10.0, 10.0, 10.0], SENDFILE: [10.0, 20.0, 30.0]})
    assert (book.status(WRITE), book.is_open(SENDFILE)) == ("converged", True)
    for block in range(3, 6):
        assert book.joins(WRITE)
        book.add(record(10 + block, WRITE, block, 10.0))
    assert not book.joins(WRITE), "repeat.max"
    book.add(record(20, SENDFILE, 5, 1.0, "failed", "lost: its host is gone"))
    assert (book.status(SENDFILE), book.joins(SENDFILE)) == ("failed", False)


@pytest.mark.parametrize(
    ("ends", "failed"),
    [
        (("refused", "refused"), True),
        (("refused", "unsupported"), True),
        (("refused", "ok"), False),
        (("refused",), False),
    ],
)
def test_a_campaign_with_nothing_but_refusals_has_failed(
    ends: tuple[Status, ...], failed: bool
) -> None:
    book = ledger()
    for run, (key, status) in enumerate(zip((WRITE, SENDFILE), ends, strict=False), 1):
        book.add(record(run, key, 0, 1.0, status, "" if status == "ok" else "why"))
    assert book.failed is failed


def test_a_block_under_way_is_taken_up_where_it_stopped_and_an_interrupted_run_again() -> None:
    book = ledger()
    book.add(record(1, WRITE, 0, 10))
    book.add(record(2, SENDFILE, 0, 10, "interrupted", "ctrl-c"))
    assert (book.block, book.done, book.runs) == (0, {WRITE}, 2)
    assert book.open_keys == [WRITE, SENDFILE]


def test_keys_that_include_attached_do_not_keep_levels_apart() -> None:
    extra = "compare: {factor: send, baseline: write}\ninclude: [{send: write, chunk: 8K}, {send: sendfile, chunk: 64K}]\n"
    book = ledger(TEXT + extra)
    cells = [unit.cell.id for unit in book._units.values()]
    names = ("send=write", "send=sendfile")
    write, sendfile = (next((c, "here>here") for c in cells if n in c) for n in names)
    for block in range(3):
        for key, value in ((write, 10.0 + block * 3), (sendfile, 20.0 + block * 6)):
            book.add(record(2 * block + 1, key, block, value))
    book.next_block()
    assert book.open_keys == [], "their ratio is steady, though neither is"


# --- a control ---


def test_a_wild_control_keeps_no_campaign_open_and_no_steady_one_closes_it() -> None:
    book = ledger(COMPARED)
    assert (book.size, book.open_count, book.open_keys) == (2, 2, [OTHER, BASE, CONTROL])
    play(book, {BASE: STEADY, OTHER: STEADY, CONTROL: WILD})
    assert book.finished
    assert not book.is_open(CONTROL)
    assert book.assessment(CONTROL).n == 3  # repeat.min, as its baseline
    book = ledger(COMPARED)
    play(book, {BASE: STEADY[:4], OTHER: WILD[:4], CONTROL: STEADY[:4]})
    assert {BASE, CONTROL} <= set(book.open_keys)
    assert book.assessment(CONTROL).n == 4


def test_a_control_that_fails_is_given_up_and_goes_with_its_baseline() -> None:
    book = ledger(COMPARED)
    for block in range(FAILURES_IN_A_ROW):
        assert book.is_open(CONTROL)
        book.add(record(2 * block + 1, BASE, block, 10))
        book.add(record(2 * block + 2, CONTROL, block, 0, "failed"))
        assert book.failed
    assert (book.is_open(CONTROL), book.is_open(BASE)) == (False, True)
    book = ledger(COMPARED)
    book.add(record(1, BASE, 0, 0, "unsupported"))
    assert (book.is_open(CONTROL), book.is_open(OTHER)) == (False, True)


# --- boots ---


BOOTS = """\
netbench: 1
name: b
hosts: {h: {ssh: h, address: 192.0.2.1}}
sweep: {kernel: [a, b], send: [write, sendfile]}
repeat: {min: 4, boots: 2, max: 30}
"""


def booted(run: int, cell: str, block: int, status: Status = "ok", reason: str = "") -> Record:
    unbooted = record(run, (cell, "h>h"), block, 10 + block / 10, status, reason)
    return replace(unbooted, boot=block // 2 + 1)


def in_boots() -> tuple[Plan, Ledger]:
    plan = Plan(campaign.parse(BOOTS, "b.yaml"))
    return plan, Ledger(plan, {"h": 100}, {"h>h": True}, ACCOUNTS)


def test_a_kernel_that_cannot_be_booted_leaves_blocks_without_records() -> None:
    plan, book = in_boots()
    lost = next(boot.kernel for boot in plan.all_boots() if boot.number == 1)
    for run, unit in enumerate(plan.wanted(0, book.is_open, ()), 1):
        book.add(booted(run, unit.cell.id, 0, "failed", "boot: it panicked"))
    assert [key[0] for key in book.open_keys] == [
        key[0] for key in book.open_keys if f"kernel={lost}" not in key[0]
    ]
    assert book.is_possible(7, 3), "blocks of the lost kernel have no records"
    assert not book.is_possible(8, 100)
    assert book.failed


def test_a_result_is_finished_only_when_its_last_block_is_whole(tmp_path: Path) -> None:
    plan, _ = in_boots()
    store = Store.create(tmp_path, "b", BOOTS, plan_json(plan) | {"rows": []})
    store.lock()
    store.facts({"h": [HostEntry(1, "x", 100, {})]})
    every = ((block, plan.wanted(block, lambda key: True, ())) for block in range(8))
    order = [(block, unit.cell.id) for block, units in every for unit in units]
    for run, (block, cell) in enumerate(order[:-1], 1):
        store.append(booted(run, cell, block))
    assert not finished(store.path, plan.campaign)
    store.append(booted(len(order), order[-1][1], order[-1][0]))
    assert finished(store.path, plan.campaign)
    store.close()
