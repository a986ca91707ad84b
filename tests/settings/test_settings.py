"""Settings on real interfaces, compared with ethtool, ip, tc and /proc; campaigns of them."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign
from netbench.base.errors import EngineError, RequestError, SettingRefused
from netbench.engine.worker import Worker
from netbench.hosts.local import LocalChannel, LocalProcess
from netbench.model import Command, Host, SettingLevel
from netbench.read.cautions import hosts
from netbench.report.source import Source
from netbench.result.journal import Change, LeftChanged
from netbench.run import conductor
from netbench.run.worker_pool import open_channel
from netbench.settings.named import find, known, parse_level, side_of
from netbench.settings.neighbours import OP
from netbench.settings.put_back import There, put_back
from netbench.settings.scope import HostSettings, Levels, layers
from netbench.settings.setting import SettingContext
from tests.support.engine_pair import HELPER
from tests.support.local import ADDRESS, call, out
from tests.support.running import stored_records
from tests.support.unfinished import outstanding

NAME, NUMBERS = secrets.token_hex(16), count(1)
ENDS = {"is undone": 0, "was undone by its worker": 1, "was left by its worker": 2}
"""How what is held comes back."""


def state(interface: str) -> dict[str, str]:
    """What independent tools say of an interface: all that a setting could change."""
    link = json.loads(out("ip", "-j", "-d", "link", "show", interface))[0]
    for varying in ("operstate", "flags"):  # a link that came up again may not be ready yet
        link.pop(varying, None)
    return {
        "features": out("ethtool", "-k", interface),
        "link": json.dumps(link, sort_keys=True),
        "qdisc": out("tc", "qdisc", "show", "dev", interface),
        "channels": out("ethtool", "-l", interface),
        "sack": Path("/proc/sys/net/ipv4/tcp_sack").read_text(),
        "rps": Path("/proc/sys/net/ipv4/tcp_rmem").read_text(),
    }


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker(open_channel(Host("here")).start_helper(), "here")
    yield made
    made.close()


@pytest.fixture
def place(worker: Worker, interface: str) -> SettingContext:
    return SettingContext("here", worker, ADDRESS, interface)


def holder(
    place: SettingContext,
    worker: Worker,
    journal: list[Any],
    commands: dict[str, Command] | None = None,
) -> HostSettings:
    """Its worker says what it has undone, under the name NAME."""
    worker.operate("undone", (NAME, "0"), "begin")
    boot_id = worker.hello.boot_id
    return HostSettings(
        place, commands or {}, journal.append, NUMBERS.__next__, boot_id, None, NAME
    )


@pytest.fixture(autouse=True, scope="module")
def forgotten() -> Iterator[None]:
    yield
    worker = Worker(open_channel(Host("here")).start_helper(), "here")
    worker.operate("undone", (NAME, "0"), "end")
    worker.close()


def parsed(written: Sequence[Mapping[str, str]]) -> list[Levels]:
    """Layers of levels as a campaign writes them. What is no setting is one of its own."""

    def level(key: str, level: str) -> SettingLevel:
        own = find(side_of(key)[1], {}) is None
        return SettingLevel(level, level) if own else parse_level(key, level, {})

    return [{key: level(key, word) for key, word in layer.items()} for layer in written]


def asked(journal: Sequence[Any]) -> list[str]:
    """The settings of the changes of a journal, without trials and what they moved along."""
    return list(dict.fromkeys(each.setting for each in journal if isinstance(each, Change)))


def ethtool(interface: str, feature: str) -> str:
    lines = (line.partition(": ") for line in out("ethtool", "-k", interface).splitlines())
    return next(state.split()[0] for name, _, state in lines if name.strip() == feature)


OFFLOADS = {
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "sg": "scatter-gather",
    "tx_checksum": "tx-checksumming",
}


def link(interface: str, key: str) -> str:
    """What ip(8) says of an interface."""
    return str(json.loads(out("ip", "-j", "-d", "link", "show", interface))[0][key])


SACK, RMEM = (f"sysctl.net.ipv4.tcp_{name}" for name in ("sack", "rmem"))
IPV4 = Path("/proc/sys/net/ipv4")


@pytest.mark.parametrize(
    ("key", "level", "read", "shown"),
    [
        *((name, "", "", lambda i, name=name: ethtool(i, OFFLOADS[name])) for name in OFFLOADS),
        ("mtu", "1400", "1400", lambda i: link(i, "mtu")),
        ("gso_max_size", "32K", "32768", lambda i: link(i, "gso_max_size")),
        ("gro_max_size", "128K", "131072", lambda i: link(i, "gro_max_size")),
        ("qdisc", "pfifo_fast", "pfifo_fast", lambda i: link(i, "qdisc")),
        ("feature.rx-gro-list", "on", "on", lambda i: ethtool(i, "rx-gro-list")),
        (SACK, "0", "0", lambda _: (IPV4 / "tcp_sack").read_text().strip()),
        (RMEM, "4096  131072 200000", "4096 131072 200000",
         lambda _: " ".join((IPV4 / "tcp_rmem").read_text().split())),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)  # fmt: skip
def test_what_is_set_is_what_tools_see(
    place: SettingContext,
    worker: Worker,
    interface: str,
    key: str,
    level: str,
    read: str,
    shown: Any,
) -> None:
    before, was = state(interface), shown(interface)
    held = holder(place, worker, [])
    if not level:  # an offload: the other one
        level = read = {"on": "off", "off": "on"}[was]
    assert held.hold(parsed([{}, {}, {key: level}])).levels == {key: read}
    assert shown(interface) == read
    if was in ("on", "off"):
        held.hold(parsed([{}, {}, {key: was}]))
        assert state(interface) == before, "the other level is the state before, untouched"
        held.hold(parsed([{}, {}, {key: level}]))
    held.undo()
    assert state(interface) == before


def test_every_setting_says_what_it_is() -> None:
    assert [name for name, of in known().items() if not getattr(of, "about", "")] == []


def test_layers_are_undone_down_to_what_they_have_in_common(
    place: SettingContext, worker: Worker, interface: str
) -> None:
    before = state(interface)
    journal: list[Any] = []
    held = holder(place, worker, journal)
    held.hold(parsed([{"sysctl.net.ipv4.tcp_sack": "0"}, {"mtu": "1400"}, {"tso": "off"}]))
    assert asked(journal) == ["sysctl.net.ipv4.tcp_sack", "mtu", "tso"]
    held.hold(parsed([{"sysctl.net.ipv4.tcp_sack": "0"}, {"mtu": "1400"}, {"gro": "on"}]))
    left = [str(change) for change in outstanding(journal, "here")]
    assert f"mtu (link {interface} mtu)" in left, "it is not touched for a change of what is cheap"
    assert f"tso (features {interface})" not in left
    assert [ethtool(interface, OFFLOADS[name]) for name in ("tso", "gro")] == ["on", "on"]
    held.hold(parsed([{"sysctl.net.ipv4.tcp_sack": "0"}, {"mtu": "1300"}, {"tso": "off"}]))
    assert link(interface, "mtu") == "1300"
    held.undo()
    assert state(interface) == before
    assert outstanding(journal, "here") == []


def test_what_somebody_else_changed_is_applied_anew(
    place: SettingContext, worker: Worker, interface: str
) -> None:
    before = state(interface)
    held = holder(place, worker, [])
    wanted = parsed([{"mtu": "1400"}, {}, {"tso": "off"}])
    held.hold(wanted)
    out("ip", "link", "set", interface, "mtu", "1300")
    out("ethtool", "-K", interface, "tso", "on")
    assert held.hold(wanted).levels == {"mtu": "1400", "tso": "off"}
    assert link(interface, "mtu") == "1400"
    assert ethtool(interface, OFFLOADS["tso"]) == "off"
    held.undo()
    assert state(interface) == before


TX = "feature.tx-tcp-segmentation"


def test_levels_that_exclude_each_other_are_refused(
    place: SettingContext, worker: Worker, interface: str
) -> None:
    """Each of them reads as asked when it is set; the kernel turns TSO off with SG."""
    before = state(interface)
    held = holder(place, worker, [])
    said = f"here: {TX} was set to on, but reads off once the other settings are applied; remove"
    for wanted in ([{TX: "on"}, {}, {"sg": "off"}], [{}, {}, {TX: "on", "sg": "off"}]):
        with pytest.raises(SettingRefused, match=said):
            held.hold(parsed(wanted))
        assert state(interface) == before


def kill(worker: Worker) -> None:
    subprocess.run(["kill", "-9", str(worker.hello.pid)], check=True)
    worker.close()


def leaves(worker: Worker) -> None:
    """It has lost its controller, and undoes by itself."""
    worker.abandon()
    with suppress(ChildProcessError):
        os.waitpid(worker.hello.pid, 0)


def helpers(*hosts: str) -> dict[str, Worker]:
    """A helper for each of these hosts, which are this machine."""
    return {host: Worker(open_channel(Host(host)).start_helper(), host) for host in hosts}


def by_journal(journal: list[Any], boot_id: str = "", *hosts: str, living: Any = ()) -> list[str]:
    """Put back by new helpers what a journal has left, as `restore` does; what they did."""
    there = helpers(*(hosts or ("here",)))
    left = sorted((each for host in there for each in outstanding(journal, host)), key=str)
    known = {host: There(each, boot_id or each.hello.boot_id) for host, each in there.items()}
    try:
        return list(put_back(known, left, journal.append, NAME, living))
    finally:
        for worker in there.values():
            worker.close()


def test_a_level_that_the_kernel_refuses_leaves_nothing_behind(
    place: SettingContext, worker: Worker, interface: str
) -> None:
    """What was around the trial is not put back again later."""
    before, journal = state(interface), list[Any]()
    held = holder(place, worker, journal)
    control = "sysctl.net.ipv4.tcp_congestion_control"
    for levels, said in (
        ({"tso": "off", control: "nosuch"}, rf"{control}: nosuch: .*nosuch"),
        ({"qdisc": "nosuchqdisc"}, "nosuchqdisc"),
    ):
        with pytest.raises(SettingRefused, match=said):
            held.hold(parsed([{}, {}, levels]))
        assert state(interface) == before
    assert outstanding(journal, "here") == []


def test_an_undo_that_puts_nothing_back_is_told_and_one_of_half_a_change_is_run(
    place: SettingContext, worker: Worker, tmp_path: Path
) -> None:
    file, journal = tmp_path / "level", list[Any]()
    write = ("sh", "-c", f'echo "$0" > {file}; [ "$0" != two ]')
    read = ("cat", str(file))
    file.write_text("one\n")
    half = Command((*write, "{level}"), read, (*write, "one"))
    held = holder(place, worker, [], {"mine": half})
    injected = "four; $(reboot)"
    assert held.hold(parsed([{}, {}, {"mine": injected}])).levels == {"mine": injected}
    assert file.read_text() == f"{injected}\n"
    held.undo()
    with pytest.raises(SettingRefused, match="exit status 1"):
        holder(place, worker, journal, {"mine": half}).hold(parsed([{}, {}, {"mine": "two"}]))
    assert (file.read_text(), outstanding(journal, "here")) == ("one\n", [])
    journal = []
    held = holder(place, worker, journal, {"mine": half._replace(undo=("true",))})
    held.hold(parsed([{}, {}, {"mine": "three"}]))
    said = "reads 'three' after the undo, but was 'one'; what undoes it leaves it changed"
    with pytest.raises(EngineError, match=said):
        held.undo()
    assert asked(outstanding(journal, "here")) == ["mine"]
    with pytest.raises(EngineError, match="true leaves it changed"):
        by_journal(journal)


def test_what_cannot_be_put_back_keeps_nothing_else_from_it(interface: str, tmp_path: Path) -> None:
    """Nor does it the next time: what is back is known to be, change by change."""
    before = state(interface)
    journal: list[Any] = []
    first = Worker(open_channel(Host("here")).start_helper(), "here")
    odd = Command(
        ("touch", f"{tmp_path}/{{level}}"), ("ls", str(tmp_path)), ("rmdir", f"{tmp_path}/nothing")
    )
    held = holder(SettingContext("here", first, ADDRESS, interface), first, journal, {"odd": odd})
    held.hold(parsed([{"mtu": "1400"}, {"odd": "x"}, {"tso": "off", "qdisc": "pfifo_fast"}]))
    kill(first)
    assert state(interface) != before
    for left in (["qdisc", "tso", "odd", "mtu"], ["odd", "mtu"]):
        assert asked(outstanding(journal, "here")) == left
        with pytest.raises(EngineError, match=r"rmdir: .*nothing"):
            by_journal(journal)
    assert state(interface) == before


def test_an_undo_that_a_worker_has_run_is_not_run_again(
    place: SettingContext, worker: Worker, tmp_path: Path
) -> None:
    """A worker that has lost its controller runs it, and the journal cannot know."""
    journal: list[Any] = []
    folder = str(tmp_path / "made")
    there = ("sh", "-c", f"if [ -d {folder} ]; then echo on; else echo off; fi")
    made = Command(("mkdir", folder), there, ("rmdir", folder))
    holder(place, worker, journal, {"mine": made}).hold(parsed([{}, {}, {"mine": "on"}]))
    assert Path(folder).exists()
    worker.undo()
    assert not Path(folder).exists()
    assert [line.rpartition(": ")[2] for line in by_journal(journal)] == ["undone before"]


class Driver:
    """A worker on a device that loses TSO with a large MTU: none can be had here."""

    def __init__(self) -> None:
        self.hello, self.mtu, self.tso = type("", (), {"network": 0, "machine": ""}), "1500", "on"
        self.held: list[tuple[int, str, str]] = []

    def operate(
        self, op: str, target: Any, value: str | None = None, scope: int = 0, **_: Any
    ) -> tuple[str, str | None]:
        if op == OP:
            tso = f" tx-tcp-segmentation {self.tso}\n tx-tcp6-segmentation {self.tso}\n"
            return f"link nic0\n mtu {self.mtu}\nfeatures nic0\n{tso}", None
        before = self.read(op)
        if value is not None:
            self.held.append((scope, self.mtu, self.tso))
            if op == "link":
                self.mtu = value
            else:
                self.tso = value.split()[1]
            self.tso = self.tso if int(self.mtu) <= 1500 else "off"
        return before, None if value is None else self.read(op)

    def read(self, op: str) -> str:
        both = f"tx-tcp-segmentation: {self.tso}\ntx-tcp6-segmentation: {self.tso}\n"
        return f"{self.mtu}\n" if op == "link" else both

    def ask_permission(self, *_: Any) -> None:
        pass

    def undo(self, scope: int = 0) -> None:
        while self.held and self.held[-1][0] >= scope:
            _, self.mtu, self.tso = self.held.pop()


def test_what_a_change_moves_of_another_kind_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netbench.settings.link.Mtu.is_ready", lambda *_: True)
    made = Driver()
    journal: list[Any] = []
    place = SettingContext("here", made, ADDRESS, "nic0")
    held = HostSettings(place, {}, journal.append, iter(range(99)).__next__, "boot")
    moved = held.hold(parsed([{}, {"mtu": "9000"}, {}])).moved
    assert moved["tx-tcp-segmentation"] == ("on", "off")
    with pytest.raises(SettingRefused, match="tso was set to on, but reads off"):
        held.hold(parsed([{}, {"mtu": "9000"}, {"tso": "on"}]))


BIG = ("gso_max_size", "gso_ipv4_max_size")


def test_the_limit_of_ipv4_comes_back_too(interface: str) -> None:
    original, level, journal = (65536, 32768), "192K", list[Any]()

    def sizes(worker: Worker) -> tuple[int, ...]:
        """By an operation of the worker: Debian 12's ip(8) does not know that of IPv4."""
        return tuple(int(worker.operate("link", (interface, name))[0]) for name in BIG)

    first, last = (Worker(open_channel(Host("here")).start_helper(), "here") for _ in range(2))
    for name, size in zip(BIG, original, strict=True):
        first.operate("link", (interface, name), str(size))
    bytes_ = int(level[:-1]) * 1024
    held = holder(SettingContext("here", first, ADDRESS, interface), first, journal)
    told = held.hold(parsed([{}, {}, {"gso_max_size": level}])).levels
    assert told == {"gso_max_size": str(bytes_)}
    assert set(sizes(first)) == {bytes_}
    kill(first)
    by_journal(journal)
    assert sizes(last) == original
    last.close()


