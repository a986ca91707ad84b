"""Clocks of booted hosts by two looks. Looks are made up: no clock here runs at another rate."""

from __future__ import annotations

import pytest

from netbench.base.errors import HostError
from netbench.kernels.boot.acceptance import Look, look, rates, why_wrong

MS = 10**6


def looked(there: int, at: int, took: int = 0) -> Look:
    """A clock that said so, asked at a time, with the answer after `took`; all in ms."""
    return Look(at * MS, there * MS, (at + took) * MS)


@pytest.mark.parametrize(
    ("passed", "took", "wrong"),
    [
        (1000, 0, False),
        (1018, 0, False),  # what a step of 10 ms and 1% allow
        (1025, 0, True),
        (975, 0, True),
        (1025, 20, False),  # the answer may have been late by as much
        (2000, 200, True),
        (500, 200, True),
        (0, 0, True),
    ],
)
def test_a_clock_is_wrong_where_no_delay_explains_it(passed: int, took: int, wrong: bool) -> None:
    first, second = looked(70_000, 5_000, took), looked(70_000 + passed, 6_000, took)
    why = why_wrong({"a": looked(0, 0), "b": first}, {"a": looked(1000, 1000), "b": second})
    assert why.startswith("b: its clock runs ") == wrong
    assert bool(why) == wrong


def test_what_is_read_is_the_time_since_boot_and_the_true_rate_lies_between_the_bounds() -> None:
    found = look(lambda: "351735.47 234388.90\n")
    assert found.there == 351_735_470_000_000
    assert found.before <= found.after
    low, high = rates(looked(0, 0, 30), looked(1500, 1000, 30))
    assert low < 1.5 < high


@pytest.mark.parametrize("text", ["x", "nan 1", "1e400 1"])
def test_what_is_no_uptime_is_the_hosts_error(text: str) -> None:
    with pytest.raises(HostError, match="/proc/uptime is no time there"):
        look(lambda: text)
