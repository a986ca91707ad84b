"""Kills at random instants: of the controller, movers, helpers, tools, SSH sessions and the link,
over settings that move others along. No record is lost but that in flight, no setting is left, no
record says what was not so. NETBENCH_KILLS: how many; NETBENCH_KILLS_SEED: their order.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from netbench.lab.lab import Lab, LabHost
from tests.support.labs import ON_LABS, cut, head, inside, made_lab, mend, processes, sessions_of
from tests.support.local import netbench_argv
from tests.support.running import Running, is_running, wait_for

pytestmark = [*ON_LABS, pytest.mark.slow]

KILLS = int(os.environ.get("NETBENCH_KILLS", "100"))
SEED = int(os.environ.get("NETBENCH_KILLS_SEED", "11"))
LEFT_SECONDS = 15.0  # until no setting is left
STOPPED_SECONDS = 45.0  # until a stopped worker is ended, or a stopped tool is given up (30 s)
GOES_ON_SECONDS = 90.0  # until the campaign measures again; hosts are waited for a minute
CAMPAIGN = """\
verify: off
transfer: {duration: 50ms, warmup: 10ms, sample: 0, congestion: cubic}
settings: {tso: off, sysctl.net.ipv4.tcp_sack: 0, sysctl.net.ipv6.conf.all.forwarding: 1}
tools: {mine: {client: [sh, -c, 'sleep 0.2; echo 1.0 Gb/s'],
        captures: {throughput: '(?P<rate>[0-9.]+ Gb/s)'}}}
sweep: {mtu: [1400, 9000], sysctl.net.ipv4.ip_forward: [0, 1], tool: [none, mine]}
repeat: {min: 100000, max: 100000}
meters: [rusage, procstat, softirq]
"""
OF_SSHD = (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)
SIGNALS = (*OF_SSHD, signal.SIGHUP, signal.SIGINT)
PREPARED = (  # what the kernel moves along, away from what it would make of it by itself
    "ip link add link data0 name up0 type macvlan",
    "ip link add link up0 name up1 type macvlan",
    "sysctl -qw net.ipv4.conf.all.accept_redirects=0 net.ipv6.conf.data0.forwarding=1",
)


@dataclass
class Tally:
    """What must not happen, each with the kill after which it did."""

    lost: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    told: int = 0

    def added(self) -> list[str]:
        """All of it, if something was added since this was last called."""
        found = [*self.lost, *self.left, *self.wrong, *self.stuck]
        before, self.told = self.told, len(found)
        return found if len(found) > before else []


class Campaign:
    """The campaign under fire, resumed whenever its controller was killed."""

    def __init__(self, folder: Path, here: Lab) -> None:
        self.here = here
        for host in here.hosts.values():
            for line in PREPARED:
                inside(host, line)
        self.before = state(here)
        self.words = folder / "stderr"  # a pipe that nobody reads fills up
        streams = {"stdout": subprocess.DEVNULL, "stderr": self.words.open("w")}
        self.running = Running(folder, folder / "r", head(here, "kills") + CAMPAIGN, **streams)
        self.kept: list[str] = []

    def lines(self) -> list[str]:
        """The whole lines of records.jsonl."""
        files = list(self.running.results.glob("*/[!.]*/records.jsonl"))
        text = files[0].read_text() if files else ""
        return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def measures(self) -> None:
        """Wait until it has three more good records."""
        known = len(self.lines())

        def good() -> int:
            return sum('"status":"ok"' in line for line in self.lines()[known:])

        wait_for(lambda: good() >= 3, lambda: self.running.process.poll() is None, GOES_ON_SECONDS)

    def resume(self) -> None:
        """Start it again, in the same result."""
        self.running.process.kill()
        self.running.process.wait()
        with self.words.open("a") as words:
            self.running.process = subprocess.Popen(
                netbench_argv(["resume", self.running.folder]),
                stdout=subprocess.DEVNULL,
                stderr=words,
            )

    def last_words(self) -> str:
        """What it said when it ended; "" where it still runs."""
        if self.running.process.poll() is None:
            return "no record is added"
        return f"it ended: {self.words.read_text()[-600:]}"


def state(here: Lab) -> dict[str, list[str]]:
    """All of the hosts that the settings could change."""
    links = [f"ip -d link show dev {name}" for name in ("data0", "up0", "up1")]
    offloads = ["ethtool -k data0", "ethtool -k up1"]
    questions = (*links, *offloads, r"sysctl -ae -r ^net\.ipv[46]\.")
    return {name: [inside(host, line) for line in questions] for name, host in here.hosts.items()}


def workers(host: LabHost, duty: str) -> list[int]:
    """The pids of a host's workers of this duty."""
    found = []
    for pid in processes(host, "worker-"):
        with suppress(OSError):
            if f"\0{duty}\0" in Path(f"/proc/{pid}/cmdline").read_text():
                found.append(pid)
    return found


