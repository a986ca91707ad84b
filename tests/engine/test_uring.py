"""io_uring: what a host refuses, chains, waits as strace(1) sees them, and full queues."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from netbench.engine.own_engine import local
from tests.support.engine_pair import MS, WORKER, Pair, Side, open_pair
from tests.support.hooks import dynamic_worker, hook
from tests.support.local import ran
from tests.support.needs import needs

UNPRIVILEGED = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534")
DISABLED = Path("/proc/sys/kernel/io_uring_disabled")
CHUNK, CHUNKS = 64 * 1024, 96

needs_uring = pytest.mark.skipif(
    bool(local().send["uring"].row.why), reason=f"no io_uring: {local().send['uring'].row.why}"
)
needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")


def reasons(argv: tuple[str, ...]) -> dict[str, str]:
    """Why a worker's methods of io_uring cannot run, by side and name."""
    with open_pair(argv, WORKER) as pair:
        catalogue = pair.sender.catalogue
        sides = {"send": catalogue.send, "receive": catalogue.receive}
        return {
            f"{side} {name}": row.row.why
            for side, table in sides.items()
            for name, row in table.items()
            if name.startswith("uring")
        }


@needs_uring
@pytest.mark.root
def test_a_host_that_disables_io_uring_or_locks_no_memory_says_so() -> None:
    """Disabled but for who has CAP_SYS_ADMIN."""
    found = reasons((*UNPRIVILEGED, "prlimit", "--memlock=0:0", *WORKER))
    assert all("ulimit -l" in why for why in found.values()), found
    if not DISABLED.exists():
        pytest.skip("this kernel has no kernel.io_uring_disabled (Linux 6.6)")
    before = DISABLED.read_text()
    DISABLED.write_text("1")
    try:
        found = reasons((*UNPRIVILEGED, *WORKER))
    finally:
        DISABLED.write_text(before)
    assert len(found) == 3
    why = "io_uring is disabled here: kernel.io_uring_disabled is 1"
    assert {why.partition(" (")[0] for why in found.values()} == {why}


def traced(
    folder: Path, send: str, options: dict[str, int | str]
) -> tuple[Side, Counter[str], str]:
    """A sender's proofs, the calls of its flow's thread, and their lines."""
    argv = ("strace", "-ff", "-qq", "-s", "0", "-o", str(folder / "trace"), *WORKER)
    with open_pair(argv, WORKER) as pair:
        serving = pair.sender.hello.pid
        sent, _ = pair.run(send, "read", {"chunk": CHUNK, **options}, bytes=CHUNK * CHUNKS)
    (thread,) = (path for path in folder.iterdir() if path.suffix != f".{serving}")
    text = thread.read_text()
    return sent, Counter(re.findall(r"^(\w+)\(", text, re.MULTILINE)), text


