"""What dead campaigns of this account left changed. No other one begins on top of that, so what a
campaign finds on a host is the host's own, and the order in which two are put back is no matter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from netbench.base.errors import EngineError, Lost, StoreError
from netbench.base.locked import is_locked
from netbench.engine.worker import Worker
from netbench.result import campaign_state
from netbench.result.campaign_state import CampaignState
from netbench.result.journal import BootBegun, Booted, Change, Journal, Restored, machine_of
from netbench.run.finding import Finding
from netbench.run.host_locks import lock_holders
from netbench.run.worker_pool import WorkerPool
from netbench.settings.put_back import undone_by

ROOT = 0  # the id of its user


def left_over(
    pool: WorkerPool, hosts: Collection[str], own: str = "", locked: Collection[str] = ()
) -> Iterator[Finding]:
    """An error for each host that another campaign than `own` has left changed, or `own` where it
    cannot put that back, but for what a helper has undone. `locked`: what of the hosts is locked
    for `own`: nobody else is at that, though somebody may be at a campaign that has changed it; and
    what is undone here is journalled, since a helper's word goes with the boot; any host could say
    that it is this one. Errors: of reaching one.
    """
    for identity, state in campaign_state.unfinished():
        if isinstance(state, str):
            what = f"what the campaign {identity} has left changed is not known: {state}"
            yield Finding("warning", "", what, "see that it is not measured: `restore` says more")
            continue
        is_busy = is_locked(state.journal)
        if is_busy and not locked:
            continue
        journal = Journal(state.journal)
        changes = journal.left_changes()
        away = journal.original_kernels() if identity != own else {}
        told = {name for name in away if isinstance(journal.boot_of(name), BootBegun | Booted)}
        booted = {each.boot_id for each in journal.all(Booted) if each.host in told}
        machines = {away[name].of_machine for name in told} - {""}
        shown = journal.modules_shown() if identity != own else []
        machines |= {each.of_machine for each in shown} - {""}
        for host in hosts:
            hello = pool.host_worker(host).hello
            here = hello.boot_id, hello.network, machine_of(hello.machine)
            of_host = [change for change in changes if change.is_on(*here)]
            worker = _with_root(pool, host) if of_host else pool.host_worker(host)
            if is_busy:  # it may be at another host of this kernel, or a clone of this machine
                of_host = [e for e in of_host if e.boot_id == here[0]]
                is_free = "kernel" in locked or (
                    worker.hello.user == ROOT and not lock_holders(worker, "kernel")[0]
                )
                near = 0, here[1]
                of_host = [e for e in of_host if is_free or not e.is_anywhere or e.network in near]
            if identity == own:
                back = journal.here(host, here[0], False, *here[1:])[0]
                now = [e for e in of_host if e.host == host and e.boot_id == here[0]]
                of_host = [change for change in now if change not in back]
            is_root = worker.hello.user == ROOT
            known = [c.number for c in of_host if is_root or c.op == "exec"]
            undone = undone_by(worker, identity, known)
            left = [change for change in of_host if change.number not in undone]
            what = f"{left[0].setting} changed" if left else "another kernel, or its modules"
            if left or here[0] in booted or here[2] in machines:
                remedy = f"`restore {identity}` puts it back"
                who = "a dead campaign has left"
                if is_busy and identity != own:
                    who, remedy = f"{state.result} has", "it is under way: wait until it ends"
                yield Finding("error", host, f"{who} {what}", remedy)
            elif of_host and locked and pool.is_local(host):
                _note_undone(state, of_host)


def _with_root(pool: WorkerPool, host: str) -> Worker:
    """The worker that knows what root's helpers have undone and locked, if there is one."""
    try:
        return pool.helper(host)
    except (Lost, EngineError):
        return pool.host_worker(host)


def _note_undone(state: CampaignState, changes: Sequence[Change]) -> None:
    with suppress(StoreError):  # somebody is at it
        state.lock(state.result)
        journal = Journal(state.journal)
        journal.begin()
        for change in changes:
            journal.write(Restored((change.number,), change.host))
    state.close()
