"""Pairs side by side, on four hosts of one kernel: what breaks one leaves the other alone."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from netbench.lab.lab import Lab
from netbench.result import campaign_state
from tests.support.labs import (
    ON_LABS,
    Begin,
    begin,
    head,
    in_flight,
    kill,
    made_lab,
    processes,
    state,
    watched,
)
from tests.support.local import call, ran
from tests.support.running import wait_for, with_values

__all__ = ["begin", "watched"]
pytestmark = ON_LABS

NAME = f"s{os.getpid()}"

PAIRS = ["a>b", "c>d"]
PAIRED = f"""\
verify: off
pairs: [{", ".join(f"{{sender: {pair[0]}, receiver: {pair[2]}}}" for pair in PAIRS)}]
transfer: {{duration: 200ms, warmup: 10ms, sample: 0, congestion: cubic}}
"""
KERNEL = f"overlap: kernel\nsettings: {{tso: off, mtu: 1400}}\n{PAIRED}"

LINES = 40  # at which Ctrl-C is pressed

Record = dict[str, Any]


@pytest.fixture(scope="module")
def four() -> Iterator[Lab]:
    """Four hosts, for all tests that leave them in order."""
    with made_lab(f"{NAME}r", "abcd") as made:
        yield made


@pytest.fixture
def own() -> Iterator[Lab]:
    """Four hosts of one test alone."""
    with made_lab(f"{NAME}l", "abcd") as made:
        yield made


@pytest.mark.parametrize("together", [False, True])
def test_pairs_of_one_kernel_overlap_where_the_campaign_says_so_and_else_do_not(
    begin: Begin, four: Lab, together: bool
) -> None:
    said = f"overlap: {'kernel' if together else 'none'}\nrepeat: {{min: 2, max: 2}}\n"
    running = begin(four, PAIRED.replace("200ms", "300ms") + said)
    code, output = running.end()
    assert code == 0, output
    records = running.records()
    spans = [tuple(record["sender"]["time_ns"]) for record in records]
    assert len(spans) == 4
    overlapping = sum(a[0] < b[1] and b[0] < a[1] for a, b in combinations(spans, 2))
    assert overlapping == (2 if together else 0)
    for record in records:
        others = [pair for pair in PAIRS if pair != record["pair"]]
        assert record["concurrent"] == (others if together else [])
        assert record["round"] == (1 if together else 1 + PAIRS.index(record["pair"]))
        assert ("procstat" in record["sender"]) != together
        assert "rusage" in record["sender"]
        assert "rusage" in record["receiver"]
    plan = json.loads((running.folder / "plan.json").read_text())
    assert plan["rounds"] == ([PAIRS] if together else [[pair] for pair in PAIRS])


def test_a_pair_whose_receiver_is_gone_is_given_up_and_the_other_goes_on(
    begin: Begin, own: Lab
) -> None:
    """So does a controller that resumes it, without the hosts of that pair."""
    soon = with_values(run__worker_pool__RECONNECT_SECONDS=1.0)
    text = f"overlap: kernel\nsettings: {{tso: off}}\n{PAIRED}"
    campaign = begin(own, f"{text}repeat: {{min: 15, max: 15}}\n", soon, watch=False)
    campaign.await_records(2)
    host = own.hosts["d"]
    kill(*processes(host, "sshd"), *processes(host, "worker-"))

    def given_up() -> list[Record]:
        return [record for record in campaign.records() if record["status"] == "failed"]

    wait_for(lambda: bool(given_up()), lambda: campaign.process.poll() is None)
    (failed,) = given_up()
    assert failed["pair"] == "c>d"
    assert failed["reason"].startswith("lost: d (")
    campaign.await_records(3)
    last = campaign.records()[-3:]
    assert [(r["pair"], r["status"], r["concurrent"]) for r in last] == [("a>b", "ok", [])] * 3
    campaign.process.send_signal(signal.SIGINT)
    assert "c>d is given up: d (" in campaign.end()[1]
    before = campaign.records()
    done = call("resume", campaign.folder)
    assert done.returncode == 1, done.stderr  # cells have failed
    said = " ".join(done.stderr.split())
    assert "given up before, and left out: c>d; not connected to: c, d; `restore" in said
    assert f"`restore {campaign.folder}` puts back what is left changed on d" in said
    found = campaign_state.find(campaign.folder)
    assert found
    assert found.path.name in {name for name, *_ in campaign_state.unfinished()}
    records = campaign.records()[len(before) :]
    assert {(r["pair"], r["status"], r["round"]) for r in records} == {("a>b", "ok", 1)}
    assert len([r for r in campaign.records() if r["pair"] == "a>b" and r["status"] == "ok"]) == 15


def test_an_interrupt_ends_all_runs_in_flight_and_puts_back_what_they_hold(
    begin: Begin, four: Lab
) -> None:
    before = state(four)
    campaign = begin(four, KERNEL + "repeat: {min: 100, max: 100}\n")
    campaign.await_records(2)
    in_flight(campaign, four)
    assert state(four) != before
    campaign.process.send_signal(signal.SIGINT)
    code, said = campaign.end()
    assert code == 130, said
    assert state(four) == before
    records = campaign.records()
    assert len({record["run"] for record in records}) == len(records)
    ended = [record["pair"] for record in records if record["status"] == "interrupted"]
    assert len(ended) == len(set(ended))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ctrl_c_at_any_line_ends_the_campaign_and_puts_back(four: Lab, tmp_path: Path) -> None:
    """At lines of the main thread: one drawn from the time seldom lies where a lock is taken."""
    text = KERNEL.replace("200ms", "30ms")
    file = tmp_path / "c.yaml"
    file.write_text(f"{head(four, 'lines')}{text}repeat: {{min: 2, max: 2}}\n")

    def run(folder: str, *press: str | Path) -> int:
        words = ["run", file, "--results", tmp_path / folder]
        done = ran([sys.executable, "-m", "tests.support.press_at", *press, *words], timeout=60)
        assert "defect" not in done.stderr
        return done.returncode

    before = state(four)
    assert run("all", "lines", tmp_path / "lines.json") == 0
    rng = random.Random(1)
    lines = rng.sample(json.loads((tmp_path / "lines.json").read_text()), LINES)
    statuses = Counter[int]()
    for number, (path, line, passed) in enumerate(lines):
        place = f"{path}:{line}:{rng.randint(1, passed)}"
        statuses[run(str(number), place)] += 1
        assert state(four) == before, place
    # Some lines are passed less often in another run, and the last ones when all is done.
    assert statuses[130] > LINES / 2
    assert statuses.keys() <= {0, 130, -signal.SIGALRM}  # Python gives up its handlers at its end
