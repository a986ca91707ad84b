"""Which pairs may run at the same time: those that share neither a host nor a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from netbench.model import Pair


def lanes(pairs: Iterable[Pair], kernel_of: Callable[[str], str]) -> list[tuple[Pair, ...]]:
    """Pairs in groups: within a group they take turns, the groups run side by side. `kernel_of`
    gives a host's boot id.

    Hosts on one kernel share its CPUs and counters. What two pairs have in common, even over a
    third, puts them into one lane.
    """
    order = list(pairs)
    found: list[tuple[set[str], list[Pair]]] = []
    for pair in order:
        mine = {kernel_of(pair.sender), kernel_of(pair.receiver)}
        members = [pair]
        apart = []
        for kernels, others in found:
            if kernels & mine:
                mine |= kernels
                members += others
            else:
                apart.append((kernels, others))
        found = [*apart, (mine, members)]
    return [tuple(sorted(members, key=order.index)) for _, members in found]
