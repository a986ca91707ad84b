"""The meter `softirq`, beside what /proc, ip(8) and nstat(8) say at the same time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from netbench.engine.binding import Edge
from tests.support.engine_pair import WORKER, mover, observe, open_pair
from tests.support.local import out
from tests.support.needs import needs

BYTES = 50_000_001
KINDS = {"NET_RX": "net_rx", "NET_TX": "net_tx", "TIMER": "timer", "SCHED": "sched", "RCU": "rcu"}
IP = {
    "IpOutRequests": "ip_out_requests",
    "IpInReceives": "ip_in_receives",
    "IpInDelivers": "ip_in_delivers",
    "IpExtOutOctets": "ip_out_octets",
    "IpExtInOctets": "ip_in_octets",
    "IpExtInNoECTPkts": "ip_in_no_ect",
    "TcpOutSegs": "tcp_out_segments",
    "TcpInSegs": "tcp_in_segments",
}

Numbers = dict[str, int]


def table(path: str) -> tuple[list[int], dict[str, list[int]]]:
    """CPUs, and by the name of a row its number of each, of /proc/interrupts or /proc/softirqs."""
    head, *lines = Path(path).read_text().splitlines()
    cpus = [int(word.removeprefix("CPU")) for word in head.split()]
    rows = (line.partition(":") for line in lines)
    return cpus, {
        name.strip(): [int(word) for word in rest.split()[: len(cpus)]]
        for name, _, rest in rows
        if name.strip() not in ("ERR", "MIS")
    }


def of_kernel() -> Numbers:
    """By counter, and `COUNTER CPU`, what the kernel counts as a whole."""
    numbers: Numbers = {}

    def add(name: str, cpu: int, number: int) -> None:
        for key in (name, f"{name} {cpu}"):
            numbers[key] = numbers.get(key, 0) + number

    cpus, rows = table("/proc/interrupts")
    for row in rows.values():
        for cpu, number in zip(cpus, row, strict=True):
            add("interrupts", cpu, number)
    cpus, rows = table("/proc/softirqs")
    for kind, row in rows.items():
        for cpu, number in zip(cpus, row, strict=True):
            add("softirqs", cpu, number)
            if kind in KINDS:
                add(KINDS[kind], cpu, number)
    for line in Path("/proc/net/softnet_stat").read_text().splitlines():
        words = [int(word, 16) for word in line.split()]
        for name, at in (("processed", 0), ("dropped", 1), ("squeezed", 2), ("received_rps", 9)):
            add(name, words[12], words[at])
    return numbers


def read_by_meter(interface: str = "lo", **more: int) -> tuple[Numbers, Numbers]:
    """The same, as the meter reads it at the two edges of a window."""
    with mover() as worker:
        side = observe(worker, "softirq", interface=interface, **more)
    edges: tuple[Numbers, Numbers] = ({}, {})
    for (owner, name, edge), vector in side.vectors.items():
        if owner == "softirq" and edge in (Edge.OPEN, Edge.CLOSE):
            for cpu, number in enumerate(vector.numbers):
                key = f"{name.removeprefix('cpu_')} {cpu}" if name.startswith("cpu_") else name
                if number is not None:
                    edges[edge][key] = number
    return edges


def test_the_kernels_counts_are_those_of_proc() -> None:
    before = of_kernel()
    opening, closing = read_by_meter()
    after = of_kernel()
    assert len(before) > 11
    for name, number in before.items():
        assert number <= opening[name] <= closing[name] <= after[name], name


def test_what_another_worker_reads_of_the_kernel_is_left_out() -> None:
    """Without an interface its counters are missing, too."""
    opening, closing = read_by_meter(without_host_wide=1)
    assert not set(opening) & set(of_kernel())
    assert {"link_rx_bytes", "ip_in_receives", "namespace"} <= set(closing)
    opening, _ = read_by_meter(interface="")
    assert not [name for name in opening if name.startswith("link_")]
    assert "ip_in_receives" in opening


Spaces = tuple[str, str]


@pytest.fixture
@needs("root", "netns")
def spaces() -> Iterator[Spaces]:
    """Two network namespaces with a link between their interfaces `data`."""
    names = (f"nbq{os.getpid()}a", f"nbq{os.getpid()}b")
    try:
        for name in names:
            out("ip", "netns", "add", name)
        link = f"ip link add data netns {names[0]} type veth peer name data netns {names[1]}"
        out(*link.split())
        for name, end in zip(names, "12", strict=True):
            for address in (f"10.9.8.{end}/24 dev data", f"fd09::{end}/64 dev data nodad"):
                out("ip", "-n", name, "address", "add", *address.split())
            out("ip", "-n", name, "link", "set", "data", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def of_link(space: str) -> Numbers:
    """Of the interface, by ip(8)."""
    stats = json.loads(out("ip", "-n", space, "-s", "-j", "link", "show", "data"))[0]["stats64"]
    return {
        f"link_{way}_{what}": stats[way][what]
        for way in ("rx", "tx")
        for what in ("bytes", "packets")
    }


def of_ip(space: str) -> Numbers:
    """Of IP and TCP, by nstat(8)."""
    if shutil.which("nstat") is None:
        pytest.skip("needs nstat: apt-get install iproute2")
    shown = out("ip", "netns", "exec", space, "nstat", "-asz", "-j")
    kernel: Mapping[str, int] = json.loads(shown)["kernel"]
    return {name: kernel[key] for key, name in IP.items()}


@pytest.mark.parametrize("ip", ["4", "6"])
def test_packets_of_a_namespace_are_those_that_ip_and_nstat_show(spaces: Spaces, ip: str) -> None:
    argv = [("ip", "netns", "exec", space, *WORKER) for space in spaces]
    address = "fd09::2" if ip == "6" else "10.9.8.2"
    before = [of_link(space) | (of_ip(space) if ip == "4" else {}) for space in spaces]
    with open_pair(*argv) as pair:
        run = {"bytes": BYTES, "address": address, "interface": "data", "meters": "softirq"}
        sent, received = pair.run("write", "read", to_receiver={"without_host_wide": 1}, **run)
    after = [of_link(space) | (of_ip(space) if ip == "4" else {}) for space in spaces]
    for side, low, high in zip((sent, received), before, after, strict=True):
        for name, number in low.items():
            opening = side.total("softirq", name, Edge.OPEN)
            closing = side.total("softirq", name, Edge.DRAINED)
            assert number <= opening <= closing <= high[name], name
    assert sent.moved("softirq", "link_tx_bytes", Edge.DRAINED) > BYTES
    assert received.moved("softirq", "link_rx_bytes", Edge.DRAINED) > BYTES
    assert sent.moved("softirq", "ip_out_octets", Edge.DRAINED) > BYTES
    packets = received.moved("softirq", "ip_in_receives", Edge.DRAINED)
    segments = received.moved("softirq", "ip_in_no_ect", Edge.DRAINED)
    assert 0 < packets <= segments, "GRO joins segments"
    assert segments >= BYTES // 65536
    assert sent.numbers("softirq", "link_interrupts", Edge.CLOSE) == [], "a veth has none"
    assert ("softirq", "interrupts", Edge.OPEN) in sent.vectors
    assert ("softirq", "interrupts", Edge.OPEN) not in received.vectors
    namespaces = {side.total("softirq", "namespace") for side in (sent, received)}
    assert namespaces == {os.stat(f"/run/netns/{space}").st_ino for space in spaces}
