"""Many pairs: their plan is lazy, and conducting twice as many blocks over them leaves no more in
memory. Five hundred hosts at once are a row of `make bench PARTS=fleet`.
"""

from __future__ import annotations

import gc
import resource
from itertools import islice
from pathlib import Path

import pytest

from netbench import campaign
from netbench.engine import binding
from netbench.model import Campaign
from netbench.plan.plan import Key, Plan, Run
from netbench.run import conductor
from netbench.run.ledger import Ledger
from netbench.stats.closing import Assessment
from tests.support.running import stored_records
from tools.bench.fleet import simulated

PAIRS = 250
CONDUCTED, BLOCKS = 16, 8  # pairs, whose workers are processes here
TEXT = """\
netbench: 1
name: many
verify: off
overlap: kernel
{hosts}
repeat: {{min: {blocks}, max: {blocks}}}
{more}
"""


def many(pairs: int, blocks: int, host: str, more: str) -> Campaign:
    """A campaign of so many pairs. `host`: what is written of each host, with its number."""
    hosts = ", ".join(f"h{n}: {host.format(n >> 8, n & 255, n)}" for n in range(2 * pairs))
    named = ", ".join(f"{{sender: h{2 * n}, receiver: h{2 * n + 1}}}" for n in range(pairs))
    block = f"hosts: {{{hosts}}}\npairs: [{named}]"
    return campaign.parse(TEXT.format(hosts=block, blocks=blocks, more=more), "many.yaml")


@pytest.fixture(scope="module")
def plan() -> Plan:
    sweep = "sweep: {send: [write, sendfile], socket_buffer: [64K, 128K], streams: [1, 2]}\n"
    return Plan(many(PAIRS, 100_000, "{{ssh: h{2}, address: 10.{0}.{1}.1}}", sweep))


def test_a_plan_of_250_pairs_asks_for_a_unit_when_its_turn_has_come(plan: Plan) -> None:
    asked: list[Key] = []

    def is_open(key: Key) -> bool:
        asked.append(key)
        return True

    waves = plan.block(99_999, is_open)
    first = [step.unit.key for wave in islice(waves, 3) for step in wave if isinstance(step, Run)]
    assert len(first) == 3 * PAIRS
    assert list(dict.fromkeys(asked)) == first
    assert len(list(waves)) == 8 - 3


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.slow
def test_conducting_twice_as_many_blocks_leaves_no_more_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is flat in bytes; objects that the collector knows tell even what is small, a run's
    record. Nor does a run look at all the other units.

    The heartbeat is stopped meanwhile: what it has in hand, up to a beat for each host, depends on
    the instant.
    """
    held: list[tuple[int, int]] = []
    assessed = [0]
    next_block, assessment = Ledger.next_block, Ledger.assessment

    def counting(ledger: Ledger, key: Key) -> Assessment:
        assessed[0] += 1
        return assessment(ledger, key)

    def measured(ledger: Ledger) -> None:
        next_block(ledger)
        gc.collect()
        held.append((resident(), len(gc.get_objects())))

    monkeypatch.setattr(binding, "HEARTBEAT_SECONDS", 3600.0)
    monkeypatch.setattr(Ledger, "next_block", measured)
    monkeypatch.setattr(Ledger, "assessment", counting)
    transfer = "transfer: {send: 'null', receive: 'null', duration: 20ms, warmup: 1ms, sample: 1ms}"
    made = many(CONDUCTED, BLOCKS, "local", f"{transfer}\nmeters: [rusage, procstat]")
    conclusion = conductor.start(made, tmp_path, channels=simulated)
    assert (conclusion.why, conclusion.failed) == ("done", False)
    records = stored_records(conclusion.path)
    assert [record["status"] for record in records] == ["ok"] * (CONDUCTED * BLOCKS)
    assert {record["pair"] for record in records} == {pair.name for pair in made.pairs}
    assert len(held) == BLOCKS
    (bytes_half, objects_half), (bytes_all, objects_all) = held[BLOCKS // 2 - 1], held[-1]
    assert bytes_all < 1.1 * bytes_half
    assert objects_all - objects_half < CONDUCTED * BLOCKS / 2, (
        "a run leaves a few numbers in memory, not its record or its samples"
    )
    assert assessed[0] <= 3 * len(records) + CONDUCTED
