"""What the kernel changes along with a setting comes back; seen by other means."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from netbench.base.errors import EngineError, SettingRefused
from netbench.engine.worker import Worker
from netbench.hosts.local import LocalProcess
from netbench.model import Host
from netbench.result.journal import Change
from netbench.run.worker_pool import open_channel
from netbench.settings.put_back import There, put_back
from netbench.settings.scope import HostSettings
from netbench.settings.setting import SettingContext
from tests.settings.test_settings import NAME, holder, leaves, parsed
from tests.support.engine_pair import HELPER
from tests.support.local import ADDRESS, NEAR, call, out
from tests.support.unfinished import outstanding

pytestmark = [pytest.mark.root, pytest.mark.netns, pytest.mark.usefixtures("whole_kernel")]

VM, NET, QUEUE = Path("/proc/sys/vm"), Path("/proc/sys/net"), Path("/sys/block/loop7/queue")
KSM = Path("/sys/kernel/mm/ksm")
IPV4, IPV6 = NET / "ipv4", NET / "ipv6/conf"


# /sys is of the network namespace that it was mounted in.
IN_ITS_SYSFS = ("unshare", "-m", "sh", "-c", 'mount -t sysfs sysfs /sys && exec "$@"', "sh")


@cache
def keeper() -> subprocess.Popen[bytes]:
    """A process that has the /sys of the tests' network namespace."""
    argv = (*IN_ITS_SYSFS, "sh", "-c", "echo; exec cat")
    kept = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert kept.stdout
    assert kept.stdout.readline()
    return kept


def links() -> Path:
    return Path(f"/proc/{keeper().pid}/root/sys/class/net")


def helper() -> Worker:
    return Worker(LocalProcess((*IN_ITS_SYSFS, *HELPER)), "here")


def host() -> dict[str, str]:
    """All that a row could change."""
    there: dict[str, str] = {}
    for folder in (VM, NET, QUEUE, KSM):
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.stat().st_mode & 0o444 and file.name != "stat_refresh":
                with suppress(OSError):
                    there[str(file)] = file.read_text()
    for link in json.loads(out("ip", "-j", "-d", "link")):
        name = link["ifname"]
        there[f"{name}"] = json.dumps(
            {key: link.get(key) for key in ("mtu", "gso_max_size", "gso_ipv4_max_size", "qdisc")}
        )
        there[f"{name} features"] = out("ethtool", "-k", name)
        steering = links().glob(f"{name}/queues/[rt]x-*/[rx]ps_*")
        for file in (*steering, *links().glob(f"{name}/bridge/forward_delay")):
            with suppress(OSError):  # of one queue there is no xps_cpus
                there[str(file)] = file.read_text()
    there["addresses"] = re.sub("[0-9]+sec|tentative ", "", out("ip", "address"))
    routes = re.sub("[0-9]+sec", "", out("ip", "route") + out("ip", "-6", "route"))
    there["routes"] = "".join(sorted(routes.splitlines(True)))
    return there


def write(file: Path, text: str) -> Callable[[], object]:
    """Write a file; how to write what it had."""
    before = file.read_text().strip()
    file.write_text(text)
    return lambda: file.write_text(before)


def no_router(file: Path, text: str) -> Callable[[], object]:
    """The same, where nothing is forwarded: a machine that has run containers forwards all."""
    forward = write(IPV4 / "ip_forward", "0")
    back = write(file, text)
    return lambda: [back(), forward()]


def dirty_bytes() -> Callable[[], object]:
    ratio = (VM / "dirty_ratio").read_text().strip()
    write(VM / "dirty_bytes", "536870912")
    return lambda: (VM / "dirty_ratio").write_text(ratio)  # 0 bytes cannot be written


def uppers() -> Callable[[], object]:
    out("ip", *f"link add link {NEAR} name up0 type macvlan".split())
    out("ip", *"link add link up0 name up1 type macvlan".split())
    return lambda: [out("ip", "link", "delete", name) for name in ("up0", "up1")]


def bridge() -> Callable[[], object]:
    out("ip", *"link add br7 type bridge forward_delay 0".split())
    return lambda: out("ip", "link", "delete", "br7")


def scheduler() -> Callable[[], object]:
    write(QUEUE / "scheduler", "mq-deadline")
    write(QUEUE / "nr_requests", "200")
    write(QUEUE / "iosched/read_expire", "333")
    return lambda: (QUEUE / "scheduler").write_text("none")


