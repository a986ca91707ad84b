"""What soak takes for granted, from what a host's files say."""

from __future__ import annotations

import pytest

from netbench.run.single_meter import own_worker
from netbench.run.soak_meter import doubts, of_texts

QUIET = {
    "cgroup": "0::/",
    "controllers": "cpu memory",
    "smt": "0",
    "isolated": "",
    "nohz_full": "",
    "stat": "cpu  100 0 100 9800 0 0 0 0 0 0",
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"cgroup": "0::/user.slice/user-0.slice/session-3.scope"}, "cgroup /user.slice/"),
        ({"cgroup": "0::/user.slice", "controllers": "memory pids"}, ""),
        ({"cgroup": "2:memory:/a\n1:cpu,cpuacct:/b\n0::/c", "controllers": ""}, "cgroup /b,"),
        ({"cgroup": "2:memory:/a\n1:cpu,cpuacct:/\n0::/", "controllers": ""}, ""),
        ({"smt": "1"}, "SMT is on"),
        ({"isolated": "2-3"}, "the CPUs 2-3 are isolated"),
        ({"nohz_full": "4"}, "the CPUs 4 are isolated"),
        ({"nohz_full": "(null)"}, ""),
        ({"stat": "cpu  100 0 100 9600 0 0 0 200 0 0"}, "taken 2.0% of the CPUs' time"),
        ({"cgroup": "", "controllers": "", "smt": "", "stat": ""}, ""),
    ],
)
def test_each_doubt_is_said(changes: dict[str, str], said: str) -> None:
    found = [f"{what}; {remedy}" for what, remedy in of_texts(QUIET | changes)]
    assert len(found) == bool(said)
    assert said in "".join(found)


def test_this_machine_can_be_asked() -> None:
    with own_worker() as worker:
        assert all(what and remedy for what, remedy in doubts(worker))
