"""Which pairs run side by side."""

from __future__ import annotations

from netbench.conductor.lanes import lanes
from netbench.model import Pair


def names(pairs: str, kernels: dict[str, str]) -> list[list[str]]:
    found = lanes(
        [Pair(*pair.split(">")) for pair in pairs.split()], lambda host: kernels.get(host, host)
    )
    return [[pair.name for pair in lane] for lane in found]


def test_independent_pairs_are_apart() -> None:
    assert names("a>b c>d", {}) == [["a>b"], ["c>d"]]


def test_a_shared_host_or_kernel_joins_them() -> None:
    assert names("a>b b>c d>e", {}) == [["a>b", "b>c"], ["d>e"]]
    assert names("a>b c>d", {"a": "one", "d": "one"}) == [["a>b", "c>d"]]


def test_a_third_pair_joins_two_lanes() -> None:
    assert names("a>b c>d e>f b>c", {}) == [["e>f"], ["a>b", "c>d", "b>c"]]
