"""What dead campaigns of this account left changed. No other one begins on top of that, so what a
campaign finds on a host is the host's own, and the order in which two are put back is no matter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from netbench.engine.worker import Worker
from netbench.result import campaign_state
from netbench.result.journal import Booted, Change, machine_of
from netbench.run.finding import Finding
from netbench.run.worker_pool import WorkerPool
from netbench.settings.put_back import undone_by


def left_over(pool: WorkerPool, hosts: Collection[str], own: str = "") -> Iterator[Finding]:
    """An error for each of these hosts that another campaign than `own` has left changed, but for
    what its helper has undone. Errors: those of reaching a host.
    """
    for identity, journal in campaign_state.unfinished():
        if isinstance(journal, str):
            what = f"what the campaign {identity} has left changed is not known: {journal}"
            yield Finding("warning", "", what, "see that it is not measured: `restore` lists it")
        if isinstance(journal, str) or identity == own:
            continue
        changes, away = journal.left_changes(), journal.original_kernels()
        booted = {e.boot_id: e.release for e in journal.all(Booted) if e.host in away}
        for host in hosts:
            worker = pool.holder(host) if pool.has_helper(host) else pool.host_worker(host)
            if what := _left_on(worker, changes, booted, identity):
                remedy = f"`restore {identity}` puts it back"
                yield Finding("error", host, f"a dead campaign has left {what}", remedy)


def _left_on(
    worker: Worker, changes: Sequence[Change], booted: Mapping[str, str], campaign: str
) -> str:
    """What of a campaign's changes is left on a worker's host. `booted`: releases by boot id."""
    hello = worker.hello
    if hello.boot_id in booted:
        return f"it on another kernel, {booted[hello.boot_id]}"
    machine = machine_of(hello.machine)
    here = [change for change in changes if change.is_on(hello.boot_id, hello.network, machine)]
    undone = undone_by(worker, campaign, [change.number for change in here])
    left = [change for change in here if change.number not in undone]
    return f"{left[-1].setting} changed" if left else ""
