"""The worker of aarch64, run by qemu-user: whole transfers, alone and against this machine's own."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from netbench.base.errors import HostError
from netbench.engine import build_native
from netbench.engine.own_engine import local
from netbench.hosts.local import LocalChannel
from tests.support.engine_pair import WORKER, data_methods, open_pair
from tests.support.paths import ROOT

COMPILER, QEMU = "aarch64-linux-gnu-gcc", "qemu-aarch64-static"
BYTES = 3 * 2**20 + 1
NOT_PASSED = {
    "zerocopy"
}  # qemu-user 7.2 knows no SO_ZEROCOPY, and no io_uring: that says so itself

pytestmark = pytest.mark.skipif(
    not (shutil.which(COMPILER) and shutil.which(QEMU)) or platform.machine() == "aarch64",
    reason=f"{COMPILER} or {QEMU} is not installed, or this is aarch64",
)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    target = tmp_path_factory.mktemp("aarch64") / "worker-aarch64"
    subprocess.run(build_native.worker_command([COMPILER], target), cwd=ROOT, check=True)
    return QEMU, str(target)


def moved(sender: Sequence[str], receiver: Sequence[str], send: str, receive: str) -> None:
    """Bytes of a file arrive as they were sent, and both count them."""
    source = {"source": "file", "source_path": str(ROOT / "native/include/netbench.h")}
    with open_pair(sender, receiver) as pair:
        sides = pair.run(send, receive, source, bytes=BYTES, verify=1)
    assert [side.moved("flow", "bytes") for side in sides] == [BYTES, BYTES]
    sent, received = (side.numbers("", "digest") for side in sides)
    assert sent
    assert sent == received


def test_each_method_that_qemu_passes_moves_data(foreign: tuple[str, str]) -> None:
    with open_pair(foreign, foreign) as pair:
        assert pair.sender.hello.architecture == "aarch64"
        sends = set(data_methods(pair.sender.catalogue, "send")) - NOT_PASSED
        receives = set(data_methods(pair.receiver.catalogue, "receive")) - NOT_PASSED
        why = pair.sender.catalogue.send["uring"].row.why
    assert {"readwrite", "sendfile", "mmap", "splice"} <= sends
    assert "Function not implemented" in why
    for send in sorted(each for each in sends if local().send[each].has("from_file")):
        moved(foreign, foreign, send, "read")
    for receive in sorted(receives - {"trunc"}):
        moved(foreign, foreign, "sendfile", receive)


def test_machine_types_understand_each_other(foreign: tuple[str, str]) -> None:
    moved(foreign, WORKER, "sendfile", "read")
    moved(WORKER, foreign, "readwrite", "splice")


def test_a_worker_that_the_kernel_does_not_run_says_so(foreign: tuple[str, str]) -> None:
    """An ELF file of no machine type that is known, since binfmt_misc may run that of aarch64."""
    data = bytearray(Path(foreign[1]).read_bytes())
    data[18:20] = b"\xee\xee"
    other = Path(foreign[1]).with_name("worker-none")
    other.write_bytes(data)
    os.chmod(other, 0o755)
    with pytest.raises(HostError, match=r"cannot start .*worker-none: Exec format error"):
        LocalChannel("here", (str(other),)).start_mover()
