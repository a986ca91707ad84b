"""The noise monitor: counters against independent tools, real disturbances, what check warns of."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign
from netbench.base.errors import StoreError
from netbench.base.json_lines import to_line
from netbench.lab import Lab
from netbench.model import Campaign, Host
from netbench.read.cautions.rule import Caution
from netbench.read.cells import cells_of
from netbench.read.load import load
from netbench.read.noise_labels import TCP_PAGES, signs
from netbench.report import text
from netbench.report.build import build
from netbench.report.source import Source
from netbench.result.files import parse_noise
from netbench.result.record import Record
from netbench.run import conductor, host_load, noise
from netbench.run.check import check
from netbench.run.host_facts import read_all
from netbench.run.noise import NoiseMonitor
from netbench.run.progress import Progress
from netbench.run.worker_pool import WorkerPool
from tests.support.labs import made_lab, needs_lab
from tests.support.local import FAR, NEAR, out
from tests.support.needs import needs
from tests.support.sshd import free_port
from tests.support.synthetic import Synth


def one_host(interface: str = "lo", names: Sequence[str] = ("here",)) -> Campaign:
    """A campaign on this machine, through that interface."""
    hosts = ", ".join(f"{name}: local" for name in names)
    made = campaign.parse(f"netbench: 1\nname: n\nhosts: {{{hosts}}}\n", "n.yaml")
    placed = {name: host._replace(interface=interface) for name, host in made.hosts.items()}
    return made._replace(hosts=placed)


@contextmanager
def monitored(
    made: Campaign, keep: Callable[[Any], None] | None = None
) -> Iterator[tuple[WorkerPool, NoiseMonitor, list[dict[str, Any]]]]:
    """Workers, their monitor, and the entries that it makes of blocks."""
    entries: list[dict[str, Any]] = []
    with WorkerPool(made) as pool:
        pool.start_all()
        yield pool, NoiseMonitor(made, pool, keep or entries.append), entries


@contextmanager
def a_block(made: Campaign, block: int = 0) -> Iterator[list[dict[str, Any]]]:
    """Readings around what the test does; the entries are there afterwards."""
    with monitored(made) as (_, monitor, entries), monitor.around(block):
        yield entries


def refused_datagram() -> None:
    """A datagram to a port without a listener: ICMP says so."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", ("127.0.0.1", free_port()))


@contextmanager
def busy() -> Iterator[None]:
    """Something else that uses a CPU."""
    argv = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


# --- parsers, against other tools ---


def test_protocols_are_what_nstat_says() -> None:
    refused_datagram()
    snmp, netstat = (Path("/proc/net", name).read_text() for name in ("snmp", "netstat"))
    read = noise.protocols(snmp) | noise.protocols(netstat)
    said = json.loads(out("nstat", "-a", "-z", "-s", "-j"))["kernel"]
    assert read["Icmp.InDestUnreachs"] >= 1
    watched = "Tcp.RetransSegs TcpExt.TCPTimeouts TcpExt.ListenDrops Udp.RcvbufErrors"
    assert {*watched.split(), "Ip.InDiscards"} <= set(read)
    usual = {"Tcp.InSegs", "Tcp.OutRsts", "Tcp.CurrEstab", "TcpExt.TCPLossProbes", "TcpExt.TW"}
    assert not usual & set(read), "what moves while all is well"
    assert {name.replace(".", "", 1): value for name, value in read.items()}.items() <= said.items()


def test_interface_and_device_are_what_ip_and_ethtool_say(interface: str) -> None:
    read = noise.interface(Path("/proc/self/net/dev").read_text(), interface)
    said = json.loads(out("ip", "-s", "-j", "link", "show", interface))[0]["stats64"]
    for side in ("rx", "tx"):
        assert {read[f"{interface}.{side}_{key}"] for key in ("errors",)} == {said[side]["errors"]}
        assert read[f"{interface}.{side}_dropped"] == said[side]["dropped"]
    own = noise.device(out("ethtool", "-S", interface).partition("\n")[2], interface)
    assert f"{interface}.ethtool rx_queue_0_drops" in own
    assert not any("packets" in name or "peer" in name for name in own)
    with pytest.raises(ValueError, match="no eth99"):
        noise.interface(Path("/proc/self/net/dev").read_text(), "eth99")


