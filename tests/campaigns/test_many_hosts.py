"""Many pairs: their plan is lazy. Five hundred hosts at once, and what a controller takes of memory
then, are rows of `make bench PARTS=fleet`.
"""

from __future__ import annotations

from itertools import islice

import pytest

from netbench import campaign
from netbench.model import Campaign
from netbench.plan.plan import Key, Plan, Run

PAIRS = 250
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
