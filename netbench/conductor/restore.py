"""Putting back what a dead campaign left changed, from its journal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from netbench.conductor.boots import Boots
from netbench.conductor.host_locks import HostLocks, result_name
from netbench.conductor.restore_plan import restore_plan
from netbench.conductor.worker_pool import ChannelFactory, WorkerPool, open_channel
from netbench.errors import HostBusy, HostError, Lost, NetbenchError, StoreError
from netbench.journal import Change, outstanding
from netbench.model import Campaign
from netbench.settings.put_back import put_back
from netbench.store import Store


def restore(
    store: Store,
    campaign: Campaign,
    channels: ChannelFactory = open_channel,
    *,
    trust: bool = False,
    show: Callable[[str], None] = lambda line: None,
) -> list[str]:
    """What was done on each host; the journal knows it afterwards. Errors: StoreError, HostError,
    EngineError.

    Lines of the journal that are not signed count only with `trust`, after `show` got what they are
    and what they ask for. Without it the error says so, after what is signed has been put back.
    Nothing is, where the campaign is not as it was begun, or lines are missing.
    """
    store.lock()
    try:
        changed = store.why_not_as_begun()
        doubts = [*changed, *map(str, store.doubts)]
        known = not changed and not any(doubt.hides_others for doubt in store.doubts)
        asked = restore_plan(campaign, store.journal.all_entries())
        if doubts and trust:
            show("\n".join([*doubts, *asked]))
            store.journal.trust()
            return _put_back(store, campaign, channels)
        signed = restore_plan(campaign, store.journal.entries()) if known else []
        lines = _put_back(store, campaign, channels) if known else []
        unsigned = [line for line in asked if line not in signed]
        if unsigned:
            remedy = f"look at this; `restore --trust {store.path}` then does it"
            raise StoreError("\n".join([*lines, *doubts, *unsigned, remedy]))
        for doubt in doubts:
            show(doubt)
        return lines
    finally:
        store.close()


def _put_back(store: Store, campaign: Campaign, channels: ChannelFactory) -> list[str]:
    """Boots first, then settings, by the entries of the journal that count."""
    entries = store.journal.entries()
    left = {host: changes for host in campaign.hosts if (changes := outstanding(entries, host))}
    lines: list[str] = []
    with WorkerPool(campaign, channels) as pool:
        boots = Boots(campaign, pool, store.journal, store.note)
        locks = HostLocks(campaign, pool, result_name(campaign, store))
        failed: list[NetbenchError] = []

        def boot_back() -> None:
            for host in boots.touched():
                _refuse_others(locks, host)
            lines.extend(boots.back())

        def put_settings_back(host: str, changes: Sequence[Change]) -> None:
            locks.lock(host)
            worker = pool.helper(host)
            for line in put_back(worker, worker.hello.boot_id, changes, store.journal.write):
                lines.append(f"{host}: {line}")

        receivers_first = sorted(left.items(), key=lambda one: campaign.roles[one[0]])
        acts: list[Callable[[], None]] = [lambda: lines.extend(boots.finish_boots()), boot_back]
        acts += [partial(put_settings_back, *one) for one in receivers_first]
        for act in acts:
            try:
                act()
            except HostBusy:
                raise
            except NetbenchError as error:  # the others can still be put back
                failed.append(error)
    if failed and not lines and len(failed) == 1:
        raise failed[0]
    if failed:
        raise HostError("\n".join([*lines, *map(str, failed)]))
    return lines


def _refuse_others(locks: HostLocks, host: str) -> None:
    """A host that another campaign uses is not booted; one that does not answer is used by none.
    Errors: HostBusy.
    """
    try:
        locks.lock(host)
    except HostBusy:
        raise
    except Lost:
        return
