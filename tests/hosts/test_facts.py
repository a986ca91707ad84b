"""Facts against independent tools, the reading of them, and runs whose hosts changed."""

from __future__ import annotations

import getpass
import json
import os
import platform
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from netbench import campaign
from netbench.base.errors import EngineError
from netbench.facts import comparison, cpu, network, storage, system
from netbench.facts.fact import Fact, FactSource
from netbench.facts.fact_text import choice, fields, not_zero
from netbench.facts.network import link_speed
from netbench.facts.registry import BY_NAME
from netbench.hosts.probe import Question, read_facts
from netbench.model import Campaign
from netbench.plan.plan import Plan
from netbench.read.accounts import ACCOUNTS
from netbench.read.cautions.rule import Caution
from netbench.read.cells import cells_of
from netbench.read.load import load
from netbench.read.result import Result
from netbench.report.source import Source
from netbench.result import codec
from netbench.result.files import HostEntry
from netbench.result.files import read_facts as read_facts_file
from netbench.result.record import Record as RunRecord
from netbench.result.record import SideCounters, parse_record
from netbench.result.store import now
from netbench.run import conductor, fact_watch
from netbench.run.host_facts import read_all, read_host
from netbench.run.ledger import Ledger
from netbench.run.progress import Progress
from netbench.run.recorder import Recorder
from netbench.run.worker_pool import WorkerPool
from tests.support.local import ADDRESS, NEAR, PEER, out, ran
from tests.support.running import stored_records
from tests.support.synthetic import Synth, failed

# not everywhere a tmpfs of its own
SHM = out("findmnt", "-n", "-o", "FSTYPE", "-T", "/dev/shm").split()[-1]


# --- against other tools ---


TEXT = """\
netbench: 1
name: f
hosts: {snd: local, rcv: local}
transfer: {source: {file: /etc/passwd}, sink: {file: /dev/shm/netbench-facts}, send: sendfile, receive: splice}
"""


@pytest.fixture(scope="module")
def entries(interface: str) -> dict[str, HostEntry]:
    """Entries of facts.json of two hosts on this machine whose data address is a veth's."""
    out("ip", "link", "set", interface, "mtu", "1400")
    made = campaign.parse(TEXT, "f.yaml")
    hosts = {
        "snd": made.hosts["snd"]._replace(address=ADDRESS),
        "rcv": made.hosts["rcv"]._replace(address=PEER, interface=interface),
    }
    placed = made._replace(hosts=hosts)
    with WorkerPool(placed) as pool:
        return read_all(placed, pool)


@pytest.fixture
def found(entries: dict[str, HostEntry]) -> dict[str, str]:
    own = ("engine", "layout", "tick_rate")
    return {name: fact for name, fact in entries["snd"].known.items() if name not in own}


def lscpu() -> dict[str, str]:
    rows = json.loads(out("lscpu", "-J"))["lscpu"]
    return {row["field"].rstrip(":"): row["data"] for row in rows}


def test_kernel_and_cpus_are_what_uname_and_lscpu_say(found: dict[str, str]) -> None:
    said = lscpu()
    assert found["kernel"] == platform.release()
    assert found["cpu_model"] == said["Model name"]
    assert found["sockets"] == said["Socket(s)"]
    assert int(found["cores"]) == int(said["Core(s) per socket"]) * int(said["Socket(s)"])
    assert found["smt"] == ("on" if int(said["Thread(s) per core"]) > 1 else "off")
    assert found["memory"] == fields(Path("/proc/meminfo").read_text())["MemTotal"]
    clocks = Path("/sys/devices/system/clocksource/clocksource0/available_clocksource")
    assert found["clock_source"] in clocks.read_text()


def test_mitigations_are_what_lscpu_says(found: dict[str, str]) -> None:
    said = {name: state for name, state in lscpu().items() if name.startswith("Vulnerability ")}
    affected = [state for state in said.values() if state != "Not affected"]
    rest = f"; {len(said) - len(affected)} more do not affect it"
    assert rest in found["mitigations"] or not affected
    for state in affected:
        assert state.removeprefix("Mitigation; ").split(";")[0] in found["mitigations"]


def test_the_smallest_quota_of_all_groups_counts(found: dict[str, str]) -> None:
    text = "150000 100000\n\n-1 100000\nmax 100000\n60000 100000\n"
    assert (cpu.cpu_quota(text), found["cpu_quota"]) == ("0.6", "none")


