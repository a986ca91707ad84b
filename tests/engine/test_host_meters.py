"""The meters of a host. RAPL and idle states are simulated by files in a mount namespace."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from netbench import campaign
from netbench.base.errors import CampaignError
from netbench.engine.binding import Edge
from netbench.engine.own_engine import local
from netbench.engine.worker import Worker
from netbench.facts.system import irq_time_accounting
from tests.support.engine_pair import (
    MS,
    PATIENCE,
    WORKER,
    Side,
    mover,
    observe,
    observed,
    open_pair,
)
from tests.support.local import out
from tests.support.needs import needs

ZONES = {
    "intel-rapl:0": ("package-0", 1000, 995),
    "intel-rapl:0:0": ("core", 1000, 10),
    "intel-rapl:0:1": ("dram", 500, 7),
    "intel-rapl:1": ("package-1", 1000, 0),
    "intel-rapl:2": ("psys", 9000, 1),
    "intel-rapl-mmio:0": ("package-0", 1000, 1),
}
"""Name, range, and energy of each zone at first."""


def script() -> str:
    lines = ["mount -t tmpfs tmpfs /sys/class"]
    for zone, (name, most, energy) in ZONES.items():
        at = f"/sys/class/powercap/{zone}"
        lines.append(
            f"mkdir -p {at}; echo {name} > {at}/name; echo {most} > {at}/max_energy_range_uj;"
            f" echo {energy} > {at}/energy_uj; chmod 400 {at}/energy_uj"
        )
    return "; ".join([*lines, 'exec "$@"'])


@pytest.fixture
@needs("root")
def rapl() -> Iterator[Worker]:
    """A mover where powercap has these zones."""
    with mover("unshare", "--mount", "sh", "-ec", script(), "sh") as worker:
        yield worker


def test_energy_goes_on_where_a_zone_begins_again_at_0(rapl: Worker) -> None:
    rapl.prepare({"role": "observe", "meters": "energy", "duration": MS})
    root = Path(f"/proc/{rapl.hello.pid}/root/sys/class/powercap")
    for name, number in (("0", 10), ("0:1", 57), ("1", 100), ("2", 4)):
        (root / f"intel-rapl:{name}" / "energy_uj").write_text(f"{number}\n")
    side = observed(rapl)
    expected = {"package_uj": (1000 - 995 + 10) + 100, "dram_uj": 50, "counted_uj": 165}
    assert {name: side.total("energy", name, Edge.OPEN) for name in expected} == expected


def test_a_zone_that_goes_takes_its_sum_along(rapl: Worker) -> None:
    """And a machine without any zone says so."""
    rapl.prepare({"role": "observe", "meters": "energy", "duration": MS})
    root = Path(f"/proc/{rapl.hello.pid}/root/sys/class/powercap")
    os.truncate(root / "intel-rapl:0:1" / "energy_uj", 0)
    side = observed(rapl)
    assert side.numbers("energy", "dram_uj", Edge.CLOSE) == []
    assert side.total("energy", "package_uj", Edge.CLOSE) == 0
    empty = 'mount -t tmpfs tmpfs /sys/class; mkdir /sys/class/powercap; exec "$@"'
    with mover("unshare", "--mount", "sh", "-ec", empty, "sh") as worker:
        unread = worker.catalogue.meters["energy"].unread
    why = "this machine has no energy counters (RAPL, in /sys/class/powercap)"
    assert unread == {"energy": why}


def test_what_soakers_would_change_is_not_measured_beside_them() -> None:
    with pytest.raises(CampaignError, match="meters: energy says nothing beside soak"):
        campaign.parse("netbench: 1\nname: x\nmeters: [soak, energy]\n", "x.yaml")


def test_the_tick_rate_is_that_of_the_coarse_clock() -> None:
    """Which moves at each tick."""
    coarse = 6  # CLOCK_MONOTONIC_COARSE, which Python does not name
    with mover() as worker:
        assert worker.hello.tick_rate == round(1 / time.clock_getres(coarse))


def test_the_accounting_of_interrupts_is_read_from_the_configuration() -> None:
    hz, name = "CONFIG_HZ=250\n", "CONFIG_IRQ_TIME_ACCOUNTING"
    assert irq_time_accounting(f"{name}=y\n{hz}") == "on"
    for text in (f"# {name} is not set\n{hz}", f"CONFIG_HAVE_IRQ_TIME_ACCOUNTING=y\n{hz}"):
        assert irq_time_accounting(text) == "off"
    with pytest.raises(ValueError, match="CONFIG_HZ"):
        irq_time_accounting("")


# The meter `perf`: software events of all CPUs, beside what the kernel says in /proc. Hardware
# counters are simulated in native/tests/test_perf_meter.c

PAGES = 2000


def of_proc() -> dict[str, int]:
    """All context switches and page faults since the kernel began."""
    words = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    switches = next(int(line[1]) for line in words if line[0] == "ctxt")
    words = [line.split() for line in Path("/proc/vmstat").read_text().splitlines()]
    faults = next(int(line[1]) for line in words if line[0] == "pgfault")
    return {"context_switches": switches, "page_faults": faults}


def touch_pages() -> None:
    """Make page faults."""
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(PAGES):
            memory[page * mmap.PAGESIZE] = 1


@pytest.mark.root
def test_software_events_of_all_cpus_are_those_of_proc() -> None:
    cpus = os.sysconf("SC_NPROCESSORS_ONLN")
    with mover() as worker:
        before = of_proc()
        worker.prepare({"role": "observe", "meters": "perf", "duration": 100 * MS})
        worker.go()
        worker.await_edge(Edge.OPEN, PATIENCE)
        touch_pages()
        worker.await_edge(Edge.CLOSE, PATIENCE)
        after = of_proc()
        worker.stop()
        side = Side.of(worker.catalogue, worker.result(PATIENCE).result)
    for name, number in before.items():
        assert 0 < side.moved("perf", name) <= after[name] - number
    vector = side.vectors["perf", "cpu_clock_ns", Edge.CLOSE]
    window = vector.ns - side.vectors["perf", "cpu_clock_ns", Edge.OPEN].ns
    assert window * cpus * 0.5 < side.moved("perf", "cpu_clock_ns")


# The meter `cpuidle`: residencies of this machine's own CPUs, and of files that stand for them in a
# mount namespace. How accurate it is, tools/bench/meters.py measures

CPU = "/sys/devices/system/cpu"
CPUS = os.cpu_count() or 1
STEP_NS = 10 * MS  # of /proc/stat: 100 ticks a second (time(7))
LATE_NS = 5 * MS  # in which a thread of a CPU may still answer
FAKE = """
for at in $(seq 0 $(($(nproc --all) - 1))); do
    mount -t tmpfs tmpfs /sys/devices/system/cpu/cpu$at
    mkdir /sys/devices/system/cpu/cpu$at/cpuidle
    for state in $STATES; do
        mkdir /sys/devices/system/cpu/cpu$at/cpuidle/state$state
        echo $((1000 * state + at + 1)) > /sys/devices/system/cpu/cpu$at/cpuidle/state$state/time
    done