def test_what_this_machine_cannot_switch_says_why(place: SettingContext) -> None:
    assert known()["mtu"].why_not("", "70000", place).endswith(" takes 68 to 65535")
    levels = {"turbo": "on", "irq_affinity": "0", "lro": "on", "channels": "4096"}
    levels |= {"rings": "1", "coalesce": "1"}
    if not Path("/sys/devices/system/cpu/cpufreq/policy0").exists():
        levels["governor"] = "performance"
    for name, level in levels.items():
        setting = known()[name]
        try:
            why = setting.why_not("", setting.parse(level), place)
        except (EngineError, SettingRefused, ValueError) as error:
            why = str(error)
        assert why, f"{name} is refused, with the reason"


def test_layers_of_a_pair() -> None:
    campaign_levels = {"tso": "off", "sender.gro": "on", "mtu": "9000"}
    always, cell = parsed(
        [campaign_levels, {"tso": "yes", "receiver.mtu": "1500", "receiver.gro": "off"}]
    )
    for side, wanted in (
        ("sender", [{"mtu": "9000", "gro": "on"}, {}, {"tso": "on"}]),
        ("receiver", [{}, {"mtu": "1500"}, {"tso": "on", "gro": "off"}]),
    ):
        assert layers(always, cell, {}, side) == parsed(wanted)
    always, cell = parsed([{"mtu": "9000"}, {"mtu": "1500", "sender.mtu": "as_is"}])
    assert layers(always, cell, {}, "sender") == parsed([{"mtu": "9000"}, {}, {}])
    assert layers(always, cell, {}, "receiver") == parsed([{}, {"mtu": "1500"}, {}])


