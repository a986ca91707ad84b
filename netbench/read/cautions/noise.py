"""What disturbed blocks: another load, the hypervisor, clocks, links, lost packets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from netbench.base.units import listed, said_of
from netbench.read.cautions.rule import Caution, Cautions, Evidence, caution
from netbench.read.noise_labels import KINDS, Sign, in_words, seen

COUNTERS_SAID = 6  # of a kind; the rest are counted
BLOCKS_SAID = 8


@caution(60, remedy="stop what else runs; see the remedy of each kind of disturbance")
def noise(evidence: Evidence) -> Cautions:
    """Something else used a host, its clock or its network during blocks."""
    result = evidence.result
    places: dict[tuple[str, Sequence[str]], dict[str, dict[int, Sign]]] = {}
    for hosts, block, sign in seen(result.noise, result.ticks):
        by_name = places.setdefault((sign.kind, tuple(hosts)), {})
        by_name.setdefault(sign.name, {})[block] = sign
    if not places:
        return
    runs = pd.concat([result.runs, result.control_runs])
    ends = runs["pair"].astype(str).str.split(">")
    kinds = list(KINDS)
    for (kind, hosts), by_name in sorted(places.items(), key=lambda each: kinds.index(each[0][0])):
        what, remedy = KINDS[kind]
        blocks = sorted({block for signs in by_name.values() for block in signs})
        on_host = ends.map(lambda names, hosts=hosts: not {*hosts}.isdisjoint(names))
        labelled = int((on_host & runs["block"].isin(blocks)).sum())
        runs_text = said_of(labelled, "run", "there are labelled, and count")
        most_first = sorted(
            by_name.items(), key=lambda each: -max(sign.amount for sign in each[1].values())
        )
        yield Caution(
            f"{what} on {' and '.join(hosts)} in {_blocks(blocks)}; the {runs_text}.",
            tuple(sorted(hosts)),
            listed([_moved(name, signs) for name, signs in most_first], COUNTERS_SAID),
            remedy,
        )


def _blocks(blocks: Sequence[int]) -> str:
    if len(blocks) == 1:
        return f"block {blocks[0]}"
    first = ", ".join(map(str, blocks[:BLOCKS_SAID]))
    return f"{len(blocks)} blocks ({first}{', ...' if len(blocks) > BLOCKS_SAID else ''})"


def _moved(name: str, by_block: Mapping[int, Sign]) -> str:
    """A counter over its blocks: `rx_dropped 120, most in block 4 (80)`."""
    worst = max(by_block, key=lambda block: by_block[block].amount)
    sign = by_block[worst]
    if sign.kind in ("load", "steal", "memory"):
        return f"{in_words(sign)} in block {worst}" + (", the most" if len(by_block) > 1 else "")
    total = sum(one.amount for one in by_block.values())
    most = f", most in block {worst} ({sign.amount:.0f})" if len(by_block) > 1 else ""
    return f"{name} {total:.0f}{most}"