def steered() -> Callable[[], object]:
    """Four queues each way, steered otherwise than new ones are."""
    out("ethtool", "-L", NEAR, "rx", "4", "tx", "4")
    for name, value in (("rps_cpus", "1"), ("rps_flow_cnt", "64"), ("xps_cpus", "1")):
        for queue in (0, 3):
            way = "tx" if name == "xps_cpus" else "rx"
            write(links() / NEAR / f"queues/{way}-{queue}" / name, value)
    write(links() / NEAR / "queues/tx-2/xps_rxqs", "2")
    return lambda: out("ethtool", "-L", NEAR, "rx", "1", "tx", "1")


@contextmanager
def holding(
    interface: str, address: str = ADDRESS
) -> Iterator[tuple[HostSettings, Worker, list[Any]]]:
    """Settings on an interface, the helper that holds them, and their journal."""
    worker, journal = helper(), list[Any]()
    try:
        place = SettingContext("here", worker, address, interface)
        yield holder(place, worker, journal), worker, journal
    finally:
        worker.close()


FOUR, HUGE = "sysctl.net.ipv4", "kernel/mm/transparent_hugepage/enabled"
ALL_FOUR, ALL_SIX = f"{FOUR}.conf.all.forwarding", "sysctl.net.ipv6.conf.all.forwarding"
# What is done before, a setting and its level.
ROWS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "ratio": (dirty_bytes, "sysctl.vm.dirty_ratio", "30"),
    "bytes": (lambda: write(VM / "dirty_ratio", "21"), "sysctl.vm.dirty_bytes", "256000000"),
    "uppers": (uppers, "mtu", "1300"),
    "forward": (
        lambda: no_router(IPV4 / "conf/all/accept_redirects", "0"),
        f"{FOUR}.ip_forward",
        "1",
    ),
    "forward of one": (lambda: no_router(IPV4 / f"conf/{NEAR}/forwarding", "1"), ALL_FOUR, "1"),
    "forward six": (lambda: write(IPV6 / f"{NEAR}/forwarding", "1"), ALL_SIX, "1"),
    "mtu of six": (lambda: write(IPV6 / f"{NEAR}/mtu", "1400"), "mtu", "2000"),
    "offloads": (uppers, "sg", "off"),
    "queues": (steered, "channels", "{rx: 2, tx: 2}"),
    "huge pages": (lambda: write(VM / "min_free_kbytes", "32768"), f"sysfs.{HUGE}", "always"),
    "spanning tree": (bridge, "sysfs.class/net/br7/bridge/stp_state", "1"),
    "scheduler": (scheduler, "sysfs.block/loop7/queue/scheduler", "none"),
}
if (KSM / "advisor_mode").exists():  # Linux 6.8
    asked = "sysfs.kernel/mm/ksm/advisor_mode", "scan-time"
    ROWS["merged pages"] = lambda: write(KSM / "pages_to_scan", "1000"), *asked


OF_QUEUES = f"class/net/{NEAR}/queues"
MOVED = {
    "offloads": {"tx-tcp-segmentation": ("on", "off")},
    "queues": {
        f"{OF_QUEUES}/rx-3/rps_cpus": ("1", "none"),
        f"{OF_QUEUES}/rx-3/rps_flow_cnt": ("64", "none"),
        f"{OF_QUEUES}/tx-2/xps_rxqs": ("2", "none"),
        f"{OF_QUEUES}/tx-3/xps_cpus": ("1", "none"),
    },
}


def loses_its_controller(held: Any, worker: Worker, journal: list[Any]) -> None:
    leaves(worker)


def is_killed(held: Any, worker: Worker, journal: list[Any]) -> None:
    os.kill(worker.hello.pid, signal.SIGKILL)
    worker.abandon()
    by_journal(journal, outstanding(journal, "here"))


def by_journal(journal: list[Any], left: list[Change]) -> list[str]:
    """What a new helper did with what is left, as `restore` tells it."""
    worker = helper()
    try:
        lines = put_back({"here": There(worker, worker.hello.boot_id)}, left, journal.append, NAME)
        return [line.removeprefix("here: ") for line in lines]
    finally:
        worker.close()


@pytest.mark.parametrize("end", [loses_its_controller, is_killed])
@pytest.mark.parametrize("row", ROWS)
def test_what_moves_along_comes_back(
    interface: str, row: str, end: Callable[[Any, Worker, list[Any]], None]
) -> None:
    """The first time all around it is looked at and put back; the second what moved then."""
    prepare, name, level = ROWS[row]
    if row == "scheduler" and not (QUEUE / "scheduler").is_file():
        pytest.skip("no loop device here")
    with ExitStack() as stack:
        stack.callback(prepare())
        before = host()
        held, worker, journal = stack.enter_context(holding(interface))
        moved = held.hold(parsed([{}, {name: level}, {}])).moved
        assert moved, "something did move"
        assert MOVED.get(row, {}).items() <= moved.items()
        assert row != "queues" or moved == MOVED[row]
        assert host() != before
        held.undo()
        assert {k: v for k, v in host().items() if v != before.get(k)} == {}
        assert held.hold(parsed([{}, {name: level}, {}])).moved == moved
        end(held, worker, journal)
        assert {k: v for k, v in host().items() if v != before.get(k)} == {}