@needs_uring
@needs_strace
@pytest.mark.parametrize("depth", [1, 96])
def test_a_chain_is_submitted_by_one_call(tmp_path: Path, depth: int) -> None:
    sent, _, text = traced(tmp_path, "uring", {"queue_depth": depth})
    submitted = [int(n) for n in re.findall(r"io_uring_enter\(\d+, (\d+), ", text)]
    assert submitted == [depth] * (CHUNKS // depth)
    assert sent.total("uring", "sends") == CHUNKS


# The kernel's own account


NOTIFICATION, COPIED = 1 << 3, 1 << 31  # IORING_CQE_F_NOTIF, IORING_NOTIF_USAGE_ZC_COPIED
REQUEST = re.compile(r"io_uring_submit_req: .*opcode (\w+)")
COMPLETION = re.compile(r"io_uring_complete: .*result (-?\d+), cflags 0x([0-9a-f]+)")
Tracer = Callable[[int], Path]
FIRST_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel


@pytest.fixture
@needs("root")
def trace_of(tmp_path: Path) -> Iterator[Tracer]:
    """Begin a trace of a process and what it starts; the file that holds it."""
    if Path("/proc/self/ns/pid").readlink().name != FIRST_PID_NAMESPACE:
        pytest.skip("the kernel's tracer names processes by another PID namespace's numbers")
    folder = tmp_path / "tracefs"
    folder.mkdir()
    mounted = ran(["mount", "-t", "tracefs", "tracefs", folder])
    if mounted.returncode:
        pytest.skip(f"this kernel has no tracefs: {mounted.stderr.strip()}")
    instances: list[Path] = []

    def begin(pid: int) -> Path:
        instance = folder / "instances" / f"netbench-{pid}"
        instance.mkdir()
        instances.append(instance)
        (instance / "buffer_size_kb").write_text("4096")
        (instance / "options" / "event-fork").write_text("1")
        (instance / "set_event_pid").write_text(str(pid))
        for event in ("io_uring_submit_req", "io_uring_complete"):
            (instance / "events" / "io_uring" / event / "enable").write_text("1")
        return instance / "trace"

    try:
        if not (folder / "events" / "io_uring").exists():
            pytest.skip("this kernel has no tracepoints of io_uring")
        yield begin
    finally:
        for instance in instances:
            instance.rmdir()
        subprocess.run(["umount", folder], check=True)


def read_trace(file: Path) -> tuple[Counter[str], list[tuple[int, int]]]:
    """What tracepoints of io_uring say: requests by operation, and completions (result, flags)."""
    text = file.read_text()
    assert "#P:" in text, "the head of a trace"
    completions = [(int(m[1]), int(m[2], 16)) for m in COMPLETION.finditer(text)]
    return Counter(REQUEST.findall(text)), completions


@needs_uring
@pytest.mark.parametrize(("name", "operation"), [("uring", "SEND"), ("uring_zc", "SEND_ZC")])
def test_a_senders_proofs_are_what_the_kernel_traced(
    pair: Pair, trace_of: Tracer, name: str, operation: str
) -> None:
    trace = trace_of(pair.sender.hello.pid)
    sent, _ = pair.run(name, "read", {"chunk": CHUNK}, bytes=CHUNK * CHUNKS)
    requests, completions = read_trace(trace)
    proofs = {proof: sent.total(name, proof) for owner, proof, _ in sent.vectors if owner == name}
    assert set(requests) == {operation}
    whole = [n for n, flags in completions if n == CHUNK and not flags & NOTIFICATION]
    given = [n & 0xFFFFFFFF for n, flags in completions if flags & NOTIFICATION]
    assert len(whole) <= proofs["sends"] <= requests[operation]
    assert requests[operation] >= CHUNKS
    assert len(given) == proofs.get("notifications", 0)
    assert sum(bool(n & COPIED) for n in given) == proofs.get("copied", 0)
    taken = sum(n for n, flags in completions if n > 0 and not flags & NOTIFICATION)
    assert taken == CHUNK * CHUNKS


@needs_uring
def test_a_receivers_proofs_are_what_the_kernel_traced(pair: Pair, trace_of: Tracer) -> None:
    trace = trace_of(pair.receiver.hello.pid)
    _, received = pair.run("write", "uring", {"chunk": CHUNK}, bytes=CHUNK * CHUNKS)
    requests, completions = read_trace(trace)
    filled = [n for n, _ in completions if n > 0]
    assert requests == {"RECV": received.total("uring", "requests")}
    assert len(filled) == received.total("uring", "completions")
    assert sum(filled) == CHUNK * CHUNKS


# A queue of completions that is full


@pytest.fixture(scope="module")
def cramped(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """A worker whose queues of completions are as short as the kernel takes them."""
    hooked = hook("cq_hook", tmp_path_factory.mktemp("hook"))
    return ("env", f"LD_PRELOAD={hooked}", str(dynamic_worker(tmp_path_factory)))


@needs_uring
@pytest.mark.parametrize(
    ("send", "receive", "pin"),
    [
        ("uring", "read", {"cpu": 0, "streams": 3, "threads": 1}),
        ("uring_zc", "read", {}),
        ("uring_zc", "read", {"cpu": 0, "streams": 3, "threads": 1}),
        ("write", "uring", {}),
        ("write", "uring", {"cpu": 0, "streams": 3, "threads": 1}),
    ],
)
def test_a_full_queue_of_completions_loses_none(
    cramped: tuple[str, ...], send: str, receive: str, pin: dict[str, int]
) -> None:
    """The kernel keeps back what finds no room (IORING_FEAT_NODROP), or ends the request."""
    common = {"bytes": 8_000_003, "warmup": 2 * MS, "verify": 1, **pin}
    with open_pair(cramped, cramped) as pair:
        sides = pair.run(send, receive, {"chunk": 8192}, {"receive_chunk": 1000}, **common)
    sent, received = sides
    assert received.moved("flow", "bytes") == 8_000_003
    assert sent.numbers("", "digest") == received.numbers("", "digest")
    if receive == "uring":
        assert received.total("uring", "overflows") > 0
    if send == "uring_zc":
        assert sent.total(send, "notifications") == sent.total(send, "zerocopy_sends") > 0
