"""Nobody but whoever runs a campaign on Dask runs code by it: no other account of the machine by
its sockets, and no file of the working directory.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.local import call, netbench_argv
from tests.support.running import wait_for

distributed = pytest.importorskip("distributed")
NOBODY = 65534
TEXT = """\
netbench: 1
name: fleet
verify: off
transfer: {duration: 100ms, warmup: 2ms, congestion: reno}
repeat: {min: 600, max: 600}
"""
DECOY = "open('was-here', 'a').write(__name__)\nraise SystemExit\n"


def below(pid: int) -> list[int]:
    """A process and its descendants that are Dask's: no controller of a part."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return [
        one
        for one in found
        if one == pid or b"multiprocessing" in Path(f"/proc/{one}/cmdline").read_bytes()
    ]


def listening(pids: list[int]) -> dict[str, int]:
    """Addresses on which these processes listen, as ss(8) says, with the process."""
    said = subprocess.run(["ss", "-Hltnp"], check=True, capture_output=True, text=True).stdout
    return {
        line.split()[3]: pid for line in said.splitlines() for pid in pids if f"pid={pid}," in line
    }


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def hears(port: int, tls: bool) -> bytes:
    """What a listener of Dask's says to somebody without a certificate: it speaks first."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), 5) as plain:
        try:
            with context.wrap_socket(plain) if tls else plain as sock:
                sock.settimeout(0.5)
                return sock.recv(100)
        except (TimeoutError, ssl.SSLError, ConnectionResetError):
            return b""


def test_no_other_account_and_no_file_of_the_working_directory_gets_in(tmp_path: Path) -> None:
    for name in ("pickle", "struct", "distributed"):
        (tmp_path / f"{name}.py").write_text(DECOY)
    (tmp_path / "fleet.yaml").write_text(TEXT)
    taken = tmp_path / "tmp/dask-scratch-space"  # as by another account, whose folder it stays
    taken.mkdir(parents=True)
    taken.chmod(0o777)
    argv = netbench_argv(["run", "fleet.yaml", "--engine", "dask", "--parts", "1"])
    environ = {**os.environ, "TMPDIR": str(taken.parent)}
    with subprocess.Popen(argv, cwd=tmp_path, env=environ, start_new_session=True) as run:
        try:
            records = "results/fleet/*-parts/1/fleet/*/records.jsonl"
            wait_for(lambda: any(tmp_path.glob(records)), lambda: run.poll() is None, 120)
            pids = below(run.pid)
            assert len(pids) > 2, "the resource tracker and a worker"
            for pid in pids[1:]:
                assert b"PYTHONSAFEPATH=1" in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            places = listening(pids)
            assert len(places) == 3, "the scheduler, the nanny and the worker"
            with as_nobody():
                for place in places:
                    port = int(place.rpartition(":")[2])
                    assert [hears(port, tls) for tls in (False, True)] == [b"", b""]
                    with pytest.raises(OSError, match=r"Timed out|closed"):
                        distributed.Client(f"tcp://{place}", timeout="1s")
        finally:
            run.send_signal(signal.SIGINT)
            run.wait(60)
    assert not any(taken.iterdir())
    assert not (tmp_path / "was-here").exists()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tcp://127.0.0.1:9", "tcp://127.0.0.1:9 is not tls://"),
        ("127.0.0.1:9", "127.0.0.1:9 is not tls://"),
        ("tls://127.0.0.1:9", "no files are named for tls://127.0.0.1:9"),
    ],
)
def test_a_scheduler_without_certificates_is_refused(
    tmp_path: Path, address: str, said: str
) -> None:
    (tmp_path / "fleet.yaml").write_text(TEXT)
    done = call("run", tmp_path / "fleet.yaml", "--engine", "dask", "--scheduler", address)
    assert done.returncode == 2
    told = " ".join(done.stderr.split())
    assert said in told
    assert "DASK_DISTRIBUTED__COMM__TLS__CA_FILE" in told
    assert "--insecure" in told
