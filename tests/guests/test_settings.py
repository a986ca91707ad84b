"""Settings of kernels that have what this machine's may lack, set in guests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netbench.engine.worker import Worker
from netbench.lab import Lab
from netbench.run.worker_pool import open_channel
from tests.support.guests import Guests

ETHERNET = 14  # bytes of its header
LINK = ("gso_max_size", "gso_ipv4_max_size", "gro_max_size", "gro_ipv4_max_size")
Record = dict[str, Any]


class Linked(Guests):
    """Two guests, and campaigns on them."""

    def links(self) -> dict[str, str]:
        """What a worker reads of every link that is set here."""
        found = {}
        for name in self.lab.hosts:
            worker = Worker(open_channel(self.host(name)).start_helper(), name)
            try:
                for link in ("data0", "lo"):
                    found[f"{name} {link} qdisc"] = worker.operate("qdisc", link)[0]
                    for key in LINK:
                        found[f"{name} {link} {key}"] = worker.operate("link", (link, key))[0]
            finally:
                worker.close()
        return found

    def records_of(self, text: str, **hosts: dict[str, str]) -> list[Record]:
        done = self.run(self.text(text, **hosts))
        assert list(self.folder.glob("results/*/[!.]*/records.jsonl")), done.err
        return self.records()


@pytest.fixture
def guests(made: Lab, tmp_path: Path) -> Iterator[Linked]:
    """Afterwards every link is as it was."""
    found = Linked(made, tmp_path)
    before = found.links()
    yield found
    assert found.links() == before


SHORT = (
    "verify: off\nmeters: [rusage]\nrepeat: {min: 1, max: 1}\n"
    "transfer: {duration: 100ms, warmup: 20ms, congestion: cubic}\n"
)


def check_levels(record: Record, **expected: str) -> None:
    """What was asked and read on both sides."""
    assert record["status"] == "ok", record["reason"]
    for side in ("sender", "receiver"):
        for setting, level in expected.items():
            assert set(record["settings"][side][setting].values()) == {level}


@pytest.mark.slow
def test_queueing_disciplines_and_what_the_device_joins(guests: Linked) -> None:
    """virtio_net takes segments of 64K: the kernel says so, and that cell alone is refused."""
    sweep = "sweep: {qdisc: [fq, pfifo, fq_codel], gro_max_size: [16K, 192K]}\n"
    records = guests.records_of(SHORT + sweep)
    assert len(records) == 6
    for record in records:
        size = {"16K": "16384", "192K": "196608"}[record["factors"]["gro_max_size"]]
        check_levels(record, qdisc=record["factors"]["qdisc"], gro_max_size=size)
    shutil.rmtree(guests.folder / "results")
    records = guests.records_of(f"{SHORT}sweep: {{gso_max_size: [32K, 192K]}}\n")
    said = {r["factors"]["gso_max_size"]: (r["status"], r["reason"]) for r in records}
    assert said["32K"] == ("ok", "")
    assert said["192K"][0] == "refused"
    assert "gso_max_size" in said["192K"][1]


@pytest.mark.slow
def test_big_tcp_moves_segments_of_more_than_64_kib(guests: Linked) -> None:
    """Over the guest's loopback: without BIG TCP no segment is larger than its MTU of 64 KiB."""
    sizes = {}
    counters = "cd /sys/class/net/lo/statistics; cat tx_bytes tx_packets"
    text = SHORT.replace("100ms", "400ms, chunk: 1M") + "pairs: [{sender: snd, receiver: snd}]\n"
    for size in ("64K", "448K"):
        before = guests.ssh("snd", counters).split()
        levels = f"settings: {{gso_max_size: {size}, gro_max_size: {size}}}\n"
        here = {"address": "127.0.0.1", "interface": "lo"}
        (record,) = guests.records_of(text + levels, snd=here)
        shutil.rmtree(guests.folder / "results")
        assert record["status"] == "ok", record["reason"]
        after = guests.ssh("snd", counters).split()
        bytes_, packets = (int(b) - int(a) for a, b in zip(before, after, strict=True))
        sizes[size] = bytes_ / packets  # acknowledgements among them
    assert sizes["64K"] < 65536 + ETHERNET < sizes["448K"]


@pytest.mark.slow
def test_kernel_tls_is_loaded_by_a_command_and_unloaded(guests: Linked) -> None:
    ulp = "$(cat /proc/sys/net/ipv4/tcp_available_ulp)"
    loaded = f"case {ulp} in *tls*) echo on;; *) echo off;; esac"
    switch = ["sh", "-c", "case $0 in on) modprobe tls;; *) modprobe -r tls;; esac", "{level}"]
    programs = json.dumps({"apply": switch, "read": ["sh", "-c", loaded], "undo": switch})
    assert [guests.ssh(name, loaded) for name in guests.lab.hosts] == ["off", "off"]
    text = f"command: {{ktls: {programs}}}\nsweep: {{ktls: ['on', 'off']}}\n"
    for record in guests.records_of(SHORT + text):
        check_levels(record, ktls=record["factors"]["ktls"])
    assert [guests.ssh(name, loaded) for name in guests.lab.hosts] == ["off", "off"]


@pytest.mark.slow
def test_requests_wait_by_polling_the_device_busily(guests: Linked) -> None:
    """As the kernels count it: packets that epoll_wait(2) has taken out of a device's queue."""

    def polled() -> int:
        found = 0
        for host in ("snd", "rcv"):
            names, numbers = guests.ssh(host, "grep ^TcpExt: /proc/net/netstat").splitlines()
            both = dict(zip(names.split(), numbers.split(), strict=True))
            found += int(both["BusyPollRxPackets"])
        return found

    asked = SHORT.replace("{duration: 100ms", "{request: 1, response: 1, wait: %s, duration: 300ms")
    for wait, some in (("epoll", False), ("busy_poll", True)):
        shutil.rmtree(guests.folder / "results", ignore_errors=True)
        before = polled()
        (record,) = guests.records_of(asked % wait)
        assert record["status"] == "ok"
        after = polled()
        assert (after > before) == some, (before, after)