def test_states_processes_queues_and_a_devices_bad_news() -> None:
    states = noise.cpu_states(Path("/proc/stat").read_text())
    assert set(states) == {"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}
    assert noise.process(Path("/proc/self/stat").read_text())[0] == os.getpid()
    line = "7 (a) b) (c) S " + " ".join(map(str, range(4, 40)))
    assert noise.process(line) == (7, 14 + 15 + 16 + 17)
    assert noise.softnet("00ff 0000000a 1\n00ff 00000001 1\n") == {"softnet.dropped": 11}
    bad = (
        "rx_pause tx_pause_frames rx_crc_errors rx_discards_phy rx_out_of_buffer rx_missed rx_fifo"
    )
    said = "".join(f"{name}: 7\n" for name in (*bad.split(), "rx_packets", "tx_bytes"))
    assert noise.device(said, "eth1") == {f"eth1.ethtool {name}": 7 for name in bad.split()}


# --- readings around a block ---


def test_a_block_has_what_moved_in_it_with_both_readings_of_each_kernel() -> None:
    with a_block(one_host()) as quiet:
        pass
    (entry,) = quiet
    moved = [b - a for name, (a, b) in entry["counters"].items() if name not in TCP_PAGES]
    assert moved == [0, 0], "bytes"
    assert (entry["block"], entry["host"]) == (0, "here")
    assert entry["ns"][0] < entry["ns"][1]
    assert entry["own"][0] <= entry["own"][1]
    missing = {name for name in entry.get("missing", {}) if name.startswith("/proc")}
    assert missing <= {noise.TCP_MEM}, "a namespace has none"
    with a_block(one_host("lo", ("a", "b")), 3) as entries:
        refused_datagram()
    first, second = entries
    assert (first["kernel"], first["block"]) == (["a", "b"], 3)
    before, after = first["counters"]["Icmp.InDestUnreachs"]
    assert after == before + 1
    assert after == json.loads(out("nstat", "-a", "-z", "-s", "-j"))["kernel"]["IcmpInDestUnreachs"]
    assert "cpu" not in second
    assert second["counters"] == {}, "one network namespace, one reading"


def test_load_from_others_is_seen_and_our_own_is_not() -> None:
    with monitored(one_host()) as (pool, monitor, entries):
        with busy(), monitor.around(0):
            end = time.process_time() + 0.5
            while time.process_time() < end:
                pass
        ticks = pool.worker("here", "sender").hello.clock_ticks
    edges, own = entries[0]["cpu"], entries[0]["own"]
    used = sum(edges[name][1] - edges[name][0] for name in ("user", "nice", "system"))
    assert own[1] - own[0] >= 0.5 * ticks * 0.8, "what this process used is ours"
    assert used - (own[1] - own[0]) >= 0.1 * ticks, "what the other one used is not"
    entry = parse_noise(to_line({"time": "2026-03-01T13:00:00Z", **entries[0]}), "test")
    (sign,) = [sign for sign in signs(entry, ticks) if sign.kind == "load"]
    assert 0.1 < sign.amount < (os.cpu_count() or 1) + 0.1


def test_a_worker_that_is_lost_or_replaced_ends_nothing_and_is_no_load() -> None:
    with monitored(one_host()) as (pool, monitor, entries):
        with monitor.around(0):
            os.kill(pool.worker("here", "sender").hello.pid, signal.SIGKILL)
        with monitor.around(1):
            pool.dismiss("here", "sender")
            pool.worker("here", "sender")
        with monitor.around(2):
            pass
        with monitor.around(3):
            pool.dismiss("here", "receiver")
            pool.worker("here", "receiver")
    assert "gone" in entries[0]["missing"]["all"]
    assert entries[1]["missing"] == {"all": "nothing was read before the block"}
    assert "own" in entries[2]
    assert "cpu" in entries[3]
    assert "own" not in entries[3]


@pytest.mark.parametrize("why", ["stopped", "lost", "no room"])
def test_a_block_that_is_cut_short_ends_for_its_own_reason(why: str) -> None:
    """And has an entry of what it was, whatever its hosts have to say then."""

    def keep(entry: Any) -> None:
        raise StoreError("no space left on device")

    def cut_short(pool: WorkerPool, monitor: NoiseMonitor) -> None:
        with monitor.around(4):
            refused_datagram()
            if why == "lost":
                os.kill(pool.worker("here", "sender").hello.pid, signal.SIGKILL)
            raise KeyboardInterrupt

    full = keep if why == "no room" else None
    with monitored(one_host(), full) as (pool, monitor, entries), pytest.raises(KeyboardInterrupt):
        cut_short(pool, monitor)
    assert [entry["block"] for entry in entries] == ([] if why == "no room" else [4])
    if why == "stopped":
        assert "Icmp.InDestUnreachs" in entries[0]["counters"]
    elif why == "lost":
        assert "gone" in entries[0]["missing"]["all"]


# --- a campaign, and what its report says ---


TEXT = """\
netbench: 1
name: noisy
hosts: {here: local}
transfer: {duration: 60ms, warmup: 20ms, congestion: cubic, rate: 100Mb/s}
repeat: {min: 4, max: 4}
"""


class Mischief(Progress):
    """Disturbs the second run."""

    def ran(self, record: Record, *_: Any) -> None:
        if record.run == 2:
            refused_datagram()


def noises(folder: Path) -> list[Caution]:
    return [caution for caution in Source.of(folder).cautions if caution.kind == "noise"]


def test_the_report_names_what_moved_where_and_labels_the_runs(tmp_path: Path) -> None:
    ended = conductor.start(campaign.parse(TEXT, "n.yaml"), tmp_path, Mischief())
    lines = (ended.path / "samples" / "noise.jsonl").read_text().splitlines()
    assert [json.loads(line)["block"] for line in lines] == [0, 1, 2, 3]
    (caution,) = [one for one in noises(ended.path) if "Icmp.InDestUnreachs" in one.evidence]
    # A busy machine may lose segments in other blocks too.
    assert re.fullmatch(
        r"Segments or packets were lost, late or refused on here in"
        r" (block 1; the 1 run there is labelled, and counts"
        r"|\d blocks \([\d, ]*\b1\b[\d, ]*\); the \d runs there are labelled, and count)\.",
        caution.what,
    )
    assert caution.where == ("here",)
    runs = load(ended.path).runs
    labelled = ["Icmp.InDestUnreachs 1" in label for label in runs["noise"]]
    assert labelled == [False, True, False, False]
    assert cells_of(load(ended.path))[0].n == 4, "never dropped"
    assert "Icmp.InDestUnreachs 1" in " ".join(text.render(build(ended.path)).split())


# --- what entries mean ---


def entry(block: int, host: str = "snd", **more: Any) -> dict[str, Any]:
    own = {"time": "2026-03-01T13:00:00.000000Z", "ns": [0, 10**9], "counters": {}}
    return {"block": block, "host": host} | own | more


def written(tmp_path: Path, entries: list[dict[str, Any]]) -> list[Caution]:
    folder = Synth(pairs=("snd>rcv",), runs=5).write(tmp_path / "r")
    lines = "".join(json.dumps(one) + "\n" for one in entries)
    (folder / "samples" / "noise.jsonl").write_text(lines)
    return noises(folder)


def cpus(user: int, steal: int, own: int) -> dict[str, Any]:
    """CPU time of a block, in ticks."""
    states = {"user": [0, user], "steal": [0, steal]}
    return {"cpu": states, "own": [0, own], "kernel": ["snd"]}


KINDS: dict[str, dict[str, Any]] = {
    "others 0.50 CPUs in block 2": cpus(80, 0, 30),
    "steal 0.09 CPUs in block 2": cpus(80, 9, 80),
    "eth1.carrier_changes 2": {"counters": {"eth1.carrier_changes": [1, 3]}},
    "throttle.core 2": {"counters": {"throttle.core": [1, 3]}},
    "TCP's pages 9 in block 2": {"counters": {"TCP.pages": [9, 8], "TCP.few": [8, 8]}},
    "eth1.ethtool rx_pause 4": {"counters": {"eth1.ethtool rx_pause": [5, 9]}},
}


def test_each_kind_of_disturbance_is_named(tmp_path: Path) -> None:
    for said, more in KINDS.items():
        (caution,) = written(tmp_path / said, [entry(2, **more)])
        assert caution.evidence == said
        assert caution.remedy
        assert "the 4 runs" in caution.what


def test_counters_are_summed_over_blocks_and_the_worst_is_named(tmp_path: Path) -> None:
    moved = [
        entry(0, counters={"eth1.rx_dropped": [0, 40]}),
        entry(3, counters={"eth1.rx_dropped": [40, 120], "softnet.dropped": [0, 1]}),
    ]
    (caution,) = written(tmp_path, [*moved, entry(1)])
    what = "Packets were dropped, paused or damaged on snd in 2 blocks (0, 3); the 8 runs there are"
    assert caution.what == f"{what} labelled, and count."
    assert caution.evidence == "eth1.rx_dropped 120, most in block 3 (80); softnet.dropped 1"


def test_what_is_usual_is_no_disturbance(tmp_path: Path) -> None:
    small = cpus(82, 1, 80)
    small["cpu"]["softirq"] = [0, 90]
    of_all = {
        "eth1.rx_bytes": [5, 10**9],
        "eth1.tx_bytes": [5, 9],
        "TCP.pages": [7, 8],
        "TCP.few": [8, 8],
    }
    assert written(tmp_path, [entry(0, **small), entry(1, counters=of_all)]) == []


@pytest.mark.parametrize(
    ("share", "seconds"), [(1.05, 90), (0.96, 90), (0.94, 90), (0.94, 9), (0.7, 9), (0, 9), (0, 1)]
)
def test_data_that_were_not_seen_are_told(tmp_path: Path, share: float, seconds: int) -> None:
    """Not of runs in a block that nobody read the end of."""
    folder = Synth(pairs=("snd>rcv",), runs=9).write(tmp_path / "r")
    records = list(map(json.loads, (folder / "records.jsonl").read_text().splitlines()))
    end = datetime.fromisoformat(records[-1]["started"]) + timedelta(seconds=0.5)
    begin = (end - timedelta(seconds=seconds)).isoformat()
    known = [r for r in records if r["started"] > begin]
    assert len(known) < len(records)
    moved = sum(sum(r["sender"]["flow"]["bytes"][1]) for r in known)
    read = {"time": f"{end.isoformat()[:26]}Z", "ns": [0, seconds * 10**9]}
    anew = entry(0, counters={"eth1.tx_bytes": [10**15, 0]})
    line = entry(0, counters={"eth1.tx_bytes": [7, 7 + int(moved * share)]}, **read)
    (folder / "samples" / "noise.jsonl").write_text(f"{json.dumps(anew)}\n{json.dumps(line)}\n")
    cautions = [c for c in Source.of(folder).cautions if c.kind == "other_way"]
    is_told = share < {90: 0.95, 9: 1 - 2 / 9, 1: 0}[seconds]
    assert [c.where for c in cautions] == [("snd",)] * is_told
    assert all(c.evidence.endswith(f" GB, of which eth1 saw {share:.0%}") for c in cautions)


def test_what_is_of_a_kernel_concerns_all_its_hosts(tmp_path: Path) -> None:
    both = {"kernel": ["snd", "rcv"]}
    full = {"counters": {"softnet.dropped": [0, 2], "eth1.rx_dropped": [0, 1]}}
    entries = [entry(2, **cpus(80, 0, 30) | both), entry(3, **full | both)]
    busy_, queued, dropped = written(tmp_path, entries)
    assert (busy_.where, queued.where) == (("rcv", "snd"), ("rcv", "snd"))
    assert (dropped.where, dropped.evidence) == (("snd",), "eth1.rx_dropped 1")


# --- check ---


def seen(interface: str, look: float = 0.0, **facts: str) -> list[str]:
    made = one_host(interface)
    with WorkerPool(made) as pool:
        here = read_all(made, pool)["here"]
        entries = {"here": replace(here, facts={**here.facts, **facts})}
        with host_load.looking(made, pool, look) as blocks:
            pass
        return [one.what for one in host_load.warnings(pool, entries, blocks)]


def test_check_sees_what_else_uses_the_cpus() -> None:
    made = one_host()
    with WorkerPool(made) as pool, busy():
        found = check(made, pool, look=host_load.LOOK_SECONDS)
    said = [one for one in found if one.what.startswith("Something else used CPUs within ")]
    assert [(one.level, one.host) for one in said] == [("warning", "here")]
    assert all(finding.remedy for finding in found if finding.level == "warning")


def test_check_sees_a_link_that_is_down(interface: str) -> None:
    down = f"{NEAR} is not up (no carrier): no run will get through"
    assert down not in seen(interface)
    out("ip", "link", "set", FAR, "down")
    assert down in seen(interface)
    out("ip", "link", "set", FAR, "up")


def test_check_warns_of_what_facts_tell() -> None:
    told = {
        "the frequency governor is powersave": ("governor", "powersave", "performance"),
        "turbo is on": ("turbo", "on", "off"),
        "irqbalance is running": ("irqbalance", "running", "not running"),
        "a cgroup lets netbench use 0.6 CPUs": ("cpu_quota", "0.6", "none"),
    }
    bad = seen("lo", **{fact: level for fact, level, _ in told.values()})
    good = seen("lo", **{fact: level for fact, _, level in told.values()})
    for said in told:
        assert any(said in what for what in bad)
        assert not any(said in what for what in good)


@pytest.fixture
@needs("root", "netns")
def lab() -> Iterator[Lab]:
    """Two hosts in namespaces, reached over SSH."""
    with made_lab(f"n{os.getpid() % 100000}", "ab") as made:
        yield made


@needs_lab
def test_a_link_that_flaps_is_seen_at_both_its_ends(lab: Lab) -> None:
    made = campaign.parse("netbench: 1\nname: n\nhosts: {a: local, b: local}\n", "n.yaml")
    hosts = {
        name: Host(name, h.ssh, h.address, h.interface, str(lab.ssh_config))
        for name, h in lab.hosts.items()
    }
    data = lab.hosts["a"]
    with a_block(made._replace(hosts=hosts)) as entries:
        for state in ("down", "up"):
            out("ip", "-n", data.namespace, "link", "set", data.interface, state)
    flaps = [entry["counters"][f"{data.interface}.carrier_changes"] for entry in entries]
    assert [after - before for before, after in flaps] == [2, 2]
    assert [entry["host"] for entry in entries if "cpu" in entry] == ["a"], "one kernel"
    assert "TCP.pages" in entries[0]["counters"]
