"""The rounds of a campaign: which of its units run side by side. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from netbench.model import Campaign, Pair
from netbench.plan.rounds import Rounds, rounds_of
from netbench.plan.steps import Unit


class CampaignRounds:
    """Rounds by how the pairs of a cell overlap. `boot_ids`: of hosts, where they are known; until
    then hosts share a kernel where the campaign says so.
    """

    def __init__(self, campaign: Campaign, boot_ids: Mapping[str, str]) -> None:
        self._campaign = campaign
        kernels = _known_kernels(campaign) | dict(boot_ids)
        overlaps = dict.fromkeys(campaign.overlap_of(cell) for cell in campaign.cells)
        self._rounds: dict[str, Rounds] = {
            overlap: rounds_of(overlap, campaign.pairs, campaign.links, kernels)
            for overlap in overlaps
        }
        self._number_of: dict[tuple[str, Pair], int] = {
            (overlap, pair): number
            for overlap, found in self._rounds.items()
            for number, pairs in enumerate(found)
            for pair in pairs
        }

    @property
    def fewest(self) -> Rounds:
        """All rounds; where `overlap` is swept, those in which most pairs are side by side."""
        return min(self._rounds.values(), key=len)

    def number(self, unit: Unit) -> int:
        """The number of a unit's round, from 0."""
        return self._number_of[self._campaign.overlap_of(unit.cell), unit.pair]

    def pairs(self, unit: Unit) -> tuple[Pair, ...]:
        """The pairs of a unit's round."""
        return self._rounds[self._campaign.overlap_of(unit.cell)][self.number(unit)]

    def share(self, unit: Unit) -> float:
        """A run's share in the time of those that run beside it."""
        return 1 / len(self.pairs(unit))


def _known_kernels(campaign: Campaign) -> dict[str, str]:
    """Hosts that share a kernel, as the campaign says: this machine, and its network namespaces."""
    here = {name for name, host in campaign.hosts.items() if host.local}
    if campaign.lab is not None:
        here = set(campaign.hosts) if campaign.lab.kind == "netns" else set()
    return dict.fromkeys(here, "")
