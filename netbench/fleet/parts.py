"""Parts of a campaign, for several controllers that do not wait for each other.

The order of runs is a pure function of the seed, and cells close for each pair alone, so a part is
a set of pairs. No host and no named link is in two parts: a host is locked by one campaign, and a
link's capacity is for all pairs that cross it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from netbench.base.errors import RequestError
from netbench.model import Campaign, Pair, Part
from netbench.result.files import PlanFile

SHOWN = 4  # groups that a message names


def parse_part(word: str) -> tuple[int, int]:
    """`K/N` as (K, N). Errors: ValueError."""
    number, slash, of = word.partition("/")
    if not slash or not (number + of).isascii() or not (number.isdecimal() and of.isdecimal()):
        raise ValueError(f"expected K/N such as 1/4, got {word!r}")
    if not 1 <= int(number) <= int(of):
        raise ValueError(f"expected a part from 1 to {int(of)}, got {word!r}")
    return int(number), int(of)


def groups(pairs: Iterable[Pair], uses: Callable[[Pair], Collection[str]]) -> list[list[Pair]]:
    """Pairs that cannot be in different parts, since they use something in common, even over a
    third pair: in the order of each group's first pair.
    """
    above: dict[str, str] = {}  # what is used, in the same group as what it leads to

    def top(word: str) -> str:
        while above.setdefault(word, word) != word:
            above[word] = word = above[above[word]]
        return word

    used = [(pair, [*uses(pair)]) for pair in pairs]
    for _, words in used:
        for word in words:
            above[top(word)] = top(words[0])
    by_top: dict[str, list[Pair]] = {}
    for pair, words in used:
        by_top.setdefault(top(words[0]), []).append(pair)
    return list(by_top.values())


def split(campaign: Campaign, parts: int) -> list[tuple[Pair, ...]]:
    """The pairs of each of so many parts: the groups of most pairs first, each to the part that
    has least. Errors: RequestError where there are fewer groups, and for less than one part.
    """
    if parts < 1:
        raise RequestError(f"expected 1 part or more, got {parts}")
    together = groups(campaign.pairs, lambda pair: uses(campaign, pair))
    if len(together) < parts:
        raise RequestError(_too_few(campaign, together, parts))
    shares: list[list[Pair]] = [[] for _ in range(parts)]
    for group in sorted(together, key=len, reverse=True):
        min(shares, key=len).extend(group)
    places = {pair: place for place, pair in enumerate(campaign.pairs)}
    return [tuple(sorted(share, key=places.__getitem__)) for share in shares]


def most_parts(campaign: Campaign) -> int:
    """How many parts a campaign can be split into."""
    return len(groups(campaign.pairs, lambda pair: uses(campaign, pair)))


def uses(campaign: Campaign, pair: Pair) -> set[str]:
    """What of a campaign only one part may use: a pair's hosts, and the named links it crosses."""
    links = (f"link {name}" for name, link in campaign.links.items() if link.used_by(pair))
    return {pair.sender, pair.receiver, *links}


def part_of(campaign: Campaign, number: int, of: int) -> Campaign:
    """One part of a campaign. Errors: RequestError where it has not so many, or where one pair at a
    time is to run.
    """
    if not 1 <= number <= of:
        raise RequestError(f"{campaign.name}: expected a part from 1 to {of}, got {number}")
    refuse_alone(campaign, of)
    pairs = split(campaign, of)[number - 1]
    used = {host for pair in pairs for host in (pair.sender, pair.receiver)}
    hosts = {name: host for name, host in campaign.hosts.items() if name in used}
    part = Part(number, of, campaign.all_pairs)
    return campaign._replace(pairs=pairs, hosts=hosts, part=part)


def refuse_alone(campaign: Campaign, parts: int) -> None:
    """Refuse parts where cells want one pair at a time, as no part knows when another runs, or a
    time that each would find for itself. Errors: RequestError.
    """
    if campaign.auto:
        raise RequestError(
            f"{campaign.name}: `duration: auto` would be another time in each part; write a time"
        )
    if parts > 1 and campaign.overlap == "none":
        raise RequestError(
            f"{campaign.name}: `overlap: none` runs one pair at a time, and parts do not wait for"
            " each other; run it from one controller, or without that level"
        )


def as_planned(campaign: Campaign, plan: PlanFile) -> Campaign:
    """A stored campaign, or that part of it which a result is of, whatever pairs the plan names.
    Errors: RequestError.
    """
    return part_of(campaign, plan.part.number, plan.part.of) if plan.part else campaign


def _too_few(campaign: Campaign, together: list[list[Pair]], parts: int) -> str:
    names = [", ".join(pair.name for pair in group) for group in together[:SHOWN]]
    more = f"; and {len(together) - SHOWN} more" if len(together) > SHOWN else ""
    if len(together) == 1:
        return (
            f"{campaign.name} has no {parts} parts: all its pairs hang together by the hosts and"
            f" links that they share ({names[0]}), and a host is in one part alone; run it from one"
            " controller"
        )
    return (
        f"{campaign.name} has no {parts} parts, but {len(together)} at most: pairs that share a"
        f" host or a link are in one part ({'; '.join(names)}{more}); say K/{len(together)} or less"
    )
