"""What is in doubt while a campaign runs: what costs little to know. The report has the rest."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

from netbench.facts.comparison import change
from netbench.live.tail import Tail
from netbench.plan.plan import Plan
from netbench.read.epochs import BETWEEN, Epochs
from netbench.read.noise_labels import Disturbance, disturbances, signs
from netbench.result.files import NOISE, NoiseEntry, parse_noise
from netbench.run.ledger import Ledger

KEPT = 500  # disturbed blocks: older ones are in the report
TICKS = 100  # of a host without facts, in a second


class Noise:
    """What disturbed the last blocks, read on in noise.jsonl."""

    def __init__(self, folder: Path) -> None:
        self._tail = Tail(folder / NOISE, below=2)
        self._disturbed: deque[NoiseEntry] = deque(maxlen=KEPT)
        self._found: list[Disturbance] = []

    def look(self, ledger: Ledger) -> bool:
        """Take in what is new; whether anything is. Errors: StoreError."""
        lines = self._tail.read()

        def ticks(host: str) -> int:
            entries = ledger.hosts.get(host)
            return entries[-1].clock_ticks if entries else TICKS

        for line in lines:
            entry = parse_noise(line, self._tail.path)
            if any(signs(entry, ticks(entry.host))):
                self._disturbed.append(entry)
        if lines:
            self._found = list(disturbances(self._disturbed, ticks))
        return bool(lines)

    def lines(self) -> Iterator[str]:
        """Each kind of disturbance, the gravest first."""
        for each in self._found:
            yield f"{each.what}: {each.evidence}"


def cautions(plan: Plan, ledger: Ledger, noise: Noise) -> list[str]:
    """One line each, the gravest first."""
    return [*_of_hosts(plan, ledger), *noise.lines(), *plan.campaign.warnings]


def _of_hosts(plan: Plan, ledger: Ledger) -> Iterator[str]:
    epochs = Epochs(ledger.hosts, plan.campaign.handled)
    for host, entries in ledger.hosts.items():
        if any(entry.is_emulated for entry in entries):
            yield f"{host}: its CPU is emulated: what is measured is the speed of no machine"
        elif any(entry.is_virtual_machine for entry in entries):
            yield f"{host}: a virtual machine: costs are those of a guest"
        if changed := epochs.changed(host):
            what = BETWEEN.join(change(*each) for each in changed)
            yield f"{host}: {what}: earlier runs are not pooled with those since"