def test_idle_states_are_told_with_their_exit_latency(found: dict[str, str]) -> None:
    """Of text, since a guest of most clouds has none; here it is as sysfs says, or missing."""
    text = "state0/name:POLL\nstate1/name:C1_ACPI\nstate0/latency:0\nstate1/latency:33\n"
    text += "state0/disable:0\nstate1/disable:1\n"
    assert cpu.idle_states(text) == "POLL 0 µs, C1_ACPI 33 µs (off)"
    here = Path("/sys/devices/system/cpu/cpu0/cpuidle").glob("state*/name")
    names = {file.read_text().strip() for file in here}
    told = found.get("idle_states", "").removesuffix(" (off)").replace(" (off),", ",")
    assert {state.rsplit(maxsplit=2)[0] for state in told.split(", ") if state} == names


def test_the_interface_is_what_ethtool_ip_and_tc_say(found: dict[str, str], interface: str) -> None:
    driver = fields(out("ethtool", "-i", interface))
    assert "speed" not in found, "a veth has none, though it says 10 Gb/s"
    assert (found["interface"], found["nic_driver"]) == (interface, driver["driver"])
    assert found["duplex"] == fields(out("ethtool", interface))["Duplex"].lower()
    assert found["mtu"] == "1400"
    state = fields(out("ethtool", "-k", interface))
    on, off = (part.partition(": ")[2].split() for part in found["features"].split("; "))
    assert "tx-tcp-segmentation" in on
    both = [name for name in (*on, *off) if name in state]  # the tool has names of its own for some
    assert len(both) > 10
    assert {*on} & {*both} == {name for name in both if state[name].startswith("on")}
    assert {*off} & {*both} == {name for name in both if state[name] == "off"}, "and not fixed"
    assert found["channels"] == "rx 4 of 4, tx 4 of 4"
    assert found["route"] == json.loads(out("ip", "-j", "route", "get", PEER))[0]["dev"]
    qdiscs = json.loads(out("tc", "-j", "qdisc", "show", "dev", interface))
    assert found["qdisc"] == qdiscs[0]["kind"]


MOUNTS = """\
20 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
21 20 0:5 / /srv rw,noatime shared:3 - xfs /dev/nvme0n1 rw,attr2
22 20 0:6 / /srv/my\\040data ro - cifs //server/share rw,username=anna,vers=3.0
23 20 0:7 / /srv rw - tmpfs tmpfs rw,size=1k
"""
# A reader, what a host says, and the fact: nothing of it may identify a person.
PARSED: list[tuple[Callable[[str], str], str, str]] = [
    # the last and longest mount holds a path
    (storage.mounted, f"/srv/my data/x\n{MOUNTS}", "cifs: ro,rw,vers=3.0"),
    (storage.mounted, f"/srv\n{MOUNTS}", "tmpfs: rw,size=1k"),
    (storage.mounted, f"/srvx\n{MOUNTS}", "ext4 on /dev/sda1: rw,relatime"),
    (
        system.command_line,
        "quiet systemd.machine_id=beef0 rd.iscsi.password=geheim luks.key=/k isolcpus=2-3",
        "quiet systemd.machine_id=(hidden) rd.iscsi.password=(hidden) luks.key=(hidden) isolcpus=2-3",
    ),
    (
        network.of_maximum,
        "rx: 256\ntx: 0\nrx_max: 4096\ntx_max: 512\nrx_mini: 0\nrx_mini_max: 0\n",
        "rx 256 of 4096, tx 0 of 512",
    ),
    (not_zero, "rx_usecs: 3\ntx_usecs: 0\nadaptive_rx: 1\n", "rx_usecs 3, adaptive_rx 1"),
    (network.qdiscs, "root fq_codel default \n", "fq_codel"),
    (storage.mounted, "/f\n1 0 0:1 / / rw - overlay o rw,dir=/u/carol,name=carol\n", "overlay: rw"),
    (link_speed, "driver: mlx5_core\nspeed: 100000", "100000"),
    (
        system.engine_hash,
        f"0-1 r-xp 0 0:0 1 /home/u/.cache/netbench/worker-{'ab' * 32}\n",
        "ab" * 8,
    ),
]


