"""Five hundred hosts: their plan is lazy, and conducting twice as many blocks over them leaves no
more in memory.

The hosts are a fake: so many real ones cannot exist here. What is real is the whole controller: the
campaign, the pool with its heartbeat, facts, locks, rounds, the protocol as it is decoded, the ledger
and the result folder. What is not is each worker, which answers every frame at once with numbers
that are made up, and moves no data.
"""

from __future__ import annotations

import errno
import gc
import resource
import struct
import tracemalloc
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign
from netbench.base.errors import HostError
from netbench.engine import binding, frames
from netbench.engine.binding import Code, Edge, Frame, ffi
from netbench.engine.catalogue import Catalogue, Row
from netbench.hosts.local import LocalProcess
from netbench.model import Campaign, Host
from netbench.plan.plan import Key, Plan, Run
from netbench.run import conductor
from netbench.run.ledger import Ledger
from netbench.stats.closing import Assessment
from tests.support.engine_pair import MOVER, PATIENCE
from tests.support.running import stored_records

HOSTS, PAIRS = 500, 250
BLOCKS = 4  # conducted; memory is looked at after the second and the last
SAMPLES = 20
METERS = ("flow", "rusage", "procstat")
TEXTS = {
    b"tcp_available_congestion_control": "cubic",
    b"lock\0\0\0\0": "",
}  # what is answered, by what the operation names


def many_hosts(more: str, blocks: int) -> Campaign:
    hosts = "\n".join(
        f"  h{n}: {{ssh: h{n}, address: 10.{n >> 8}.{n & 255}.1}}" for n in range(HOSTS)
    )
    pairs = "\n".join(f"  - {{sender: h{2 * n}, receiver: h{2 * n + 1}}}" for n in range(PAIRS))
    text = f"netbench: 1\nname: many\nverify: off\nhosts:\n{hosts}\npairs:\n{pairs}\nrepeat: {{min: {blocks}, max: {blocks}}}\n{more}"
    return campaign.parse(text, "many.yaml")


# --- the plan ---


@pytest.fixture(scope="module")
def plan() -> Plan:
    sweep = "sweep: {send: [write, sendfile], socket_buffer: [64K, 128K], streams: [1, 2]}\n"
    return Plan(many_hosts(sweep, blocks=100_000))


def test_a_plan_of_250_pairs_asks_for_a_unit_when_its_turn_has_come(plan: Plan) -> None:
    asked: list[Key] = []

    def is_open(key: Key) -> bool:
        asked.append(key)
        return True

    waves = plan.block(99_999, is_open)
    first = [step.unit.key for wave in islice(waves, 3) for step in wave if isinstance(step, Run)]
    assert len(first) == 3 * PAIRS
    assert list(dict.fromkeys(asked)) == first
    assert len(list(waves)) == 8 - 3


def test_more_blocks_of_it_take_no_more_memory(plan: Plan) -> None:
    def peak(blocks: range) -> int:
        tracemalloc.start()
        for number in blocks:
            deque(plan.block(number, lambda key: True), maxlen=0)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(range(4)) < 1.1 * peak(range(2))


# --- a campaign over hosts that are not there ---


def vector(row: Row, edge: int, ns: int, numbers: list[int]) -> bytes:
    head = ffi.new(
        "struct nb_vector *", {"row": row.id, "edge": edge, "count": len(numbers), "ns": ns}
    )
    return bytes(ffi.buffer(head)) + struct.pack(f"={len(numbers)}Q", *numbers)


def said(text: str) -> bytes:
    """A vector of text, as an operation is answered."""
    data = text.encode()
    head = ffi.new("struct nb_vector *", {"text": 1, "bytes": len(data)})
    return bytes(ffi.buffer(head)) + data + b"\0" * (-len(data) % 8)


def refusal() -> bytes:
    fields = {
        "code": Code.SYSTEM,
        "error": errno.ENOENT,
        "operation": b"read",
        "message": b"it is not there",
    }
    return bytes(ffi.buffer(ffi.new("struct nb_error *", fields)))


def counted(catalogue: Catalogue) -> Iterator[bytes]:
    """A run's result: every counter of METERS at every edge, soon after each other: the run takes no
    time.
    """
    for row in catalogue.rows:
        if row.kind == "counter" and row.owner in METERS:
            for edge in (Edge.OPEN, Edge.CLOSE, Edge.DRAINED):
                yield vector(
                    row, edge, (1 + edge) * 10**4, [edge * 10**8] * (2 if row.per == "cpu" else 1)
                )


def sampled(catalogue: Catalogue) -> Iterator[bytes]:
    rows = [row for row in catalogue.rows if row.kind == "counter" and row.owner == "flow"]
    for n in range(SAMPLES):
        yield from (vector(row, 0, n * 10**3, [n * 10**7]) for row in rows)