def is_back(campaign: Campaign) -> bool:
    return not lines_left(campaign)


def lines_left(campaign: Campaign) -> list[str]:
    """Lines that are not as before."""
    return [
        f"{name}: {line}"
        for name, texts in state(campaign.here).items()
        for text, before in zip(texts, campaign.before[name], strict=True)
        for line in sorted(set(text.splitlines()) - set(before.splitlines()))
    ]


def is_gone(pid: int) -> bool:
    return not is_running(pid)


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    try:
        wait_for(condition, seconds=seconds)
    except AssertionError:
        return False
    return True


@dataclass
class Shot:
    """A kill, as it is asked for; what must not happen afterwards is added to the tally."""

    campaign: Campaign
    number: signal.Signals
    chance: random.Random
    tally: Tally
    what: str

    def host(self) -> LabHost:
        return self.chance.choice(list(self.campaign.here.hosts.values()))

    def must(self, seconds: float, condition: Callable[[], bool], left: str = "") -> None:
        if not within(seconds, condition):
            self.tally.left.append(f"{self.what}: {left or lines_left(self.campaign)}")

    def hit(self, pids: Iterable[int], number: signal.Signals | None = None) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number or self.number)


def kill_controller(shot: Shot) -> None:
    process = shot.campaign.running.process
    process.send_signal(shot.number)
    shot.must(LEFT_SECONDS, lambda: is_back(shot.campaign))
    if shot.number is signal.SIGSTOP:
        process.send_signal(signal.SIGCONT)
    else:
        shot.campaign.resume()


def kill_worker(duty: str) -> Callable[[Shot], None]:
    def kill(shot: Shot) -> None:
        host = shot.host()
        pids = list[int]()  # one may be on its way, or about to go
        wait_for(lambda: pids.extend(workers(host, duty)) or pids, seconds=GOES_ON_SECONDS)
        shot.hit([pid := shot.chance.choice(pids)])
        shot.must(STOPPED_SECONDS, lambda: is_gone(pid), f"the process {pid} is still there")

    return kill


def kill_tool(shot: Shot) -> None:
    wait_for(lambda: tools(shot.campaign), seconds=GOES_ON_SECONDS)
    shot.hit(tools(shot.campaign))


def tools(campaign: Campaign) -> list[int]:
    return [pid for host in campaign.here.hosts.values() for pid in processes(host, "sleep")]


def kill_sessions(shot: Shot) -> None:
    host = shot.host()
    pids = sessions_of(host)
    ours = [*workers(host, "mover"), *workers(host, "helper")]
    shot.hit(pids)
    shot.must(LEFT_SECONDS, lambda: all(map(is_gone, ours)), "its workers are still there")
    shot.hit(pids, signal.SIGCONT)


def cut_link(shot: Shot) -> None:
    seconds = shot.chance.choice((1.0, 5.0, 12.0, 20.0))
    began = time.monotonic()
    cut(shot.campaign.here)
    try:
        if seconds > 10:
            shot.must(LEFT_SECONDS, lambda: is_back(shot.campaign), f"for {seconds} s")
        time.sleep(max(0.0, began + seconds - time.monotonic()))  # how long it is cut
    finally:
        mend(shot.campaign.here)


