"""The limit of open files, as a fleet needs it. Each case is a process of its own."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

PROGRAM = """\
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from netbench import campaign
from netbench.run.worker_pool import WorkerPool
WorkerPool(campaign.parse("netbench: 1\\nname: p\\nhosts: {{a: local}}\\n", "p.yaml")).close()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard", "left"), [(256, 1024, 1024), (1024, 1 << 17, 1 << 16)])
def test_the_limit_is_raised_as_far_as_the_hard_one_lets_it(
    soft: int, hard: int, left: int
) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    hard = hard if most == resource.RLIM_INFINITY else min(hard, most)
    argv = [sys.executable, "-c", PROGRAM.format(soft=soft, hard=hard)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert list(map(int, said)) == [min(left, hard), hard]