done
exec "$@"
"""
here = pytest.mark.skipif(
    bool(local().meters["cpuidle"].row.why), reason=local().meters["cpuidle"].row.why
)


def pretend(states: str) -> tuple[str, ...]:
    """Words that start a worker whose CPUs have these idle states."""
    return ("unshare", "--mount", "sh", "-ec", f'STATES="{states}"\n{FAKE}', "sh")


@here
def test_no_cpu_is_idle_for_longer_than_a_window_lasts() -> None:
    """A stay that ends within the window, and began long before, is not of it."""
    with mover() as one:
        for _ in range(50):
            side = observe(one, "cpuidle", duration=4 * MS)
            opened, closed = (side.vectors["cpuidle", "cpus", edge].ns for edge in (0, 1))
            opening, closing = (side.numbers("cpuidle", "cpu_idle_ns", e) for e in (0, 1))
            idle = [after - before for before, after in zip(opening, closing, strict=True)]
            assert max(idle) <= closed - opened + LATE_NS
            assert sum(idle) == side.moved("cpuidle", "idle_ns")


@here
def test_it_says_what_proc_stat_says_but_for_its_steps() -> None:
    with mover() as one:
        side = observe(one, "procstat\0cpuidle", duration=300 * MS)
        assert side.numbers("cpuidle", "cpus", Edge.CLOSE) == [CPUS]
        by_stat = STEP_NS * sum(side.moved("procstat", name) for name in ("idle", "iowait"))
        assert side.moved("cpuidle", "idle_ns") <= by_stat + 2 * STEP_NS + CPUS * LATE_NS
        assert side.moved("cpuidle", "idle_ns") >= by_stat / 2 - 2 * STEP_NS


@pytest.mark.root
def test_idle_is_the_sum_of_all_states() -> None:
    with mover(*pretend("0 1 2")) as one, mover(*pretend("")) as none:
        side, unread = observe(one, "cpuidle"), none.catalogue.meters["cpuidle"].unread
        found = side.numbers("cpuidle", "cpu_idle_ns", Edge.OPEN)
        assert found == [(3000 + 3 * (cpu + 1)) * 1000 for cpu in range(CPUS)]
        assert side.total("cpuidle", "idle_ns", Edge.OPEN) == sum(found)
    assert unread == {"cpuidle": f"0 of {CPUS} CPUs have idle states ({CPU}/cpu*/cpuidle)"}


@here
@pytest.mark.root
@pytest.mark.skipif(CPUS < 2, reason="this machine has one CPU")
@pytest.mark.parametrize("root", ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"])
def test_a_cpu_outside_the_cpuset_cannot_be_woken(root: str) -> None:
    """Its reason is said before any run. A CPU that the process merely avoids is no such one."""
    folder, unified = Path(root, "netbench-test"), Path(root, "cgroup.controllers").exists()
    if not Path(root, "cgroup.procs").exists() or root.endswith("cgroup") != unified:
        pytest.skip(f"no cpusets in {root}")
    folder.mkdir()
    try:
        if (folder / "cpuset.mems").exists():
            (folder / "cpuset.mems").write_text("0")
        (folder / "cpuset.cpus").write_text("0")
        join = f'echo $$ > {folder}/cgroup.procs; exec "$@"'
        with mover("sh", "-ec", join, "sh") as inside, mover("taskset", "-c", "0") as beside:
            why = inside.catalogue.meters["cpuidle"].row.why
            assert why.startswith(f"1 of {CPUS} CPUs are in this process's cpuset: it cannot wake")
            assert not beside.catalogue.meters["cpuidle"].row.why
    finally:
        folder.rmdir()


# The meter `softirq`, beside what /proc, ip(8) and nstat(8) say at the same time

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


def softirq_table(path: str) -> tuple[list[int], dict[str, list[int]]]:
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

    cpus, rows = softirq_table("/proc/interrupts")
    for row in rows.values():
        for cpu, number in zip(cpus, row, strict=True):
            add("interrupts", cpu, number)
    cpus, rows = softirq_table("/proc/softirqs")
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
