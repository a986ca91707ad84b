"""Nobody but whoever runs a campaign in parts runs code by it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.local import call, netbench_argv
from tests.support.running import wait_for

TEXT = """\
netbench: 1
name: fleet
verify: off
transfer: {duration: 100ms, warmup: 2ms, congestion: reno}
repeat: {min: 600, max: 600}
"""


def test_parts_on_this_machine_open_no_port_for_tasks(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(TEXT)
    argv = netbench_argv(["run", "fleet.yaml", "--engine", "dask", "--parts", "1"])
    with subprocess.Popen(argv, cwd=tmp_path, start_new_session=True) as run:
        try:
            records = "results/fleet/*-parts/1/fleet/*/records.jsonl"
            wait_for(lambda: any(tmp_path.glob(records)), lambda: run.poll() is None, 120)
            said = subprocess.run(["ss", "-Hltnp"], check=True, capture_output=True, text=True)
            assert f"pid={run.pid}," not in said.stdout
            assert b"distributed" not in Path(f"/proc/{run.pid}/maps").read_bytes()
        finally:
            os.killpg(run.pid, signal.SIGINT)
            assert run.wait(60) == 130


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:9", "127.0.0.1:9 is not tls://"),
        ("tls://127.0.0.1:9", "no files are named for tls://127.0.0.1:9"),
    ],
)
def test_a_scheduler_without_certificates_is_refused(
    tmp_path: Path, address: str, said: str
) -> None:
    pytest.importorskip("distributed")
    (tmp_path / "fleet.yaml").write_text(TEXT)
    done = call("run", tmp_path / "fleet.yaml", "--engine", "dask", "--scheduler", address)
    assert done.returncode == 2
    told = " ".join(done.stderr.split())
    for part in (said, "DASK_DISTRIBUTED__COMM__TLS__CA_FILE", "--insecure"):
        assert part in told
