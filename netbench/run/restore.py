"""Putting back what a dead campaign left changed, from the journal of its state."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from netbench.base.errors import HostError, NetbenchError
from netbench.engine.worker import Worker
from netbench.model import Campaign, Host
from netbench.result.campaign_state import CampaignState
from netbench.result.journal import Back, Change, Journal, Restored, machine_of
from netbench.result.store import Store
from netbench.run.check import boots_of
from netbench.run.host_facts import own_boot_id
from netbench.run.host_locks import HostLocks, result_name
from netbench.run.worker_pool import ChannelFactory, WorkerPool, open_channel
from netbench.settings.put_back import There, put_back, undone_by


def restore(
    state: CampaignState, campaign: Campaign, channels: ChannelFactory = open_channel
) -> list[str]:
    """What was done on each host. Errors: StoreError, HostError, EngineError."""
    store = Store(state.result, state)
    try:
        store.lock_journal()
        return _put_back(store, campaign, channels)
    finally:
        store.close()


def restore_here(state: CampaignState, campaign: Campaign) -> list[str]:
    """Put back what hosts of a lab that is gone have changed of this machine itself; all else is
    gone with them. What was done. Errors: as restore; HostError with what programs have set, once:
    run outside of the lab, those that undo it might change something else.
    """
    store = Store(state.result, state)
    lines: list[str] = []
    try:
        store.lock_journal()
        journal = store.journal
        known = [journal.here(host, own_boot_id(), is_local=False) for host in campaign.hosts]
        here = [change for changes, _ in known for change in changes]
        if changes := [each for each in _of_machine(campaign, journal) if each in here]:
            worker = Worker(open_channel(Host("here")).start_helper(), "here")
            try:
                lines = _put_back_here(store, campaign, worker, changes)
            finally:
                worker.close()
        for change in here:
            journal.write(Restored((change.number,), change.host))
        if elsewhere := [line for _, of_host in known for line in of_host]:
            raise HostError("\n".join([*lines, *elsewhere]))
        for host, original in journal.original_kernels().items():
            journal.write(Back(host, original.boot_id))
        return lines
    finally:
        store.close()


def _put_back_here(
    store: Store, campaign: Campaign, worker: Worker, changes: Sequence[Change]
) -> list[str]:
    journal, campaign_id = store.journal, store.identity
    programs = [change for change in changes if change.op == "exec"]
    rest = [change for change in changes if change.op != "exec"]
    worker.operate("lock", "kernel", result_name(campaign, store))
    there = There(worker, worker.hello.boot_id)
    lines = list(put_back({each.host: there for each in rest}, rest, journal.write, campaign_id))
    undone = undone_by(worker, campaign_id, [change.number for change in programs])
    undos = [f"{each.host}: {_undo(each)}" for each in programs if each.number not in undone]
    for change in programs:
        journal.write(Restored((change.number,), change.host))
    worker.operate("undone", (campaign_id, "0"), "end")
    if undos:
        what = "the lab is gone; look, and put back by hand what is left of this:"
        raise HostError("\n".join([*lines, what, *undos]))
    return lines


def _of_machine(campaign: Campaign, journal: Journal) -> list[Change]:
    """What hosts of a lab of namespaces have changed of the machine that it is on."""
    if campaign.lab is None or campaign.lab.kind != "netns":
        return []
    changes = [change for host in campaign.hosts for change in journal.outstanding(host)]
    return [change for change in changes if change.is_anywhere]


def _put_back(store: Store, campaign: Campaign, channels: ChannelFactory) -> list[str]:
    """Boots first, then settings."""
    journal = store.journal
    lines: list[str] = []
    failed: list[NetbenchError] = []
    with WorkerPool(campaign, channels) as pool:
        name = result_name(campaign, store)
        locks = HostLocks(campaign, pool, name, identity=store.identity)
        if boots := boots_of(campaign, pool, journal, store.note, locks.lock):
            back = [lambda: lines.extend(boots.finish_boots()), lambda: lines.extend(boots.back())]
            attempt(back, failed)
        _put_settings_back(store, campaign, pool, locks, lines, failed)
    said = dict.fromkeys(map(str, failed))
    if failed and not lines and len(said) == 1:
        raise failed[0]
    if failed:
        raise HostError("\n".join([*lines, *said]))
    return lines


def attempt(acts: Iterable[Callable[[], None]], failed: list[NetbenchError]) -> None:
    """Do what can be done: the rest is in `failed`."""
    for act in acts:
        try:
            act()
        except NetbenchError as error:
            failed.append(error)


def _put_settings_back(
    store: Store,
    campaign: Campaign,
    pool: WorkerPool,
    locks: HostLocks,
    lines: list[str],
    failed: list[NetbenchError],
) -> None:
    """Those of all hosts of a kernel together: they have one stack."""
    journal, there = store.journal, dict[str, There]()
    changes: list[Change] = []
    lost: dict[str, NetbenchError] = {}

    def reach(host: str) -> None:
        try:
            pool.helper(host)
        except NetbenchError as error:
            lost[host] = error

    def take(host: str) -> None:
        if host in lost:
            raise lost[host]
        locks.lock(host)
        worker = pool.helper(host)
        hello, is_local = worker.hello, campaign.hosts[host].ssh is None
        boot_id, machine = hello.boot_id, machine_of(hello.machine)
        here, elsewhere = journal.here(host, boot_id, is_local, hello.network, machine)
        there[host] = There(worker, boot_id)
        changes.extend(here)
        if elsewhere:
            raise HostError("\n".join(elsewhere))

    def put_kernel_back(boot_id: str) -> None:
        mates = {name: each for name, each in there.items() if each.boot_id == boot_id}
        of_kernel = [change for change in changes if change.host in mates]
        away = [e for e in journal.left_changes() if e.boot_id == boot_id and e.host not in mates]
        below = [change for change in of_kernel if any(map(change.is_below, away))]
        last = max((change.number for change in below), default=0)
        above = [change for change in of_kernel if change.number > last]
        lines.extend(put_back(mates, above, journal.write, store.identity))
        if below:
            first = f"what {away[0].host} has changed later on the same kernel is put back first"
            raise HostError(f"{below[0].host}: {below[0]} stays: {first}")

    left = [host for host in campaign.hosts if journal.outstanding(host)]
    pool.each(reach, left)
    attempt((partial(take, host) for host in left), failed)
    kernels = dict.fromkeys(each.boot_id for each in there.values())
    attempt((partial(put_kernel_back, boot_id) for boot_id in kernels), failed)
    changed = {each.boot_id for each in journal.left_changes()}
    for each in there.values():
        if each.boot_id not in changed:
            each.worker.operate("undone", (store.identity, "0"), "end")


def restore_plan(campaign: Campaign, journal: Journal) -> list[str]:
    """Each connection, boot and operation that a journal asks for, a line each."""
    if campaign.lab:
        return [f"{each.host}: {_undo(each)}" for each in _of_machine(campaign, journal)]
    lines: list[str] = []
    originals = journal.original_kernels()
    for name, host in campaign.hosts.items():
        acts: list[str] = []
        if name in originals:
            by = f"runs `{shlex.join(host.boot.argv)}`" if host.boot.argv else host.boot.kind
            release = originals[name].release
            acts.append(f"boots back to {release}, where it is not running: {by}")
        for shown in journal.modules_shown(name):
            what = "unmounts" if shown.mounted else "removes the link"
            acts.append(f"{what} {shlex.quote(shown.place)}")
        acts += map(_undo, journal.outstanding(name))
        if acts:
            config = f" by {host.ssh_config}" if host.ssh_config else ""
            way = f"connects to {host.ssh}{config}" if host.ssh else "works on this machine"
            lines += [f"{name}: {act}" for act in (way, *acts)]
    return lines


def _undo(change: Change) -> str:
    look = f"runs `{shlex.join(change.look)}`; " if change.look else ""
    if change.undo:
        return f"{change.setting}: {look}runs `{shlex.join(change.undo)}`"
    if change.op == "neighbours":
        number = change.before.count("\n ")
        return f"{change.setting}: sets {number} values around it as they were"
    what = shlex.join((change.op, *change.target))
    if change.op == "exec":
        return f"{change.setting}: {look}runs `{shlex.join(change.target)}`"
    return f"{change.setting}: {look}sets {what} to {change.before.strip()!r}"