ONE, OTHER = "long-as-allowed", "other-of-long-1"


@pytest.fixture
def veth() -> Iterator[str]:
    """One that nothing was done with yet, and whose own addresses wait for nobody."""
    out("ip", *f"link add {ONE} type veth peer name {OTHER}".split())
    for name in (ONE, OTHER):
        write(IPV6 / name / "accept_dad", "0")
        out("ip", "link", "set", name, "up")
    out("ip", *f"address add 10.199.9.1/24 dev {ONE}".split())
    yield ONE
    out("ip", "link", "delete", ONE)
    write(IPV6 / "all" / "disable_ipv6", "0")


def alone() -> None:
    """IPv6 is off but for ONE."""
    write(IPV6 / "all" / "disable_ipv6", "1")
    write(IPV6 / ONE / "disable_ipv6", "0")


def advertise() -> None:
    """A default route of ONE, as a router tells it that is not there any more."""
    out("ip", *f"address add fe80::9/64 dev {OTHER} nodad".split())
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as router:
        router.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        advert = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0)
        router.sendto(advert, ("ff02::1", 0, 0, socket.if_nametoindex(OTHER)))
    while "proto ra" not in out("ip", "-6", "route", "show", "default"):
        pass


def above() -> None:
    for name, lower in (("up0", ONE), ("up1", "up0")):
        out("ip", *f"link add link {lower} name {name} type macvlan".split())
        write(IPV6 / name / "accept_dad", "0")
        out("ip", "link", "set", name, "up")


mode_0 = partial(write, IPV6 / ONE / "addr_gen_mode", "0")  # as a stable_secret sets it along
SIX, SECRET = "sysctl.net.ipv6.conf", IPV6 / ONE / "stable_secret"
OFF, OFF_ALL, ROUTER = f"{SIX}.{ONE}.disable_ipv6", f"{SIX}.all.disable_ipv6", "forwarding"
ROUTE = f"-6 route add fd00:2::/64 dev {ONE}"
LASTING = f"address add fd00:1::1/64 dev {ONE} nodad"
NEW_SECRET = "fd00" + 6 * ":0000" + ":0008"
FADING = f"{LASTING} valid_lft 2000 preferred_lft 1000"
ABOVE = "address add fd00:4::1/64 dev up1 nodad"

LASTS: list[tuple[list[str | Callable[[], object]], str, str, str]] = [
    ([], OFF, "1", "what IPv6 has been told of"),
    ([], OFF_ALL, "1", "what IPv6 has been told of"),
    ([alone], OFF_ALL, "0", "what IPv6 has been told of"),
    ([], f"{SIX}.default.disable_ipv6", "1", ""),
    ([LASTING], "mtu", "1200", "IPv6, with"),
    ([FADING], "mtu", "1300", ""),
    ([FADING, ROUTE], f"{SIX}.all.{ROUTER}", "1", ""),
    ([f"{ROUTE} proto ra"], f"{SIX}.all.{ROUTER}", "1", ""),
    ([f"-6 route add default via fe80::8 dev {ONE} proto ra"], f"{SIX}.all.{ROUTER}", "1", ""),
    ([advertise], f"{SIX}.all.{ROUTER}", "1", "router advertised"),
    ([advertise], f"{SIX}.{OTHER}.{ROUTER}", "1", "router advertised"),
    ([advertise], f"{SIX}.default.{ROUTER}", "1", ""),
    ([advertise, lambda: write(IPV6 / ONE / "accept_ra", "2")], f"{SIX}.all.{ROUTER}", "1", ""),
    ([above, ABOVE], "mtu", "1200", "IPv6, with"),
    ([above, f"route add 10.5.0.0/16 nexthop dev {ONE} nexthop dev up0"], "mtu", "1300", ""),
    ([f"{ROUTE} mtu 1400"], "mtu", "1300", "mtu 1400"),
    ([f"{ROUTE} mtu 9000"], "mtu", "1300", "mtu 9000"),
    ([f"{ROUTE} mtu 4000"], "mtu", "9000", "mtu 4000"),
    ([lambda: write(IPV6 / ONE / "mtu", "1480"), f"{ROUTE} mtu 1480"], "mtu", "9000", "mtu 1480"),
    ([f"{ROUTE} mtu 1500"], "mtu", "9000", ""),
    ([f"{ROUTE} mtu lock 1400"], "mtu", "1300", ""),
    ([lambda: SECRET.write_text("fd00::7")], "mtu", "1300", ""),
    ([lambda: SECRET.write_text("fd00::7"), mode_0], f"{SIX}.{ONE}.stable_secret", NEW_SECRET, ""),
    ([], "mtu", "1200", "IPv6, with"),  # neigh/, a token and more go with it
    ([], f"{FOUR}.tcp_fastopen_key", "-".join(4 * ["00000001"]), "it has none, and would keep"),
    ([], f"{SIX}.{ONE}.addr_gen_mode", "3", "addresses, or a stable_secret"),
]


