"""Whether pairs that run side by side on one kernel can hold what the campaign sets."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.model import Campaign, Pair
from netbench.plan.rounds import rounds_of
from netbench.run.finding import Finding
from netbench.run.host_locks import changes_kernel
from netbench.run.worker_pool import WorkerPool


def check_overlap(campaign: Campaign, pool: WorkerPool) -> Iterator[Finding]:
    """An error where two pairs would set what is of their whole kernel at the same time: the second
    might take what the first has set for what was there before.
    """
    if not changes_kernel(campaign) or "kernel" not in map(campaign.overlap_of, campaign.cells):
        return
    kernel = pool.boot_ids()
    for pairs in rounds_of("kernel", campaign.pairs, campaign.links, {}):
        first_on: dict[str, Pair] = {}
        for pair in pairs:
            for one in {kernel[pair.sender], kernel[pair.receiver]}:
                other = first_on.setdefault(one, pair)
                if other is not pair:
                    yield Finding(
                        "error",
                        "",
                        f"overlap: kernel: {other.name} and {pair.name} share a kernel, and a"
                        " setting of this campaign is of the whole kernel",
                        "write `overlap: round`",
                    )
                    return
