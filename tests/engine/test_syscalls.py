"""Each method makes the system calls that it is named for, and no others, a chunk at a time:
strace(1) counts from outside what the method's own proofs count from inside.

Only the flow's thread is looked at. What it does once a run (its stack, the gate, the notices to
the serving thread) stays below FIXED, whatever the number of chunks, and there are many more chunks
than that.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from netbench.engine.catalogue import Named
from netbench.engine.own_engine import local
from tests.support.engine_pair import MS, NONE, WORKER, Options, Side, covering, open_pair

CHUNK, CHUNKS, FIXED = 64 * 1024, 512, 40
MEMORY_FILE = (
    1024 * 1024
)  # of the memory source: read(2) goes back to its start after so many bytes
LINE = re.compile(r"(\w+)\((\d*)")


@dataclass(frozen=True)
class Sends:
    """Calls a chunk, by name, and the proofs that count them. `extra`: calls that wrapping the
    source costs in the whole run; `seldom`: calls that are made for several chunks at once, or for
    none; `waits`: calls that wait, any number of times.
    """

    calls: dict[str, tuple[str, ...]]
    short: str
    extra: tuple[tuple[str, int], ...] = ()
    seldom: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()


SENDS = {
    "write": Sends({"write": ("write_calls",)}, "short_writes"),
    "readwrite": Sends(
        {"read": ("read_calls",), "write": ("write_calls",)},
        "short_writes",
        (("lseek", CHUNKS * CHUNK // MEMORY_FILE),),
    ),
    "sendfile": Sends({"sendfile": ("sendfile_calls",)}, "short_sendfiles"),
    "splice": Sends({"splice": ("splice_in_calls", "splice_out_calls")}, "short_splices"),
    "mmap": Sends(
        {"mmap": ("mmap_calls",), "munmap": ("mmap_calls",), "write": ("write_calls",)},
        "short_writes",
    ),
    "zerocopy": Sends(
        {"sendto": ("send_calls",), "recvmsg": ("recvmsg_calls",), "poll": ("poll_calls",)},
        "short_sends",
        seldom=("recvmsg", "poll"),
    ),
    "vmsplice": Sends(
        {
            "vmsplice": ("vmsplice_calls",),
            "splice": ("splice_out_calls",),
            "ioctl": ("ioctl_calls",),
            "poll": ("poll_calls",),
        },
        "short_splices",
        waits=("ioctl", "poll"),
    ),
    "uring": Sends(
        {"io_uring_enter": ("io_uring_enter_calls",)}, "short_sends", seldom=("io_uring_enter",)
    ),
    "uring_zc": Sends(
        {"io_uring_enter": ("io_uring_enter_calls",)}, "short_sends", waits=("io_uring_enter",)
    ),
}
RECEIVES = {
    "read": {"read": ("read_calls",)},
    "trunc": {"recvfrom": ("recv_calls",)},
    "splice": {"splice": ("splice_in_calls", "splice_out_calls")},
    "mmap": {
        "mmap": ("mmap_calls",),
        "munmap": ("mmap_calls",),
        "read": ("read_calls",),
        "ftruncate": ("ftruncate_calls",),
    },
}
OTHERS = {
    "sendfile64": "sendfile",
    "recv": "recvfrom",
    "send": "sendto",
    "mmap2": "mmap",
    "ppoll": "poll",
}  # one call by its names on other architectures

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")


def promised(method: Named) -> dict[str, tuple[str, ...]]:
    """The calls that a method's proofs count: `splice_in_calls` counts splice(2). What a new method
    is held to by itself.
    """
    calls: dict[str, tuple[str, ...]] = {}
    for proof in method.counters:
        if proof.unit == "calls" and proof.name.endswith("_calls"):
            name = re.sub(r"^sink_|(_in|_out)?_calls$", "", proof.name)
            name = OTHERS.get(name, name)
            calls[name] = (*calls.get(name, ()), proof.name)
    return calls


def sends(name: str) -> Sends:
    return SENDS.get(name) or Sends(promised(local().send[name]), "")


def receives(name: str) -> dict[str, tuple[str, ...]]:
    return RECEIVES.get(name) or promised(local().receive[name])


def test_proofs_are_named_after_their_calls() -> None:
    """The rule that new methods are held to gives for the old ones what the tables say."""
    catalogue = local()
    for name, plan in SENDS.items():
        assert promised(catalogue.send[name]) == {
            call: proofs for call, proofs in plan.calls.items() if call != "munmap"
        }
    for name, calls in RECEIVES.items():
        counted = {call: proofs for call, proofs in calls.items() if call != "munmap"}
        assert counted.items() <= promised(catalogue.receive[name]).items()


def flow_calls(folder: Path, serving: int) -> Counter[tuple[str, str]]:
    """How often the flow's thread made each call with each first argument. `serving` is the thread
    that is not looked at.
    """
    threads = [path for path in folder.iterdir() if path.suffix != f".{serving}"]
    assert len(threads) == 1, "one stream is one thread"
    found = (LINE.match(line) for line in threads[0].read_text().splitlines())
    return Counter((OTHERS.get(m[1], m[1]), m[2]) for m in found if m)


def returned(folder: Path, serving: int, call: str) -> Counter[int]:
    """How often the flow's thread got something from a call, by the power of two below it."""
    (trace,) = (path for path in folder.iterdir() if path.suffix != f".{serving}")
    lines = re.findall(rf"^{call}(?:64)?\(.* = (\d+)$", trace.read_text(), re.M)
    return Counter(int(got).bit_length() - 1 for got in lines if int(got))