@pytest.mark.parametrize(("parse", "printed", "fact"), PARSED)
def test_what_hosts_say_is_a_fact(parse: Callable[[str], str], printed: str, fact: str) -> None:
    assert parse(printed) == fact


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/self/status", "/dev/shm"])
def test_mounts_are_what_findmnt_says(path: str) -> None:
    said = storage.mounted(f"{path}\n{Path('/proc/self/mountinfo').read_text()}")
    *_, line = out("findmnt", "-n", "-o", "FSTYPE,OPTIONS", "-T", path).splitlines()
    kind, options = line.split()
    assert said.startswith(kind)
    assert set(said.partition(": ")[2].split(",")) == {
        e for e in options.split(",") if "/" not in e
    }


def test_what_a_host_has_is_known_or_why_not(entries: dict[str, HostEntry]) -> None:
    """Source and sink are facts of who has them; the engine is known by its content."""
    sender, receiver = entries["snd"], entries["rcv"]
    assert {"source_mount", "sink_mount"} & set(sender.facts) == {"source_mount"}
    assert {"source_mount", "sink_mount"} & set(receiver.facts) == {"sink_mount"}
    assert str(receiver.facts["sink_mount"]).startswith(f"{SHM}: ")
    files = list((Path(campaign.__file__).parents[1] / "engine").glob("worker-*"))
    assert sender.facts["engine_hash"] in {out("sha256sum", str(file))[:16] for file in files}
    assert set(sender.missing) == {name for name, value in sender.facts.items() if value is None}
    assert all(sender.missing.values())
    assert NEAR in sender.missing["rings"]


def test_nobody_is_named(entries: dict[str, HostEntry]) -> None:
    said = json.dumps(codec.to_json(entries))
    machine = Path("/etc/machine-id")
    identity = machine.read_text().strip() if machine.exists() else ""
    for secret in (identity, str(Path.home()), getpass.getuser()):
        assert not secret or f" {secret}" not in said
        assert len(secret) < 30 or secret not in said


# --- parsers ---


def test_queueing_options_show_when_they_change() -> None:
    assert network.qdiscs("root tbf 1: 0a0b\n") != network.qdiscs("root tbf 1: 0a0c\n")
    queues = network.qdiscs(":1 fq default 01\n:2 fq default 01\nroot mq default \n")
    assert queues.startswith("mq, fq (options ")
    assert queues.endswith("x2")


def test_sockets_and_cores_where_some_cores_have_two_threads() -> None:
    """As /proc/cpuinfo has it, and as grep(1) does, without empty lines."""
    places = [(0, 0), (0, 0), (0, 1), (1, 0), (1, 1)]
    for separator in ("\n", ""):
        said = separator.join(
            f"processor\t: {i}\nphysical id\t: {s}\ncore id\t\t: {c}\n"
            for i, (s, c) in enumerate(places)
        )
        assert (cpu.sockets(said), cpu.cores(said)) == ("2", "4")
    with pytest.raises(ValueError, match="no CPU topology"):
        cpu.cores("processor : 0\nCPU part : 0xd0c\n")


# --- reading ---


class Told:
    """Answers from a table; remembers what it was asked, request by request."""

    def __init__(self, answers: Mapping[Question, str]) -> None:
        self.answers = answers
        self.asked: list[list[Question]] = []

    def __call__(self, questions: Sequence[Question]) -> list[str | EngineError]:
        self.asked.append(list(questions))
        none = "No such file or directory"
        return [
            self.answers.get(q, EngineError(1, 2, "read", f"{q[1][0]}: {none}")) for q in questions
        ]


def test_a_way_that_fails_gives_way_to_the_next_and_all_reasons_are_kept() -> None:
    ways = (("/a", "0"), ("/b", "1"))
    sources = (FactSource("file", (path,), choice({word: "on"})) for path, word in ways)
    fact = Fact("turbo", "", tuple(sources))
    assert read_facts(Told({("file", ("/b",)): "1\n"}), {}, [fact]) == ({"turbo": "on"}, {})
    known, missing = read_facts(Told({("file", ("/b",)): "7\n"}), {}, [fact])
    assert known == {"turbo": None}
    assert missing == {"turbo": "/a: No such file or directory; /b: unexpected value '7'"}


