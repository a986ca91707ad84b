"""A helper's report of samples: as stacks with names, and refused where a host made it up."""

from __future__ import annotations

import pytest

from netbench.run.profiler import fold

REPORT = """\
event cpu-clock
frequency 997
f tcp_sendmsg
f of_module [toy]
f tcp_sendmsg
p 7 netbench
p 8 evil;name
p 9 receiver
s 3 30 0 0
s 1 10 1 1
s 2 20 0 2
s 4 40 1
s 5 50 2 0
"""


def test_stacks_are_named_and_those_that_read_alike_are_one() -> None:
    assert fold(REPORT, {7: "sender"})[1] == {
        ("sender", "tcp_sendmsg_[k]"): 5,
        ("evil?name", "of_module [toy]_[k]"): 1,
        ("evil?name", "[user]"): 4,
        ("receiver?", "tcp_sendmsg_[k]"): 5,
    }


def test_cycles_are_counted_where_the_event_is_cycles() -> None:
    _, folded = fold(REPORT.replace("cpu-clock", "cycles"), {})
    assert folded["netbench", "tcp_sendmsg_[k]"] == 50


HOSTILE = {
    "a frame that there is not": "p 1 a\ns 1 1 0 0",
    "a process that there is not": "f a\ns 1 1 0 0",
    "a negative count": "f a\np 1 a\ns -1 1 0 0",
    "a count of 20 digits": f"f a\np 1 a\ns {10**20} 1 0 0",
    "a stack of nothing": "s 1",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_report_is_refused(what: str) -> None:
    with pytest.raises((LookupError, ValueError)):
        fold(HOSTILE[what], {})


def test_names_of_hosts_are_cut_and_stay_in_their_line() -> None:
    (stack,) = fold(f"f {'x' * 5000}\nf a;b\tc\np 1 \x1b[2J\ns 1 1 0 0 1", {})[1]
    assert stack == ("?[2J", f"{'x' * 200}_[k]", "a?b?c_[k]")
