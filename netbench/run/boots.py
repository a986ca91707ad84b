"""Where a campaign that boots its hosts gets the add-on that does so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from netbench.model import Campaign
from netbench.result.journal import Journal
from netbench.run.worker_pool import WorkerPool

if TYPE_CHECKING:
    from netbench.kernels.boot.campaign_boots import Boots


def boots_of(
    campaign: Campaign, pool: WorkerPool, journal: Journal, say: Callable[[str], None]
) -> Boots | None:
    """Boots of a campaign's hosts; None where it leaves them as they are. `say` gets lines for the
    log and the terminal.
    """
    if not campaign.boots_hosts:
        return None
    from netbench.kernels.boot.campaign_boots import Boots

    return Boots(campaign, pool, journal, say)