SWEEP = """\
netbench: 1
name: swept
hosts: {{here: {{address: {address}, interface: {interface}}}}}
transfer: {{duration: 50ms, warmup: 10ms, sample: 0, congestion: cubic}}
settings: {{mtu: 1400}}
sweep: {{tso: [on, off], sysctl.net.ipv4.tcp_slow_start_after_idle: [1, {second}]}}
repeat: {{min: 2, max: 2}}
"""


def test_a_campaign_reads_back_every_cell_and_leaves_no_trace(
    interface: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which interface it was that data did not pass is told."""
    monkeypatch.setattr(hosts, "LATE", 0.1)
    before = state(interface)
    text = SWEEP.format(address=ADDRESS, interface=interface, second=0)
    done = conductor.start(campaign.parse(text, "s.yaml"), tmp_path)
    found = stored_records(done.path)
    assert (done.why, [r["status"] for r in found]) == ("done", ["ok"] * 8)
    for record in found:
        for side in ("sender", "receiver"):
            read = {key: value["read"] for key, value in record["settings"][side].items()}
            assert {key: read[key] for key in record["factors"]} == record["factors"]
            assert read["mtu"] == "1400"
    assert state(interface) == before
    assert conductor.Store.open(done.path).journal.outstanding("here") == []
    told = [each.evidence for each in Source.of(done.path).cautions if each.kind == "other_way"]
    ways = [evidence.split()[1] for evidence in told if f" of which {interface} saw 0%" in evidence]
    assert ways == ["sent", "received"], told


def test_an_undo_that_fails_ends_the_campaign_and_says_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records and its end are kept; what is left is known to `restore`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))  # none begins on top of it
    folder = tmp_path / "at"
    folder.mkdir()
    odd = {
        "apply": ["touch", f"{folder}/{{level}}"],
        "read": ["ls", str(folder)],
        "undo": ["rmdir", f"{tmp_path}/nothing"],
    }
    text = (
        f"netbench: 1\nname: odd\ncommand: {json.dumps({'mine': odd})}\nsweep: {{mine: [a, b]}}\n"
        "transfer: {duration: 50ms, warmup: 10ms, congestion: cubic}\n"
        "repeat: {min: 1, max: 1}\nverify: off\n"
    )
    done = conductor.start(campaign.parse(text, "odd.yaml"), tmp_path / "r")
    assert (done.why, done.exit_code) == ("lost", 1)
    assert "rmdir" in done.reason
    assert f"`restore {done.path}` puts back what is left changed" in done.reason
    assert [record["status"] for record in stored_records(done.path)] == ["ok"]
    journal = conductor.Store.open(done.path).journal
    assert journal.ended() == "lost"
    assert [change.setting for change in journal.outstanding("here")] == ["mine"]


def test_a_level_is_what_read_prints_alone(tmp_path: Path) -> None:
    """Not what it says on stderr, nor the space around it, of which an undo may leave other."""
    (file := tmp_path / "mode").write_text(" normal")
    write = ["sh", "-c", f"echo {{level}} > {file}"]
    long, notice = ("printf %17000d 0", "", 1), ("echo notice >&2", "", 0)
    for also, said, code in (long, notice, ("echo; echo notice", "several lines", 2)):
        own = {"apply": write, "read": ["sh", "-c", f"cat {file}; {also}"], "undo": write}
        text = (
            f"netbench: 1\nname: odd\ncommand: {json.dumps({'mine': own})}\nsweep: {{mine: [a]}}\n"
            "transfer: {duration: 50ms, warmup: 10ms, congestion: cubic}\n"
            "repeat: {min: 1, max: 1}\nverify: off\n"
        )
        with pytest.raises(RequestError, match=said) if said else nullcontext():
            done = conductor.start(campaign.parse(text, "odd.yaml"), tmp_path / f"r{code}")
            assert (done.exit_code, file.read_text()) == (code, (" normal", "normal\n")[not code])
    assert file.read_text() == "normal\n"


def virtio_interfaces() -> list[str]:
    """The interfaces of this machine whose device is on the virtio bus."""
    devices = Path("/sys/class/net").glob("*/device/uevent")
    return [file.parts[4] for file in devices if "MODALIAS=virtio:" in file.read_text()]


@pytest.mark.skipif(not virtio_interfaces(), reason="needs an interface of virtio")
def test_the_interrupts_of_virtio_are_those_of_its_pci_device(worker: Worker) -> None:
    interface = virtio_interfaces()[0]
    setting = known()["irq_affinity"]
    place = SettingContext("here", worker, "127.0.0.1", interface)
    bus = Path(f"/sys/class/net/{interface}/device/..").resolve().name
    place._texts["driver", interface] = f"bus: {bus}\n"  # it is in another namespace
    affinity = setting.read("", place)
    numbers = Path(f"/sys/class/net/{interface}/device/../msi_irqs").iterdir()
    files = [Path(f"/proc/irq/{number.name}/smp_affinity_list") for number in numbers]
    assert set(affinity.split(" and ")) == {file.read_text().strip() for file in files}


def test_check_names_the_levels_that_it_cannot_know(interface: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(SWEEP.format(address=ADDRESS, interface=interface, second=7))
    said = " ".join(call("check", file).stdout.split())
    assert "not known before it is tried: mtu: 1400, sysctl" in said
    assert "tso: off" not in said.partition("not known before it is tried:")[2]


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize("above", ["a program", "a file"])
def test_what_a_program_moves_comes_back_with_it(tmp_path: Path, above: str, end: int) -> None:
    """As tuned-adm does, whose profile sets what another setting of the campaign holds, too."""
    profile, fin = tmp_path / "profile", Path("/proc/sys/net/ipv4/tcp_fin_timeout")
    moved = fin if above == "a file" else tmp_path / "moved"
    before = {profile: "balanced\n", moved: fin.read_text() if moved == fin else "60\n"}
    for file, text in before.items():
        file.write_text(text)
    at = f"{{ [ $0 = fast ] && echo 30 || echo {before[moved].strip()}; }} > {moved}"
    tuned, write = (
        ("sh", "-c", f"echo $0 > {file}{also}")
        for file, also in ((profile, f"; {at}"), (moved, ""))
    )
    commands = {
        name: Command((*argv, "{level}"), ("cat", str(file)), (*argv, "{level}"))
        for name, argv, file in (("tuned", tuned, profile), ("moved", write, moved))
    }
    upper = "sysctl.net.ipv4.tcp_fin_timeout" if moved == fin else "moved"
    journal: list[Any] = []
    worker = Worker(open_channel(Host("here")).start_helper(), "here")
    held = holder(SettingContext("here", worker, ADDRESS), worker, journal, commands)
    held.hold(parsed([{"tuned": "fast"}, {upper: "15"}, {}]))
    assert (profile.read_text(), moved.read_text()) == ("fast\n", "15\n")
    if end == ENDS["is undone"]:
        held.undo()
    elif end == ENDS["was undone by its worker"]:
        leaves(worker)
    else:
        os.kill(worker.hello.pid, signal.SIGKILL)
    worker.close()
    assert bool(outstanding(journal, "here")) == (end != ENDS["is undone"])
    by_journal(journal)
    assert {file: file.read_text() for file in before} == before
    assert outstanding(journal, "here") == []


class Files:
    """Two hosts of one kernel, as those of a lab: of `tuned`, a program that moves `moved`, too."""

    def __init__(self, folder: Path) -> None:
        self.tuned, self.moved = folder / "tuned", folder / "moved"
        self.before = {self.tuned: "balanced\n", self.moved: "madvise\n"}
        for file, text in self.before.items():
            file.write_text(text)
        also = f"[ $0 = fast ] && echo always > {self.moved} || echo madvise > {self.moved}"
        self.commands = {}
        for name, file, more in (("tuned", self.tuned, f"; {also}"), ("moved", self.moved, "")):
            script = f"[ -e {folder}/down ] && exit 1; echo $0 > {file}{more}"
            write = ("sh", "-c", script, "{level}")
            self.commands[name] = Command(write, ("cat", str(file)), write)

    def text(self) -> str:
        return json.dumps({name: command._asdict() for name, command in self.commands.items()})

    def read(self) -> dict[Path, str]:
        return {file: file.read_text() for file in self.before}


def hold_each(
    workers: Iterable[Worker],
    journal: list[Any],
    commands: dict[str, Command],
    *levels: Mapping[str, str],
) -> None:
    """The helper of each host holds its level."""
    for worker, level in zip(workers, levels, strict=True):
        place = SettingContext(worker.host, worker, ADDRESS)
        holder(place, worker, journal, commands).hold(parsed([level]))


TWO = """\
netbench: 1
name: two
hosts: {{snd: local, rcv: local}}
command: {command}
transfer: {{duration: 20ms, warmup: 0, sample: 0, congestion: cubic}}
settings: {{receiver.moved: never}}
sweep: {{sender.tuned: [fast, balanced]}}
order: {{seed: 2}}
repeat: {{min: 2, max: 2}}
verify: off
"""


@pytest.mark.usefixtures("whole_kernel")
def test_hosts_of_one_kernel_have_one_stack(tmp_path: Path) -> None:
    """What one holds all the time lies below what the other changes with each cell."""
    files = Files(tmp_path)
    text = TWO.format(command=files.text())
    done = conductor.start(campaign.parse(text, "two.yaml"), tmp_path / "r")
    found = stored_records(done.path)
    assert sorted(r["status"] for r in found) == ["ok", "ok", "refused"]
    (why,) = (r["reason"] for r in found if r["reason"])
    assert "moved was set to never, but reads always once the other settings" in why
    assert files.read() == files.before
    journal = conductor.Store.open(done.path).journal
    assert not journal.left()
    assert not [line for line in journal.entries() if isinstance(line, LeftChanged)]


@pytest.mark.usefixtures("whole_kernel")
def test_hosts_of_one_kernel_are_one_account_s(tmp_path: Path) -> None:
    """Their helpers would not know of each other."""

    class Channel(LocalChannel):
        def start_helper(self) -> LocalProcess:
            return self.start(("env", f"SUDO_UID={4242 if self.name == 'rcv' else 0}", *HELPER))

    fin = Path("/proc/sys/net/ipv4/tcp_fin_timeout")
    before, files = fin.read_text(), Files(tmp_path)
    text = TWO.format(command=files.text()).replace(
        "moved: never", "sysctl.net.ipv4.tcp_fin_timeout: 15"
    )
    asked = campaign.parse(text, "two.yaml")
    with pytest.raises(EngineError, match=r"are one machine.* as two accounts"):
        conductor.start(asked, tmp_path / "r", channels=lambda host: Channel(host.name))
    assert (files.read(), fin.read_text()) == (files.before, before)


def test_a_stopped_helper_of_two_is_ended(tmp_path: Path) -> None:
    """It holds no lock of the host, and must undo nothing again. Also by one installed since."""
    other = str(shutil.copy(HELPER[0], tmp_path))
    files, journal = Files(tmp_path), list[Any]()
    processes = [LocalProcess(HELPER) for _ in range(2)]
    pair = [Worker(p, h) for p, h in zip(processes, ("lower", "upper"), strict=True)]
    hold_each(pair, journal, files.commands, {"tuned": "fast"}, {"moved": "never"})
    os.kill(processes[1].pid, signal.SIGSTOP)
    for process in processes:
        process.write_end()
    helpers = {h: LocalProcess((other, *HELPER[1:])) for h in ("lower", "upper")}
    again = {host: Worker(process, host) for host, process in helpers.items()}
    there = {host: There(worker, worker.hello.boot_id) for host, worker in again.items()}
    left = [*outstanding(journal, "upper"), *outstanding(journal, "lower")]
    list(put_back(there, left, journal.append, NAME))
    assert processes[1].finish(5) == -signal.SIGKILL
    assert processes[0].finish(5) == 0
    assert files.read() == files.before
    for worker in again.values():
        worker.close()


@pytest.mark.parametrize("lost", ["both", "upper", "lower", "controller", "link of upper", "top"])
def test_hosts_of_one_kernel_are_put_back_in_the_order_of_both(tmp_path: Path, lost: str) -> None:
    """Helpers that undo by themselves wait for each other, also for one that yet hears no end."""
    files, journal = Files(tmp_path), list[Any]()
    processes = {host: LocalProcess(HELPER) for host in ("lower", "upper")}
    pair = {host: Worker(process, host) for host, process in processes.items()}
    write = ("sh", "-c", f"[ ! -d {tmp_path}/off ] && echo $0 > {tmp_path}/top", "{level}")
    commands = files.commands | {"top": Command(write, ("cat", f"{tmp_path}/top"), write)}
    (tmp_path / "top").write_text("x\n")
    levels = {"tuned": "fast"}, {"moved": "never"}, {"top": "y"}
    hold_each([*pair.values(), pair["lower"]], journal, commands, *levels)
    assert files.read() == {files.tuned: "fast\n", files.moved: "never\n"}
    if lost == "top":  # whose undo fails, which nobody waits for
        (tmp_path / "off").mkdir()
    for host, process in processes.items():
        if lost in (host, "both"):
            os.kill(process.pid, signal.SIGKILL)
        if lost != "link of upper" or host == "lower":
            process.write_end()
    alone = lost not in ("both", *pair)
    assert [process.finish(30 * alone) for process in processes.values()] == [0, 0] or not alone
    if not alone:
        by_journal(journal, "", *pair)
    assert files.read() == files.before


@pytest.mark.parametrize("z", ["is moved by what is below", "is for itself"])
@pytest.mark.parametrize("after", ["its worker", "a `restore` that failed, too"])
def test_what_is_below_an_undo_that_failed_stays_as_it_was_left(
    tmp_path: Path, z: str, after: str
) -> None:
    """An undo from the middle of the stack would set a level that was never there before."""
    files, journal = Files(tmp_path), list[Any]()
    fin, down = Path("/proc/sys/net/ipv4/tcp_fin_timeout"), tmp_path / "down"
    before = fin.read_text()
    worker = Worker(open_channel(Host("here")).start_helper(), "here")
    file = files.moved if z == "is moved by what is below" else tmp_path / "z"
    if file != files.moved:
        file.write_text("a\n")
    write = ("sh", "-c", f"level=$0; [ ! -e {down} ] && echo ${{level}} > {file}", "{level}")
    commands = {**files.commands, "z": Command(write, ("cat", str(file)), write)}
    held = holder(SettingContext("here", worker, ADDRESS), worker, journal, commands)
    sysctl = "sysctl.net.ipv4.tcp_fin_timeout"
    held.hold(parsed([{"tuned": "fast", sysctl: "15"}, {"z": "b"}, {}]))
    down.touch()
    with pytest.raises(EngineError, match="exit status 1"):
        held.undo()
    worker.close()
    if after != "its worker":
        with pytest.raises(EngineError, match="exit status 1"):
            by_journal(journal)
    down.unlink()
    by_journal(journal)
    assert (files.read(), fin.read_text()) == (files.before, before)
    assert outstanding(journal, "here") == []


def test_after_a_boot_what_a_program_set_is_undone_where_it_is_still_there(tmp_path: Path) -> None:
    """One that lies in a file; what lay above, and reads as neither said, is told."""
    files, journal = Files(tmp_path), list[Any]()
    worker = Worker(open_channel(Host("here")).start_helper(), "here")
    held = holder(SettingContext("here", worker, ADDRESS), worker, journal, files.commands)
    held.hold(parsed([{"tuned": "fast"}, {"moved": "never"}, {}]))
    os.kill(worker.hello.pid, signal.SIGKILL)
    worker.close()
    files.moved.write_text("madvise\n")
    with pytest.raises(EngineError, match="as the host was booted since: it reads 'madvise'"):
        by_journal(journal, "another boot")
    assert files.read() == files.before


UPPERS = {
    "another level": ("tcp_fin_timeout", "30", "tcp_fin_timeout: 15"),
    "as it was before both": ("tcp_fin_timeout", "30", "tcp_fin_timeout: 60"),
    "what moves along": ("conf/all/accept_redirects", "0", "ip_forward: 1"),
}
"""What a program below writes, in net/ipv4, and the sysctl above it."""


@pytest.mark.usefixtures("whole_kernel", "interface")
@pytest.mark.parametrize("row", UPPERS.values(), ids=UPPERS.keys())
def test_what_lies_below_a_killed_helper_is_left_to_restore(
    tmp_path: Path, row: tuple[str, str, str]
) -> None:
    """What the upper one read, before it changed it, was what the lower one had set."""
    ipv4, journal = Path("/proc/sys/net/ipv4"), list[Any]()
    below, set_to, above = row
    key, level = above.split(": ")
    files = (ipv4 / "tcp_fin_timeout", ipv4 / "ip_forward", ipv4 / "conf/all/accept_redirects")
    ours = {files[0]: "60\n", files[1]: "0\n", files[2]: "1\n"}
    found = {file: file.read_text() for file in files}
    try:
        for file, text in ours.items():
            file.write_text(text)
        profile = tmp_path / "profile"
        profile.write_text("balanced\n")
        was = ours[ipv4 / below].strip()
        moved = f"{{ [ $0 = fast ] && echo {set_to} || echo {was}; }} > {ipv4 / below}"
        tuned = ("sh", "-c", f"echo $0 > {profile}; {moved}", "{level}")
        commands = {"tuned": Command(tuned, ("cat", str(profile)), tuned)}
        pair = helpers("lower", "upper")
        levels = {"tuned": "fast"}, {f"sysctl.net.ipv4.{key}": level}
        hold_each(pair.values(), journal, commands, *levels)
        os.kill(pair["upper"].hello.pid, signal.SIGKILL)
        for worker in reversed(pair.values()):
            if worker is pair["lower"]:
                with pytest.raises(EngineError, match="run `netbench restore`"):
                    worker.undo()
            leaves(worker)
        assert profile.read_text() == "fast\n"
        by_journal(journal, "", *pair)
        assert {file: file.read_text() for file in files} == ours
        assert profile.read_text() == "balanced\n"
    finally:
        for file, text in found.items():
            file.write_text(text)


@pytest.mark.parametrize("reads", ["15", "60"], ids=["as it was set", "as it was before both"])
def test_what_failed_above_a_program_that_was_undone_is_not_written(reads: str) -> None:
    """Its level before was the program's, and is of nobody any more."""
    fin, journal = Path("/proc/sys/net/ipv4/tcp_fin_timeout"), list[Any]()
    found, worker = fin.read_text(), Worker(open_channel(Host("here")).start_helper(), "here")
    boot, first = worker.hello.boot_id, next(NUMBERS)
    undo, look = ("sh", "-c", f"echo 60 > {fin}"), ("cat", str(fin))
    program = Change(first, "here", boot, "tuned", "exec", undo, "x", "60\n", undo)
    upper = Change(next(NUMBERS), "here", boot, "sysctl", "file", look[1:], "15", "30")
    journal += [program, upper]
    worker.operate("undone", (NAME, "0"), "begin")
    worker.operate("undone", (NAME, "0"), str(first))
    try:
        fin.write_text(reads)
        if reads == "15":
            for living in ((1,), ()):  # a campaign's end leaves it to `restore`
                with pytest.raises(EngineError, match="left as it is, as what lay below it"):
                    by_journal(journal, living=living)
                assert bool(outstanding(journal, "here")) == bool(living)
        else:
            assert "gone with what was below it" in by_journal(journal)[0]
        assert (fin.read_text().strip(), outstanding(journal, "here")) == (reads, [])
    finally:
        fin.write_text(found)
        worker.close()


def test_a_program_that_found_the_same_elsewhere_is_not_in_the_way(tmp_path: Path) -> None:
    """As on two hosts of a kernel, each with a value of its own."""
    (fin := tmp_path / "fin").write_text("32")
    undo = ("sh", "-c", f"printf 60 > {fin}")
    worker = Worker(open_channel(Host("here")).start_helper(), "here")
    boot, numbers = worker.hello.boot_id, (next(NUMBERS), next(NUMBERS))
    ft = ("ft", "exec", undo, "32", "60\n", undo, ("cat", str(fin)))
    journal = [Change(number, "here", boot, *ft) for number in numbers]
    worker.operate("undone", (NAME, "0"), "begin")
    worker.operate("undone", (NAME, "0"), str(numbers[0]))
    worker.close()
    by_journal(journal)
    assert (fin.read_text(), outstanding(journal, "here")) == ("60", [])


def test_what_an_undo_above_moves_again_is_undone_again(tmp_path: Path) -> None:
    """A program's, that its worker has undone before; and what stays so is told each time."""
    file, down, journal = tmp_path / "file", tmp_path / "down", list[Any]()
    worker = Worker(open_channel(Host("here")).start_helper(), "here")
    file.write_text("60")
    boot, numbers = worker.hello.boot_id, (next(NUMBERS), next(NUMBERS))
    below = ("sh", "-c", f"[ -e {down} ] || printf 60 > {file}")
    above = ("sh", "-c", f"printf 30 > {file}")
    look = ("cat", str(file))
    journal += [
        Change(numbers[0], "here", boot, "tuned", "exec", below, "x", "60\n", below, look),
        Change(numbers[1], "here", boot, "other", "exec", above, "x", "?", above),
    ]
    worker.operate("undone", (NAME, "0"), "begin")
    worker.operate("undone", (NAME, "0"), str(numbers[0]))
    worker.close()
    down.touch()
    for _ in range(2):
        with pytest.raises(EngineError, match="leaves it changed"):
            by_journal(journal)
    down.unlink()
    by_journal(journal)
    assert (file.read_text(), outstanding(journal, "here")) == ("60", [])


@pytest.mark.slow  # the undo above takes longer than a helper waits for one that does not leave
def test_a_helper_that_leaves_waits_for_a_slow_undo_above(tmp_path: Path) -> None:
    fin, journal = Path("/proc/sys/net/ipv4/tcp_fin_timeout"), list[Any]()
    before, setting = fin.read_text(), "sysctl.net.ipv4.tcp_fin_timeout"
    processes = [LocalProcess(HELPER) for _ in range(2)]
    pair = {p: Worker(p, h) for p, h in zip(processes, ("lower", "upper"), strict=True)}
    lower, upper = (
        holder(SettingContext(worker.host, worker, ADDRESS), worker, journal)
        for worker in pair.values()
    )
    lower.hold(parsed([{setting: "30"}]))
    upper.hold(parsed([{setting: "15"}]))
    upper.place.worker.operate("exec", ("true",), undo=("sleep", "7"), scope=next(NUMBERS))
    for process in processes:
        process.write_end()
    assert [process.finish(20) for process in processes] == [0, 0]
    assert fin.read_text() == before


def test_a_restore_elsewhere_leaves_what_is_known_of_undone_changes(worker: Worker) -> None:
    worker.operate("undone", (NAME, "0"), str(next(NUMBERS)))
    known = worker.operate("undone", (NAME, "0"))[0]
    other = secrets.token_hex(16)
    worker.operate("undone", (other, "0"), "begin")
    worker.operate("undone", (other, "0"), "end")
    assert worker.operate("undone", (NAME, "0"))[0] == known
    with pytest.raises(EngineError, match="is no campaign"):
        worker.operate("undone", ("../../etc/passwd", "0"))


def test_an_account_has_few_logs_of_what_was_undone() -> None:
    """Those of who is gone give way: of 16 the oldest, of what was begun alone each."""
    argv = ("env", "SUDO_UID=4243", "SUDO_USER=kim", *HELPER)
    helper = Worker(LocalProcess(argv), "here")
    begun, *names = [secrets.token_hex(16) for _ in range(18)]
    old, living, more = names[1], names[-2], names[-1]
    helper.operate("undone", (begun, "0"), "begin")
    for name in names[:-1]:
        helper.operate("undone", (name, "0"), "3")
    assert not Path(f"/run/netbench/locks/undone-4243-{begun}").exists()
    helper.operate("undone", (living, "0"), "7")  # one that is there
    os.utime(f"/run/netbench/locks/undone-4243-{old}", (0, 0))
    helper.operate("undone", (more, "0"), "begin")
    left = [helper.operate("undone", (each, "0"))[0] for each in names[:3]]
    assert left == ["3 3\n", "", "3 3\n"]
    assert helper.operate("undone", (living, "5"))[0] == "7 7\n"
    with pytest.raises(EngineError, match="File too large"):
        helper.operate("undone", (living, "0"), str(2**20))
    for name in names:
        helper.operate("undone", (name, "0"), "end")
    with ExitStack() as stack:
        for name in names[:16]:
            each = stack.enter_context(closing(Worker(LocalProcess(argv), "here")))
            each.operate("undone", (name, "0"), "begin")
        with pytest.raises(EngineError, match="Disk quota exceeded"):
            helper.operate("undone", (more, "0"), "begin")
        assert not Path(f"/run/netbench/locks/undone-4243-{more}").exists()
    helper.close()
