"""Rounds of pairs: nothing is used twice in one, and each pair is in the first that has room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, permutations

from hypothesis import given
from hypothesis import strategies as st

from netbench.model import Link, Pair
from netbench.plan.rounds import rounds, rounds_of

HOSTS = [f"h{n}" for n in range(8)]

hosts = st.sampled_from(HOSTS)
pairs_of_hosts = st.lists(st.builds(Pair, hosts, hosts), max_size=20, unique=True)
kernels_of_hosts = st.dictionaries(hosts, st.sampled_from("xyz"), max_size=8)
links_of_hosts = st.dictionaries(
    st.sampled_from(["up", "down"]),
    st.builds(
        Link,
        st.lists(hosts, max_size=6, unique=True).map(tuple),
        st.integers(min_value=1, max_value=3),
    ),
)


def named(text: str) -> list[Pair]:
    return [Pair(*pair.split(">")) for pair in text.split()]


def fits(together: Sequence[Pair], links: Mapping[str, Link], kernel: Mapping[str, str]) -> bool:
    """Whether pairs may be in one round, in the contract's words."""
    ends = [{pair.sender, pair.receiver} for pair in together]
    used = Counter(chain.from_iterable(ends))
    used += Counter(chain.from_iterable({kernel[h] for h in both if h in kernel} for both in ends))
    return max(used.values(), default=1) == 1 and all(
        sum(len(both & {*link.hosts}) == 1 < len(both) for both in ends) <= link.capacity
        for link in links.values()
    )


@given(pairs=pairs_of_hosts, links=links_of_hosts, kernel=kernels_of_hosts)
def test_rounds_hold_each_pair_once_where_there_is_room_first(
    pairs: list[Pair], links: dict[str, Link], kernel: dict[str, str]
) -> None:
    found = rounds(pairs, links, kernel)
    assert sorted(chain.from_iterable(found), key=pairs.index) == pairs
    for number, together in enumerate(found):
        assert together
        assert list(together) == sorted(together, key=pairs.index), "in the order of the campaign"
        assert fits(together, links, kernel)
        for pair in together:
            before = pairs[: pairs.index(pair)]
            for earlier in found[:number]:
                assert not fits([*(p for p in earlier if p in before), pair], links, kernel)


def test_all_pairs_of_many_hosts_are_in_at_most_twice_the_least_number_of_rounds() -> None:
    pairs = [Pair(*each) for each in permutations([f"h{n}" for n in range(60)], 2)]
    assert 2 * 59 <= len(rounds(pairs)) < 2 * 2 * 59


def test_overlap_chooses_the_rounds() -> None:
    pairs, kernel = named("a>b c>d"), dict.fromkeys("abcd", "one")
    together, apart = (tuple(pairs),), ((pairs[0],), (pairs[1],))
    assert rounds_of("none", pairs, {}, {}) == apart
    assert rounds_of("round", pairs, {}, {}) == together
    assert rounds_of("round", pairs, {}, kernel) == apart
    assert rounds_of("kernel", pairs, {}, kernel) == together
    assert rounds_of("kernel", pairs, {"up": Link(("a", "c"))}, kernel) == apart
