"""Names of many hosts in one word."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbench.base.hostlist import NAMES_MAX, expand, fold, order

NAMES = st.lists(st.from_regex(r"(node|gpu-|r1n)?[0-9]{1,3}(\.dc[0-9])?|head", fullmatch=True))


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("node01", ["node01"]),
        ("node[01-03,70]", ["node01", "node02", "node03", "node70"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("head, n[1-2] ,x", ["head", "n1", "n2", "x"]),
    ],
)
def test_a_word_stands_for_its_names_in_order(word: str, names: list[str]) -> None:
    assert expand(word) == names


EXPECTED = {
    "names such as node[01-64,70], got": ["''", "'a,,b'", "'n[1'", "'n[1-2]]'"],
    "a range such as [01-64,70], got": [
        *("[] in 'n[]'", "[a-c] in 'n[a-c]'", "[fd00::1] in '[fd00::1]'")
    ],
    "a range that goes up, got": ["[7-5] in 'n[7-5]'"],
    "at most 10000 names, got more in": ["[1-10001] in 'n[1-10001]'", "'n[1-101]m[1-100]'"],
}


@pytest.mark.parametrize(
    ("what", "shown"), [(what, each) for what, rows in EXPECTED.items() for each in rows]
)
def test_what_is_no_notation_is_refused(what: str, shown: str) -> None:
    word = shown.rpartition(" in ")[2].strip("'")
    with pytest.raises(ValueError, match=f"^{re.escape(f'expected {what} {shown}')}$"):
        expand(word)


def test_a_notation_never_takes_long() -> None:
    with pytest.raises(ValueError, match=f"at most {NAMES_MAX} names"):
        expand("n[1-99999999999999999999]" * 8)
    many = ",".join(["0-9999"] * 3)  # told of before the names of all three are made
    with pytest.raises(ValueError, match=rf"at most {NAMES_MAX} names, got more in \[{many}\] in"):
        expand(f"n[{many}]")


@given(NAMES.filter(bool))
def test_what_is_folded_expands_to_the_same_names(names: list[str]) -> None:
    assert expand(fold(names)) == names


@given(st.integers(1, 999), st.integers(1, 500), st.integers(1, 5))
def test_hosts_in_sequence_fold_to_one_range(first: int, count: int, width: int) -> None:
    names = [f"node{n:0{width}d}" for n in range(first, first + count + 1)]
    assert fold(names).count("-") == 1
    assert "," not in fold(names)


def test_numbers_in_names_count_in_their_order() -> None:
    names = ["n10", "n9", "head", "n9b2", "n9b10", "n"]
    assert sorted(names, key=order) == ["head", "n", "n9", "n9b2", "n9b10", "n10"]