TARGETS: Mapping[str, Callable[[Shot], None]] = {
    "controller": kill_controller,
    "mover": kill_worker("mover"),
    "helper": kill_worker("helper"),
    "tool": kill_tool,
    "sshd": kill_sessions,
    "link": cut_link,
}


def wrong_labels(record: Mapping[str, Any]) -> Iterator[str]:
    """What a record says that was not so: of its settings, and of its MTU by what was counted."""
    is_tool = record["factors"]["tool"] != "none"  # which is killed, or what guards it
    if record["status"] not in ("ok", "interrupted", *(["failed"] if is_tool else [])):
        yield f"{record['status']}: {record['reason']}"
    if record["status"] != "ok":
        return
    wanted = {"tso": "off", "sysctl.net.ipv4.tcp_sack": "0"} | {
        key: record["factors"][key] for key in ("mtu", "sysctl.net.ipv4.ip_forward")
    }
    for side in ("sender", "receiver"):
        notes = record["settings"][side]
        read = {key: notes[key]["read"] for key in wanted}
        if read != wanted or any("after" in notes[key] for key in wanted):
            yield f"{side}: settings {notes}"
    if is_tool:
        return
    # By the link: what is in a socket's buffer has arrived and was not read yet, or the reverse.
    counts = record["receiver"]["softirq"]
    got, packets = (
        counts[name][1] - counts[name][0] for name in ("link_rx_bytes", "link_rx_packets")
    )
    if packets and (got / packets < 2000) != (wanted["mtu"] == "1400"):
        yield f"{got} bytes in {packets} packets with mtu {wanted['mtu']}"


def check_records(campaign: Campaign, tally: Tally, what: str) -> None:
    lines = campaign.lines()
    if lines[: len(campaign.kept)] != campaign.kept:
        tally.lost.append(what)
    records = [json.loads(line) for line in lines]
    if [record["run"] for record in records] != list(range(1, len(records) + 1)):
        tally.lost.append(f"{what}: runs are not numbered one after the other")
    for record in records[len(campaign.kept) :]:
        tally.wrong += [f"{what}: run {record['run']}: {one}" for one in wrong_labels(record)]
    campaign.kept = lines


@pytest.fixture
def lab() -> Iterator[Lab]:
    with made_lab(f"k{os.getpid()}") as made:
        yield made


@pytest.mark.timeout(3600)
def test_kills_lose_no_record_leave_no_setting_and_make_no_label_wrong(
    tmp_path: Path, lab: Lab
) -> None:
    chance, tally, done = random.Random(SEED), Tally(), Counter[str]()
    print(f"{KILLS} kills, seed {SEED}")
    campaign = Campaign(tmp_path, lab)
    began = time.monotonic()
    try:
        campaign.measures()
        for number in range(1, KILLS + 1):
            target = chance.choice(list(TARGETS))
            sort = chance.choice(OF_SSHD if target == "sshd" else SIGNALS)
            word = "down" if target == "link" else sort.name
            what = f"kill {number}, {target} {word}"
            time.sleep(chance.random() * 0.3)  # the instant of the kill is what is random
            print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)
            done[f"{target} {word}"] += 1
            TARGETS[target](Shot(campaign, sort, chance, tally, what))
            try:
                campaign.measures()
            except AssertionError:
                tally.stuck.append(f"{what}: {campaign.last_words()}")
                campaign.resume()
                campaign.measures()
            check_records(campaign, tally, what)
            for one in tally.added():
                print(f"         {one}", flush=True)
        campaign.running.process.send_signal(signal.SIGINT)
        assert campaign.running.process.wait(60) == 130, campaign.last_words()
        check_records(campaign, tally, "the end")
        assert not lines_left(campaign), (
            f"{lines_left(campaign)}: {campaign.words.read_text()[-2000:]}"
        )
    finally:
        campaign.running.process.kill()
        campaign.running.process.wait()
    print(f"{len(campaign.kept)} records, {time.monotonic() - began:.0f} s, {dict(done)}")
    assert (tally.lost, tally.left, tally.wrong, tally.stuck) == ([], [], [], [])
