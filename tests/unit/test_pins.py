"""Which CPU each side runs on."""

from __future__ import annotations

import pytest

from netbench.base.errors import RequestError
from netbench.model import Pin
from netbench.run.ends import Cpus, Numbers, choose
from netbench.settings.cpus import cpu_numbers

FOUR = Cpus((0, 1, 2, 3), {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)})
ONE = Cpus((5,), {5: (5,)})


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8", {0, 1, 2, 3, 8}), ("0", {0}), ("2,4-5", {2, 4, 5})]
)
def test_cpu_lists_of_the_kernel(text: str, cpus: set[int]) -> None:
    assert cpu_numbers(text) == cpus


@pytest.mark.parametrize(
    ("pin", "one_machine", "chosen"),
    [
        (Pin(), True, ((), ())),
        (Pin("same"), True, ((0,), (0,))),
        (Pin("apart"), True, ((0,), (2,))),  # another core, not the sibling
        (Pin("same"), False, ((0,), (0,))),
        (Pin("cpus", (3,), ()), True, ((3,), ())),
        (Pin("cpus", (), (1,)), True, ((), (1,))),
        (Pin("cpus", (3, 0), (0, 1, 2)), True, ((3, 0), (0, 1, 2))),  # in the order written
    ],
)
def test_choice(pin: Pin, one_machine: bool, chosen: tuple[Numbers, Numbers]) -> None:
    assert choose(pin, FOUR, FOUR, one_machine) == chosen
    two = Cpus((0, 1), {0: (0, 1), 1: (0, 1)})  # there is no other core
    assert choose(Pin("apart"), two, two, True) == ((0,), (1,))


def test_what_is_not_there_is_refused_with_what_is() -> None:
    with pytest.raises(RequestError, match="apart needs two CPUs"):
        choose(Pin("apart"), ONE, ONE, True)
    with pytest.raises(
        RequestError, match="receiver: the worker may not use CPU 9, only 0, 1, 2, 3"
    ):
        choose(Pin("cpus", (0,), (1, 9)), FOUR, FOUR, True)
    with pytest.raises(RequestError, match="sender: the worker may not use CPUs 4, 7, only 0, 1"):
        choose(Pin("cpus", (0, 4, 7), ()), FOUR, FOUR, True)