@pytest.mark.parametrize(
    "row", LASTS, ids=[f"{i} {row[1]} {row[2]}" for i, row in enumerate(LASTS)]
)
def test_what_would_be_lost_is_refused_before_and_nothing_else(
    veth: str, row: tuple[list[str | Callable[[], object]], str, str, str]
) -> None:
    prepare, name, level, refused = row
    for step in prepare:
        _ = step() if callable(step) else out("ip", *step.split())
    before = host()
    with holding(veth, "10.199.9.1") as (held, worker, journal):
        why = pytest.raises(SettingRefused, match=refused) if refused else nullcontext()
        with why:
            held.hold(parsed([{}, {name: level}, {}]))
            assert host() != before
        is_killed(held, worker, journal)
        assert {k: v for k, v in host().items() if v != before.get(k)} == {}
        assert outstanding(journal, "here") == []


@pytest.mark.slow
def test_more_interfaces_than_a_text_has_room_for_are_an_error_and_no_loss(veth: str) -> None:
    (IPV4 / "ip_forward").write_text("0")

    def batch(lines: Iterable[str]) -> None:
        subprocess.run(("ip", "-batch", "-"), input="\n".join(lines), text=True, check=True)

    batch(f"link add many{i} type veth peer name ynam{i}" for i in range(400))
    try:
        with holding(veth, "10.199.9.1") as (held, worker, _):
            with pytest.raises(EngineError, match="is longer than 1048575 bytes"):
                worker.operate("neighbours", ("all", ""))
            with pytest.raises(SettingRefused, match="is longer than 1048575 bytes"):
                held.hold(parsed([{}, {f"{SIX}.all.hop_limit": "65"}, {}]))
            held.hold(parsed([{}, {"mtu": "1300", "sysctl.net.ipv4.ip_forward": "1"}, {}]))
            assert (IPV4 / "conf/many9/forwarding").read_text() == "1\n"
            held.undo()
            assert (IPV4 / "conf/many9/forwarding").read_text() == "0\n"
    finally:
        batch(f"link delete many{i}" for i in range(400))


def test_what_no_setting_accounts_for_is_told(interface: str, tmp_path: Path) -> None:
    """A command that puts back less than it has set."""
    ipv4 = "/proc/sys/net/ipv4"
    more = f"echo 0 > {ipv4}/tcp_dsack; ip address replace 10.9.9.9/32 dev {interface}"
    odd = {
        "apply": ["sh", "-c", f"echo {{level}} > {ipv4}/tcp_sack; {more}"],
        "read": ["cat", f"{ipv4}/tcp_sack"],
        "undo": ["sh", "-c", f"echo {{level}} > {ipv4}/tcp_sack"],
    }
    file = tmp_path / "odd.yaml"
    file.write_text(
        f"netbench: 1\nname: odd\ncommand: {json.dumps({'mine': odd})}\nsweep: {{mine: [1, 0]}}\n"
        "transfer: {duration: 50ms, warmup: 10ms, congestion: cubic}\n"
        "repeat: {min: 1, max: 1}\nverify: off\n"
    )
    try:
        done = call("run", file, "--results", tmp_path / "results")
    finally:
        Path(f"{ipv4}/tcp_dsack").write_text("1")
        out("ip", "address", "delete", "10.9.9.9/32", "dev", interface)
    told = f"here: {interface}.10.9.9.9/32 none -> address; net.ipv4.tcp_dsack 1 -> 0"
    assert (done.returncode, told in " ".join(done.stderr.split())) == (0, True), done.stderr
    result = Path(done.stdout.split()[-1])
    assert '"net.ipv4.tcp_dsack":["1","0"]' in (result / "journal.jsonl").read_text()
    report = call("report", "--full", result).stdout
    assert f"here was not left as it was: {interface}.10.9.9.9/32" in " ".join(report.split())