@pytest.mark.root
def test_a_running_program_is_found_by_its_name(tmp_path: Path) -> None:
    *script, name = BY_NAME["irqbalance"].sources[0].target
    assert name == "irqbalance"
    program = tmp_path / f"nb{os.getpid()}"  # as no other process is called

    def state() -> str:
        env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        return ran([*script, program.name], env=env, check=True).stdout

    assert state() == "not installed\n"
    shutil.copy("/bin/sleep", program)
    assert state() == "not running\n"
    with subprocess.Popen([program, "60"]) as running:
        try:
            assert state() == "running\n"
        finally:
            running.kill()
    assert state() == "not running\n"


def test_files_of_one_host_on_several_file_systems_are_told_together() -> None:
    """Each question is asked once, and all at a time."""
    paths = ["/srv/a", "/srv/b", "/x"]
    script = ("sh", "-c", storage.MOUNTS, "sh")
    answers: dict[Question, str] = {
        ("exec", (*script, path)): f"{path}\n{MOUNTS}" for path in paths
    }
    host = Told(answers)
    of_host = {"interface": ["eth1"], "peer": ["10.0.0.2"], "sink": [], "source": paths}
    known, _ = read_facts(host, of_host)
    both = "tmpfs: rw,size=1k and ext4 on /dev/sda1: rw,relatime"
    assert known["source_mount"] == both
    (asked,) = host.asked
    assert len(asked) == len(set(asked))


def test_a_link_in_a_path_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there").symlink_to("/dev/shm")
    made = campaign.parse(TEXT.replace("/etc/passwd", f"{tmp_path}/there/netbench-no"), "f.yaml")
    with WorkerPool(made) as pool:
        assert str(read_host(made, pool, "snd").facts["source_mount"]).startswith(f"{SHM}: ")


# --- what must match ---


def test_differences_are_of_what_must_match_and_is_known() -> None:
    same = {"tcp_sack": "1"}
    a = {"kernel": "6.1", "load": "0.1", "memory": "1 kB", "turbo": None, "qdisc": "fq", **same}
    b = {"kernel": "6.2", "load": "9.9", "memory": "2 kB", "turbo": "on", **same}
    assert comparison.differences(a, b) == [("kernel", "6.1", "6.2")]
    assert comparison.differences(a, b, ("kernel",)) == [], "it is swept"
    own = ("sender.mtu", "sysctl.net.ipv4.tcp_sack", "kernel")
    files = "sysfs.devices/system/cpu/online", "sysctl.kernel.sched_autogroup_enabled"
    swept = comparison.must_match((*own, *files))
    assert {"mtu", "tcp_sack", "kernel", "command_line", "cpus_online", "autogroups"}.isdisjoint(
        swept
    )
    assert "tcp_rmem" in swept


TWO = ("snd>rcv",)


def changed(
    folder: Path, synth: Synth, changes: Mapping[int, Mapping[str, str | None]], host: str = "snd"
) -> Path:
    """A result in which a host's facts changed before the given runs."""
    synth.write(folder)
    told = json.loads((folder / "facts.json").read_text())
    for entry in (entry for entries in told["hosts"].values() for entry in entries):
        entry["from_run"] = 1
    first = told["hosts"][host][0]
    told["hosts"][host] += [
        first | {"from_run": run, "facts": first["facts"] | values}
        for run, values in sorted(changes.items())
    ]
    (folder / "facts.json").write_text(json.dumps(told))
    return folder


def cautions_of(result: Result) -> list[Caution]:
    return [caution for caution in Source(result).cautions if caution.kind == "facts"]


def test_runs_under_other_facts_are_in_no_mean_and_said(tmp_path: Path) -> None:
    later = {25: {"governor": "powersave", "kernel": "6.19.0"}}
    result = load(changed(tmp_path / "r", Synth(pairs=TWO, runs=10), later))
    cells = cells_of(result)
    kept = result.runs[result.runs["run"] >= 25]
    assert sum(cell.n for cell in cells) == len(kept) == 16
    for cell in cells:
        mine = kept[kept["cell"] == cell.cell]["throughput"]
        assert cell.intervals["throughput"].mean == pytest.approx(mine.mean())
    why = "snd: kernel was 6.18.1, then 6.19.0"
    assert set(result.runs[result.runs["run"] < 25]["excluded"]) == {why}
    (caution,) = cautions_of(result)
    assert caution.what.startswith("24 of 40 ok runs (between run 1 and run 24)")
    assert caution.where == ("snd",)
    assert caution.evidence == why
    assert len(result.runs) == 40, "kept and listed"


