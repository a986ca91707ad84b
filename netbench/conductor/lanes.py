"""Which pairs may run at the same time: those that share neither a host nor a kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from netbench.model import Pair


def lanes(pairs: Iterable[Pair], kernel_of: Callable[[str], str]) -> list[tuple[Pair, ...]]:
    """Pairs in groups: within a group they run one after the other, the groups run in parallel.
    `kernel_of` gives a host's boot id.

    Hosts on one kernel share its CPUs and counters. What two pairs have in common, even over a
    third, puts them into one lane.
    """
    order = list(pairs)
    groups: list[tuple[set[str], list[Pair]]] = []
    for pair in order:
        mine = {kernel_of(pair.sender), kernel_of(pair.receiver)}
        members = [pair]
        apart = []
        for kernels, others in groups:
            if kernels & mine:
                mine |= kernels
                members += others
            else:
                apart.append((kernels, others))
        groups = [*apart, (mine, members)]
    return [tuple(sorted(members, key=order.index)) for _, members in groups]


def side_by_side(
    groups: Sequence[tuple[Pair, ...]],
    act: Callable[[Sequence[Pair], Callable[[], bool]], bool],
    interrupt: Callable[[], None],
) -> bool:
    """Do something for every group of pairs at the same time; whether all of it completed.

    `act` gets the pairs and is to return soon once its second argument is true: another group has
    failed, or the user interrupts. `interrupt` makes those return that wait for a worker. Errors:
    the first one of `act`.
    """
    if len(groups) == 1:
        return act(groups[0], lambda: False)
    stop = threading.Event()
    with ThreadPoolExecutor(len(groups), thread_name_prefix="lane") as threads:
        running = [threads.submit(act, pairs, stop.is_set) for pairs in groups]
        try:
            wait(running, return_when=FIRST_EXCEPTION)
        except KeyboardInterrupt:
            interrupt()
            raise
        finally:
            stop.set()
    return all(lane.result() for lane in running)