class Pretender:
    """A stream whose other end talks like a worker and moves nothing."""

    def __init__(self, hello: bytes, answers: dict[Frame, list[tuple[Frame, bytes]]]) -> None:
        self._answers = answers
        self._heard = bytearray()
        self._said = [frames.frame(Frame.HELLO, 0, hello)]

    def read(self, timeout: float) -> bytes:
        return self._said.pop(0)

    def write(self, data: bytes) -> None:
        self._heard += data
        while (found := frames.split(self._heard)) is not None:
            self._said += self._answer(*found)

    def _answer(self, kind: Frame, tag: int, payload: bytes) -> Iterator[bytes]:
        if kind is Frame.BYE:
            yield b""
        if kind is Frame.OP:
            text = next((text for words, text in TEXTS.items() if words in payload), None)
            yield (
                frames.frame(Frame.ERROR, tag, refusal())
                if text is None
                else frames.frame(Frame.OP_DONE, tag, said(text))
            )
        for answer, content in self._answers.get(kind, []):
            yield frames.frame(answer, tag, content)

    def finish(self, timeout: float) -> int | None:
        return 0

    def complaint(self) -> str:
        return ""


class Nowhere:
    """The way to a host that is not there: a kernel of its own, so that all pairs run side by side."""

    def __init__(
        self, host: Host, hello: bytes, answers: dict[Frame, list[tuple[Frame, bytes]]]
    ) -> None:
        self.name = host.name
        self._hello = bytearray(hello)
        ffi.cast(
            "struct nb_hello *", ffi.from_buffer(self._hello)
        ).boot_id = f"boot of {host.name}".encode()
        self._answers = answers

    def start_mover(self, run_as: str = "") -> Pretender:
        return Pretender(bytes(self._hello), self._answers)

    def start_helper(self) -> Pretender:
        raise HostError(f"{self.name}: it gives no root")

    def close(self) -> None:
        pass


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def real_hello() -> bytes:
    """What a real worker says first."""
    process = LocalProcess(MOVER)
    buffer = bytearray()
    while (found := frames.split(buffer)) is None:
        buffer += process.read(PATIENCE)
    process.finish(PATIENCE)
    return found[2]


@pytest.mark.slow
def test_conducting_twice_as_many_blocks_over_500_hosts_leaves_no_more_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is flat in bytes; objects that the collector knows tell even what is small, a run's
    record.

    Nor does a run look at all the other units: 250 pairs side by side would wait for each other.
    The heartbeat is stopped meanwhile: what it has in hand, up to a beat for each host, depends on
    the instant.
    """
    hello = real_hello()
    catalogue = Catalogue.of(frames.decode_hello(hello)[1])
    result, samples = b"".join(counted(catalogue)), b"".join(sampled(catalogue))
    answers = {
        Frame.JOB: [(Frame.READY, vector(catalogue.readbacks["port"], 0, 0, [5000]))],
        Frame.GO: [(Frame.EDGE, struct.pack("=II", Edge.CLOSE, 0))],
        Frame.STOP: [(Frame.SAMPLES, samples), (Frame.RESULT, result)],
    }
    held: list[tuple[int, int]] = []
    assessed = [0]
    next_block, assessment = Ledger.next_block, Ledger.assessment

    def counting(ledger: Ledger, key: Key) -> Assessment:
        assessed[0] += 1
        return assessment(ledger, key)

    def measured(ledger: Ledger) -> None:
        next_block(ledger)
        gc.collect()
        held.append((resident(), len(gc.get_objects())))

    def channels(host: Host) -> Any:
        return Nowhere(host, hello, answers)

    monkeypatch.setattr(binding, "HEARTBEAT_SECONDS", 3600.0)
    monkeypatch.setattr(Ledger, "next_block", measured)
    monkeypatch.setattr(Ledger, "assessment", counting)
    many = many_hosts(
        "transfer: {duration: 1s, warmup: 0s, congestion: cubic}\nmeters: [rusage, procstat]\n",
        BLOCKS,
    )
    conclusion = conductor.start(many, tmp_path, channels=channels)
    assert (conclusion.why, conclusion.failed) == ("done", False)
    records = stored_records(conclusion.path)
    assert [record["status"] for record in records] == ["ok"] * (PAIRS * BLOCKS)
    assert {record["pair"] for record in records} == {pair.name for pair in many.pairs}
    assert len(held) == BLOCKS
    (bytes_half, objects_half), (bytes_all, objects_all) = held[BLOCKS // 2 - 1], held[-1]
    assert bytes_all < 1.1 * bytes_half
    assert objects_all - objects_half < PAIRS * BLOCKS / 2, (
        "a run leaves a few numbers in memory, not its record or its samples"
    )
    assert assessed[0] <= 3 * len(records) + PAIRS