FOUR = Synth(pairs=TWO, runs=4)
# A result, which facts of a host change before which runs, which runs are excluded, and what the
# caution says ("": there is none; None: not looked at).
CHANGES: Mapping[str, tuple[Synth, dict[int, dict[str, str | None]], Sequence[int], str | None]] = {
    "back again": (FOUR, {5: {"kernel": "a"}, 9: {"kernel": "6.18.1"}}, range(5, 9),
                   "snd: kernel was a, then 6.18.1"),
    "drifts": (FOUR, {5: {"clock_source": "a"}, 9: {"clock_source": comparison.BY_ITSELF}}, (), None),
    "not read": (FOUR, {5: {"clock_source": None}, 9: {"clock_source": "tsc"}}, (), ""),
    "changed unread": (FOUR, {5: {"clock_source": None}, 9: {"clock_source": "hpet"}}, range(1, 9),
                       "snd: clock_source was tsc, then hpet"),
    "not read earlier": (FOUR, {5: {"governor": "performance"}}, (), ""),
    "failures since": (replace(FOUR, edit=lambda r: failed(r, "failed", "no route") if r["run"] >= 13 else r),
                       {13: {"kernel": "a"}}, (), None),
    "matters less": (replace(FOUR, facts={"snd": {"memory": "1 kB"}}), {9: {"memory": "2 kB"}}, (),
                     "memory was 1 kB, then 2 kB"),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_which_runs_a_change_excludes(tmp_path: Path, case: str) -> None:
    synth, changes, excluded, said = CHANGES[case]
    result = load(changed(tmp_path / "r", synth, changes))
    runs = result.runs
    assert runs[runs["excluded"] != ""]["run"].tolist() == list(excluded)
    ok = runs[(runs["status"] == "ok") & (runs["excluded"] == "")]
    assert sum(cell.n for cell in cells_of(result)) == len(ok)
    if said is not None:
        assert [caution.evidence for caution in cautions_of(result)] == ([said] if said else [])


def test_only_the_pairs_of_the_host_that_changed_lose_runs(tmp_path: Path) -> None:
    both = Synth(pairs=("a>b", "c>d"), runs=4)
    changes = {17: {"clock_source": "hpet"}, 99: {"clock_source": "tsc"}}
    result = load(changed(tmp_path / "r", both, changes, "d"))
    assert set(result.runs[result.runs["excluded"] != ""]["pair"]) == {"c>d"}
    in_force = [[e.from_run for e in result.in_force(host)] for host in "bd"]
    assert in_force == [[1], [17]], "no run was made under the last"


CAMPAIGN = """\
netbench: 1
name: l
hosts: {snd: local, rcv: local}
sweep: {send: [readwrite, sendfile], pin: [none, apart]}
repeat: {min: 4, max: 6, precision: 5%}
"""


@pytest.mark.parametrize(
    "changes", [{9: {"governor": "x"}}, {9: {"kernel": "x"}, 17: {"kernel": "6.18.1"}}]
)
def test_ledger_and_report_agree_on_what_counts(
    tmp_path: Path, changes: dict[int, dict[str, str]]
) -> None:
    repeat = {"min": 4, "max": 6, "precision": 0.05}
    folder = changed(tmp_path / "r", Synth(pairs=TWO, runs=6, repeat=repeat), changes)
    hosts = read_facts_file(folder / "facts.json")
    plan = Plan(campaign.parse(CAMPAIGN, "l.yaml"))
    book = Ledger(plan, {"snd": 100, "rcv": 100}, {"snd>rcv": False}, ACCOUNTS, hosts)
    for line in (folder / "records.jsonl").read_text().splitlines():
        book.add(parse_record(line.encode(), "records.jsonl"))
    book.next_block()
    for cell in cells_of(load(folder)):
        found = book.assessment((cell.cell, cell.pair))
        assert found.n == cell.n
        mean = cell.intervals["throughput"].mean
        assert found.intervals["throughput"].mean == pytest.approx(mean)
        assert book.is_open((cell.cell, cell.pair)) == (cell.status == "interrupted")


def entry(from_run: int, kernel: str) -> HostEntry:
    return HostEntry(0, "x", 100, {"kernel": kernel}, from_run=from_run)


def test_a_resumed_campaign_says_what_changed_and_begins_anew(
    small: Campaign, tmp_path: Path
) -> None:
    first = conductor.start(small, tmp_path)
    lines = (first.path / "records.jsonl").read_text().splitlines(keepends=True)
    (first.path / "records.jsonl").write_text("".join(lines[:3]))
    told = json.loads((first.path / "facts.json").read_text())
    told["hosts"]["here"][0]["facts"]["tcp_sack"] = "other"
    (first.path / "facts.json").write_text(json.dumps(told))
    said: list[str] = []
    ear = Progress()
    ear.say = said.append  # type: ignore[method-assign]
    conductor.resume(first.path, small, ear)
    assert any("here: tcp_sack was other, then 1" in line for line in said)
    found = stored_records(first.path)
    new = Counter(r["cell"] for r in found if r["run"] > 3)
    assert new == dict.fromkeys((cell.id for cell in small.cells), 2)
    assert [cell.n for cell in cells_of(load(first.path))] == [2, 2]
    assert conductor.finished(first.path, small)


def test_of_a_long_fact_only_what_changed_is_said() -> None:
    names = " ".join(f"feature-{i}" for i in range(20))
    before, after = f"on: {names} tso gro; off: lro", f"on: {names} gro; off: tso lro"
    said = comparison.change("features", before, after)
    assert said == "features was ... tso gro; off: ..., then ... gro; off: tso ..."


# --- the report ---


def record(run: int, key: tuple[str, str], block: int) -> RunRecord:
    side = SideCounters("h", (0, 10**9), meters={"flow": {"bytes": [[0], [10**9]]}})
    factors = dict(word.split("=") for word in key[0].split(","))
    return RunRecord(run, *key, block, 0, factors, "ok", "", now(), side, side)


def test_a_changed_host_opens_closed_cells_again() -> None:
    hosts = {"snd": [entry(1, "6.1"), entry(17, "6.2")], "rcv": [entry(1, "6.1")]}
    book = Ledger(Plan(campaign.parse(CAMPAIGN, "l.yaml")), {}, {}, ACCOUNTS, hosts)
    every = book.open_keys
    for run in range(1, 17):
        book.add(record(run, every[(run - 1) % 4], (run - 1) // 4))
    book.next_block()
    assert book.open_keys == []
    book.add(record(17, every[0], 4))
    assert book.open_keys == every
    assert book.assessment(every[0]).n == 1
    for run in (18, 19, 20):  # failures end a cell whatever the host was like
        book.add(replace(record(run, every[1], run - 13), status="failed", reason="no route"))
    assert every[1] not in book.open_keys


# --- emulated and lab_guest: what guests of QEMU said of themselves, and systemd-detect-virt(1)


EMULATED = BY_NAME["emulated"]
FLAGS = "flags\t\t: fpu de pse tsc msr {}\n"
GUEST = FLAGS.format("hypervisor lahf_lm")
# qemu-system-x86_64 -accel tcg -cpu max, and -cpu Skylake-Server
MAX = f"model name\t: QEMU TCG CPU version 2.5+\n{GUEST}"
NAMED = f"model name\t: Intel Xeon Processor (Skylake)\n{GUEST}"
BARE = "model name\t: Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz\n" + FLAGS.format("lahf_lm")
TCG_CLOCKS, KVM_CLOCKS = "tsc hpet acpi_pm \n", "tsc kvm-clock \n"


def emulated_by(cpu: str | None, virt: str | None, clocks: str | None) -> tuple[str | None, str]:
    """The fact, and why it is missing, on a host that gives these answers (None: it has none)."""
    asked = ((source.op, source.target) for source in EMULATED.sources)
    said = zip(asked, (cpu, virt, clocks), strict=True)
    answers = {question: answer for question, answer in said if answer is not None}
    known, missing = read_facts(Told(answers), {}, [EMULATED])
    return known["emulated"], missing.get("emulated", "")


@pytest.mark.parametrize(
    ("cpu", "virt", "clocks", "emulated"),
    [
        (MAX, None, TCG_CLOCKS, "QEMU TCG"),
        # a guest of a guest: the name is the CPU's own word
        (MAX, "kvm\n", KVM_CLOCKS, "QEMU TCG"),
        (NAMED, "qemu\n", TCG_CLOCKS, "QEMU TCG"),
        (NAMED, None, KVM_CLOCKS, "no"),
        (NAMED, None, TCG_CLOCKS, None),  # nothing tells
        (BARE, None, TCG_CLOCKS, "no"),
        ("CPU implementer\t: 0x00\nCPU part\t: 0x051\n", None, "arch_sys_counter \n", "QEMU TCG"),
        ("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "none\n", "arch_sys_counter \n", "no"),
        (None, "bochs\n", None, "Bochs"),
    ],
)
def test_what_hosts_say_of_themselves(
    cpu: str | None, virt: str | None, clocks: str | None, emulated: str | None
) -> None:
    value, why = emulated_by(cpu, virt, clocks)
    assert value == emulated
    assert bool(why) == (emulated is None)


def test_that_there_is_no_hypervisor_is_an_answer() -> None:
    none = EngineError(1, 0, "exec", "systemd-detect-virt: exit status 1: none")
    assert read_facts(lambda asked: [none] * len(asked), {}, [EMULATED])[0] == {"emulated": "no"}


@pytest.mark.parametrize(
    ("answer", "guest"),
    [
        ("NAME='a'\nDISK=''\nACCELERATOR='KVM, vhost-net'\n", "KVM, vhost-net"),
        ("NAME='a'\nACCELERATOR='QEMU TCG'\n", "QEMU TCG"),
        (EngineError(1, 2, "file", "/etc/netbench.guest: No such file or directory"), "no"),
        (EngineError(1, 13, "file", "/etc/netbench.guest: Permission denied"), None),
        ("NAME='a'\n", None),
    ],
)
def test_a_guest_of_a_lab_says_what_executes_it(
    answer: str | EngineError, guest: str | None
) -> None:
    fact = BY_NAME["lab_guest"]
    assert read_facts(lambda questions: [answer], {}, [fact])[0] == {"lab_guest": guest}
    entry = HostEntry(0, "", 100, {"lab_guest": guest})
    assert entry.is_virtual_machine == (guest is not None and "KVM" in guest)


@pytest.mark.skipif(
    shutil.which("systemd-detect-virt") is None, reason="no systemd-detect-virt here"
)
def test_this_machine_is_what_systemd_says() -> None:
    virt = ran(["systemd-detect-virt", "--vm"]).stdout.strip()
    here = campaign.parse("netbench: 1\nname: e\n", "e.yaml")
    with WorkerPool(here) as pool:
        entry = read_host(here, pool, "here")
    assert entry.facts["emulated"] == {"qemu": "QEMU TCG", "bochs": "Bochs"}.get(virt, "no")
    assert entry.is_emulated == (virt in ("qemu", "bochs"))
    assert entry.facts["lab_guest"] == "no"
    assert not entry.is_virtual_machine


@pytest.mark.root
@pytest.mark.parametrize(
    ("held", "seen"),  # what a setting may take along is not looked at
    [
        ("tcp_metrics: keep", [(4, 5, "9000"), (7, 8, "65536")]),
        ("sysctl.net/ipv4/ip_default_ttl: 64", []),
    ],
)
def test_what_others_change_while_a_campaign_runs_keeps_its_runs_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: str, seen: list[tuple[int, int, str]]
) -> None:
    monkeypatch.setattr(fact_watch, "PAUSE", 0.0)
    honest, mtu = Recorder.next_number, {4: "9000", 7: "65536"}

    def number(self: Recorder) -> int:
        if level := mtu.get(run := honest(self)):
            out("ip", "link", "set", "lo", "mtu", level)
        return run

    monkeypatch.setattr(Recorder, "next_number", number)
    text = "netbench: 1\nname: w\ntransfer: {duration: 20ms}\nrepeat: {min: 6, max: 6}\n"
    text += "sweep: {sysctl.net.ipv4.tcp_limit_output_bytes: [1048576, 1148576]}\n"
    text += f"settings: {{{held}}}\n"
    conclusion = conductor.start(campaign.parse(text, "w.yaml"), tmp_path)
    entries = read_facts_file(conclusion.path / "facts.json")["here"]
    known = [(entry.changed_from, entry.from_run, entry.facts["mtu"]) for entry in entries]
    assert known == [(None, 1, "65536"), *seen]
    assert load(conclusion.path).runs["excluded"].ne("").sum() == 2 * len(seen)
