"""The limit of open files, as far as a fleet needs it. Each case is a process of its own."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

LIMITED = """\
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
{act}
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""
ALLOW = """\
from netbench.run.worker_pool import allow_files
allow_files({workers})
"""
CONNECT = """\
from netbench import campaign
from netbench.run.worker_pool import WorkerPool
pairs = "{sender: a, receiver: b}, {sender: c, receiver: d}"
text = "netbench: 1\\nname: p\\nhosts: {a: local, b: local, c: local, d: local}\\n"
WorkerPool(campaign.parse(text + f"pairs: [{pairs}]\\n", "p.yaml")).close()
"""


def limits(soft: int, hard: int, act: str) -> list[int]:
    """Both limits of a process that began with these, afterwards."""
    argv = [sys.executable, "-c", LIMITED.format(soft=soft, hard=hard, act=act)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


@pytest.mark.parametrize(
    ("workers", "soft", "hard", "left"),
    [
        (2, 1024, 8192, 1024),  # enough: stays
        (500, 1024, 8192, 512 + 8 * 500),
        (5000, 1024, 8192, 8192),  # as far as the hard limit lets it
    ],
)
def test_the_limit_is_raised_as_far_as_workers_need_it(
    workers: int, soft: int, hard: int, left: int
) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    hard = hard if most == resource.RLIM_INFINITY else min(hard, most)
    assert limits(soft, hard, ALLOW.format(workers=workers)) == [min(left, hard), hard]


def test_a_campaign_raises_it_before_it_connects_to_its_hosts() -> None:
    soft, _ = limits(256, 1024, CONNECT)
    assert soft >= 512 + 8 * 4