@pytest.mark.parametrize("steps", [1, 2], ids=["its change", "and what is around it"])
def test_a_trial_whose_undo_is_interrupted_is_undone_with_its_layer(
    interface: str, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """By the journal alone later, what was around it in the campaign would be put back for good."""
    honest, left = Worker.undo, [None] * steps

    def undo(self: Worker, scope: int = 0) -> None:
        if left:
            left.pop()
            raise KeyboardInterrupt
        honest(self, scope)

    with holding(interface) as (held, _, journal):
        before = host()
        held.hold(parsed([{"tso": "off"}]))
        monkeypatch.setattr(Worker, "undo", undo)
        with pytest.raises(KeyboardInterrupt):
            held.hold(parsed([{"tso": "off"}, {"mtu": "1300"}]))
        held.undo()
        assert outstanding(journal, "here") == []
        assert host() == before


@pytest.mark.parametrize("trials", [10, pytest.param(60, marks=pytest.mark.slow)])
def test_what_root_changes_within_a_trial_stays(interface: str, trials: int) -> None:
    """At any time of it; what the kernel moves along comes back nevertheless."""
    redirects, timeout = IPV4 / "conf/all/accept_redirects", IPV4 / "tcp_fin_timeout"
    level = parsed([{}, {f"{FOUR}.ip_forward": "1"}, {}])
    with ExitStack() as stack:
        stack.callback(write(redirects, "0"))
        stack.callback(write(timeout, "60"))
        held, worker, journal = stack.enter_context(holding(interface))
        began = time.monotonic()
        held.hold(level)
        took = time.monotonic() - began
        held.undo()
        for i in range(trials):
            fresh = holder(held.place, worker, journal)
            root = threading.Timer(took * i / trials, timeout.write_text, (f"{100 + i}",))
            root.start()
            moved = fresh.hold(level).moved
            root.join()
            assert "net.ipv4.tcp_fin_timeout" not in moved
            fresh.undo()
            assert (timeout.read_text(), redirects.read_text()) == (f"{100 + i}\n", "0\n")


@pytest.mark.parametrize(
    ("step", "name", "value", "refused"),
    [
        (LASTING, "mtu", "1200", "IPv6, with"),
        (f"route add 10.5.0.0/16 dev {ONE}", "flags", "0x1002", "addresses and routes"),
        (f"route add 10.5.0.0/16 dev {ONE}", "flags", "0x1103", ""),
    ],
)
def test_what_files_of_an_interface_would_lose_is_refused(
    veth: str, step: str, name: str, value: str, refused: str
) -> None:
    out("ip", *step.split())
    before, worker = host(), helper()
    try:
        with pytest.raises(EngineError, match=refused) if refused else nullcontext():
            worker.operate("file", f"/sys/class/net/{veth}/{name}", value, hold=True)
        assert (host() == before) == bool(refused)
        worker.undo()
        assert host() == before
    finally:
        worker.close()


def test_texts_are_bounded_and_hold_no_secret(veth: str) -> None:
    sack = f"file:0 {IPV4}\n tcp_sack"
    SECRET.write_text("fd00::7")
    worker = Worker(open_channel(Host("here")).start_helper(), "here")
    try:
        assert "stable_secret" not in worker.operate("neighbours", ("file", str(SECRET)))[0]
        for long in ("", f"\nfile:0 {'/x' * 4000}\n x", "\n " + "x" * 60_000):
            assert worker.operate("neighbours", ("only", sack + long))[0] == f"{sack} 1\n"
        with pytest.raises(EngineError, match="a target of 65537 bytes"):
            worker.operate("neighbours", ("only", "x" * 65537))
        for cut in (
            f"file:0 {'/' * 5000}{IPV4}\n tcp_sack 0\n",
            f"file:0 {IPV4}\n tcp_sack 0{' ' * 5000}\n",
            f"file:0\n{IPV4}\n tcp_sack 0\n",
            f"link:0 {veth}{'x' * 5000}\n mtu 1300\n",
            f"state:0 {veth}\n tcp_sack 0\n",
            "\n \n",
        ):
            worker.operate("neighbours", ("only", sack), cut, restore=True)
            assert (IPV4 / "tcp_sack").read_text() == "1\n"
        worker.operate("neighbours", ("only", sack), f"{sack} 0\n", hold=False, restore=True)
        assert (IPV4 / "tcp_sack").read_text() == "0\n"
    finally:
        (IPV4 / "tcp_sack").write_text("1")
        worker.close()