def check_lengths(traced: Path, serving: int, side: Side, method: Named) -> None:
    """Histograms are of what the calls returned, as strace(1) saw it."""
    mine = [row.name for row in method.counters if row.per == "length"]
    assert bool(mine) == (method.name in ("sendfile", "splice", "vmsplice"))
    for call in {name.partition("_")[0] for name in mine}:
        told: Counter[int] = Counter()
        for name in mine:
            told.update(dict(enumerate(side.numbers(method.name, name))))
        assert +told == returned(traced, serving, call)


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
    check_lengths(folders[0], pids[0], sides[0], local().send[send])
    check_lengths(folders[1], pids[1], sides[1], local().receive[receive])
    return (sides[0], sent), (sides[1], received)


def check(
    counted: Counter[tuple[str, str]],
    side: Side,
    owner: str,
    calls: dict[str, tuple[str, ...]],
    wraps: tuple[tuple[str, int], ...],
) -> None:
    """Every named call was made as often as the proofs say, up to what a run costs once; no other
    call grew with the chunks.
    """
    by_name: Counter[str] = Counter()
    for (name, _), times in counted.items():
        by_name[name] += times
    for name, proofs in calls.items():
        told = sum(side.total(owner, proof) for proof in proofs)
        assert told <= by_name[name] <= told + FIXED, (
            f"{owner}: {name} was made {by_name[name]} times, its proof says {told}"
        )
    for name, times in wraps:
        assert by_name[name] == times
    others = {
        name: n for name, n in by_name.items() if name not in calls and name not in dict(wraps)
    }
    assert sum(others.values()) <= FIXED, f"{owner} makes other calls too: {others}"


@pytest.mark.parametrize(("send", "receive"), covering(local()))
def test_a_method_makes_its_calls_and_no_others(tmp_path: Path, send: str, receive: str) -> None:
    (sent, sender), (received, receiver) = traced(tmp_path, send, receive)
    plan = sends(send)
    check(sender, sent, send, plan.calls, plan.extra)
    check(receiver, received, receive, receives(receive), ())
    # A chunk is one call of each kind, but where the kernel itself took less than it was offered.
    shorts = sent.total(send, plan.short) if plan.short else CHUNKS
    for call, proofs in plan.calls.items():
        for proof in proofs:
            least = 0 if call in (*plan.seldom, *plan.waits) else CHUNKS
            most = float("inf") if call in plan.waits else CHUNKS + shorts
            assert least <= sent.total(send, proof) <= most
    # Nothing but the notices goes to another descriptor than the connection's.
    connection = max((times, fd) for (name, fd), times in sender.items() if name in plan.calls)[1]
    strays = sum(
        times
        for (name, fd), times in sender.items()
        if name == "write" and fd != connection and "write" in plan.calls
    )
    assert strays <= FIXED


def test_a_source_that_is_mapped_once_is_not_mapped_in_the_run(tmp_path: Path) -> None:
    (sent, sender), _ = traced(tmp_path, "mmap", "read", {"map": "whole"})
    check(sender, sent, "mmap", {"write": ("write_calls",)}, ())
    assert sent.total("mmap", "write_calls") >= CHUNKS
    assert sent.total("mmap", "mmap_calls") == 0


def test_null_makes_no_call_at_all(tmp_path: Path) -> None:
    for side, calls in traced(tmp_path, "null", "null", bytes_=0):
        assert side.total("flow", "steps") > 100 * FIXED
        check(calls, side, "null", {}, ())
