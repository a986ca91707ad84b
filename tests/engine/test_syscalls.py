"""Each method makes the system calls that it is named for: strace(1) counts beside its proofs."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from netbench.engine.catalogue import Named
from netbench.engine.own_engine import local
from tests.support.engine_pair import MS, NONE, WORKER, Options, Side, covering, open_pair

CHUNK, CHUNKS, FIXED = 64 * 1024, 512, 40
# of the memory source: read(2) goes back to its start after so many bytes
MEMORY_FILE = 1024 * 1024
LINE = re.compile(r"(\w+)\((\d*)")


# Calls that wrapping the source costs in the whole run; those that are made for several chunks at
# once, or for none; and those that wait, any number of times.
WRAPS = {"readwrite": (("lseek", CHUNKS * CHUNK // MEMORY_FILE),)}
SELDOM = {"zerocopy": ("recvmsg", "poll"), "uring": ("io_uring_enter",)}
WAITS = {"vmsplice": ("ioctl", "poll"), "uring_zc": ("io_uring_enter",)}
OTHERS = {
    "sendfile64": "sendfile",
    "recv": "recvfrom",
    "send": "sendto",
    "mmap2": "mmap",
    "ppoll": "poll",
}  # one call by its names on other architectures

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")


def promised(method: Named) -> dict[str, tuple[str, ...]]:
    """The calls that a method's proofs count: `splice_in_calls` counts splice(2)."""
    calls: dict[str, tuple[str, ...]] = {}
    for proof in method.counters:
        if proof.unit == "calls" and proof.name.endswith("_calls"):
            name = re.sub(r"^sink_|(_in|_out)?_calls$", "", proof.name)
            name = OTHERS.get(name, name)
            calls[name] = (*calls.get(name, ()), proof.name)
    if "mmap" in calls:
        calls["munmap"] = calls["mmap"]
    return calls


def flow_calls(folder: Path, serving: int) -> Counter[tuple[str, str]]:
    """How often the flow's thread made each call; `serving` is the thread not looked at."""
    threads = [path for path in folder.iterdir() if path.suffix != f".{serving}"]
    assert len(threads) == 1, "one stream is one thread"
    found = (LINE.match(line) for line in threads[0].read_text().splitlines())
    return Counter((OTHERS.get(m[1], m[1]), m[2]) for m in found if m)


def traced(
    folder: Path, send: str, receive: str, options: Options = NONE, bytes_: int = CHUNK * CHUNKS
) -> tuple[tuple[Side, Counter[tuple[str, str]]], tuple[Side, Counter[tuple[str, str]]]]:
    folders = [folder / "sender", folder / "receiver"]
    for each in folders:
        each.mkdir()
    argvs = [("strace", "-ff", "-qq", "-o", str(each / "trace"), *WORKER) for each in folders]
    with open_pair(*argvs) as pair:
        pids = [pair.sender.hello.pid, pair.receiver.hello.pid]
        bound = {"bytes": bytes_} if bytes_ else {"duration": 500 * MS}
        sides = pair.run(send, receive, to_sender={"chunk": CHUNK, **options}, **bound)
    sent, received = (flow_calls(each, pid) for each, pid in zip(folders, pids, strict=True))
    return (sides[0], sent), (sides[1], received)


def check(
    counted: Counter[tuple[str, str]],
    side: Side,
    owner: str,
    calls: dict[str, tuple[str, ...]],
    wraps: tuple[tuple[str, int], ...],
) -> None:
    """Every named call was made as often as the proofs say; no other grew with the chunks."""
    by_name: Counter[str] = Counter()
    for (name, _), times in counted.items():
        by_name[name] += times
    for name, proofs in calls.items():
        told = sum(side.total(owner, proof) for proof in proofs)
        assert told <= by_name[name] <= told + FIXED, f"{owner}: {name}"
    for name, times in wraps:
        assert by_name[name] == times
    others = {
        name: n for name, n in by_name.items() if name not in calls and name not in dict(wraps)
    }
    assert sum(others.values()) <= FIXED, f"{owner} makes other calls too: {others}"


@pytest.mark.parametrize(("send", "receive"), covering(local()))
def test_a_method_makes_its_calls_and_no_others(tmp_path: Path, send: str, receive: str) -> None:
    (sent, sender), (received, receiver) = traced(tmp_path, send, receive)
    calls = promised(local().send[send])
    check(sender, sent, send, calls, WRAPS.get(send, ()))
    check(receiver, received, receive, promised(local().receive[receive]), ())
    # A chunk is one call of each kind, but where the kernel itself took less than it was offered.
    proofs = [proof.name for proof in local().send[send].counters]
    shorts = sum(sent.total(send, name) for name in proofs if name.startswith("short_"))
    waits = WAITS.get(send, ())
    for call, names in calls.items():
        for proof in names:
            least = 0 if call in (*SELDOM.get(send, ()), *waits) else CHUNKS
            most = float("inf") if call in waits else CHUNKS + shorts
            assert least <= sent.total(send, proof) <= most
    # Nothing but the notices goes to another descriptor than the connection's.
    connection = max((times, fd) for (name, fd), times in sender.items() if name in calls)[1]
    others = {fd: times for (name, fd), times in sender.items() if name == "write"}
    others.pop(connection, None)
    assert "write" not in calls or sum(others.values()) <= FIXED


def test_null_makes_no_call_at_all(tmp_path: Path) -> None:
    for side, calls in traced(tmp_path, "null", "null", bytes_=0):
        assert side.total("flow", "steps") > 100 * FIXED
        check(calls, side, "null", {}, ())
