"""Rounds: pairs that run side by side. Pure, and the same for the same pairs in the same order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from netbench.model import NOTHING, Campaign, Link, Pair

OVERLAPS = ("round", "none", "kernel")
"""How pairs overlap in time: by rounds; not at all; by rounds in which pairs may share a kernel."""

Rounds = tuple[tuple[Pair, ...], ...]


def rounds(
    pairs: Sequence[Pair], links: Mapping[str, Link] = NOTHING, kernel: Mapping[str, str] = NOTHING
) -> Rounds:
    """Every pair in one round. In a round no host and no kernel is used twice, and no link by more
    pairs than its capacity. `kernel`: host -> what tells its kernel from others; a host that is
    left out has one of its own.

    A greedy colouring of edges: each pair, in order, is in the first round that has room for it.
    Pairs of one order are in as many rounds as a host or a link needs at least, twice as many at
    most.
    """
    by_round: list[list[Pair]] = []
    taken: dict[tuple[str, str], int] = {}  # by host, kernel or link: a bit for each full round
    crossings: dict[tuple[str, int], int] = {}  # by link and round
    for pair in pairs:
        ends = set(_ends(pair, kernel))
        crossed = [name for name, link in links.items() if link.used_by(pair)]
        full = 0
        for resource in (*ends, *(("link", name) for name in crossed)):
            full |= taken.get(resource, 0)
        number = (~full & (full + 1)).bit_length() - 1  # the lowest bit that is not set
        if number == len(by_round):
            by_round.append([])
        by_round[number].append(pair)
        for resource in ends:
            taken[resource] = taken.get(resource, 0) | 1 << number
        for name in crossed:
            uses = crossings[name, number] = crossings.get((name, number), 0) + 1
            if uses == links[name].capacity:
                taken["link", name] = taken.get(("link", name), 0) | 1 << number
    return tuple(map(tuple, by_round))


def rounds_of(
    overlap: str, pairs: Sequence[Pair], links: Mapping[str, Link], kernel: Mapping[str, str]
) -> Rounds:
    """The rounds of pairs that overlap in one of the ways of OVERLAPS."""
    if overlap == "none":
        return tuple((pair,) for pair in pairs)
    return rounds(pairs, links, kernel if overlap == "round" else NOTHING)


def _ends(pair: Pair, kernel: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for host in (pair.sender, pair.receiver):
        yield "host", host
        if host in kernel:
            yield "kernel", kernel[host]


def campaign_rounds(campaign: Campaign, boot_ids: Mapping[str, str]) -> Rounds:
    """The rounds of a campaign. `boot_ids`: of hosts, where they are known; until then hosts share
    a kernel where the campaign says so.
    """
    kernels = _known_kernels(campaign) | dict(boot_ids)
    return rounds_of(campaign.overlap, campaign.pairs, campaign.links, kernels)


def _known_kernels(campaign: Campaign) -> dict[str, str]:
    """Hosts that share a kernel, as the campaign says: this machine, and its network namespaces."""
    here = {name for name, host in campaign.hosts.items() if host.local}
    if campaign.lab is not None:
        here = set(campaign.hosts) if campaign.lab.kind == "netns" else set()
    return dict.fromkeys(here, "")
