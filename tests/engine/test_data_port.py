"""The data port: who may connect to it, and what many connections cost the sender."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from netbench.base.errors import EngineError
from netbench.engine.binding import Code
from netbench.engine.worker import Worker
from tests.support.engine_pair import MS, Pair, Side
from tests.support.needs import needs
from tests.support.running import run

SENDER, OTHER = "127.0.0.2", "127.0.0.3"
PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
STREAMS = 128


@pytest.mark.parametrize("ip", [4, 6])
def test_another_address_is_rejected_though_it_has_the_token(pair: Pair, ip: int) -> None:
    to_sender = {"local_address": OTHER} if ip == 4 else {}
    peer = SENDER if ip == 4 else "fd00::2"
    address = "127.0.0.1" if ip == 4 else "::1"
    with pytest.raises(EngineError, match=r"rejected the token.*NAT") as caught:
        pair.run("write", "read", to_sender, {"peer_address": peer}, address=address, bytes=1000)
    assert caught.value.code == Code.PEER
    for worker in (pair.sender, pair.receiver):
        worker.abort()


@pytest.fixture
@needs("root", "netns")
def few_ports() -> Iterator[None]:
    """Ephemeral ports for three runs in the tests' network, whatever port a receiver gets."""
    before = PORTS.read_text()
    PORTS.write_text(f"40000 {40000 + 3 * STREAMS + 15}")
    yield
    PORTS.write_text(before)


def test_runs_with_many_streams_need_no_port_for_each(few_ports: None, pair: Pair) -> None:
    """Ports stay in TIME_WAIT for a minute; a receiver may get that of an earlier run, too."""
    for _ in range(5):
        addresses = {"local_address": SENDER}, {"peer_address": SENDER}
        _, received = pair.run("write", "read", *addresses, bytes=1_000_000, streams=STREAMS)
        assert received.moved("flow", "bytes") == 1_000_000
        assert received.total("", "rejected_connections") == 0


def test_a_campaign_tells_the_receiver_where_its_sender_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the receiver is told is what the sender binds to."""
    jobs: list[Mapping[str, object]] = []
    honest = Worker.prepare

    def prepare(self: Worker, options: Mapping[str, int | str | bytes]) -> object:
        jobs.extend([] if "ask" in options else [options])
        return honest(self, options)

    monkeypatch.setattr(Worker, "prepare", prepare)
    hosts = f"hosts: {{a: {{address: {SENDER}}}, b: {{address: 127.0.0.1}}}}\n"
    (record,) = run(
        hosts + "transfer: {duration: 20ms, warmup: 2ms, congestion: cubic}\n", tmp_path
    )
    assert record["status"] == "ok"
    receiver, sender = jobs
    assert receiver["peer_address"] == sender["local_address"] == SENDER


@pytest.mark.parametrize(
    ("address", "many"), [(OTHER, 100), (SENDER, 250)], ids=["other", "silent"]
)
def test_strangers_are_counted_and_hold_up_nothing(pair: Pair, address: str, many: int) -> None:
    common = {"token": os.urandom(16), "streams": 1, "address": "127.0.0.1", "meters": "rusage"}
    common |= {"duration": 10 * MS}
    to_receiver = {"role": "receive", "method": "read", "receive_chunk": 65536}
    ready = pair.receiver.prepare({**common, **to_receiver, "peer_address": SENDER})
    port = Side.of(pair.receiver.catalogue, ready).total("", "port", 0)
    others = [
        socket.create_connection(("127.0.0.1", port), None, (address, 0)) for _ in range(many)
    ]
    to_sender = {"role": "send", "method": "write", "chunk": 65536, "peer_port": port}
    pair.sender.prepare({**common, **to_sender, "local_address": SENDER})
    for other in others:
        with other:
            assert other.recv(1) == b"", "it is closed at once, without an answer"
    pair.start(bounded=False)
    _, received = pair.finish(bounded=False)
    assert received.numbers("", "rejected_connections") == [many]
