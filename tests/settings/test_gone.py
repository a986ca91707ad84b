"""Interfaces that go while their settings are changed, and others made under their names."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import pytest

from netbench.engine.worker import Worker
from netbench.settings.neighbours import difference, parse
from tests.settings.test_neighbours import by_journal, holding, loses_its_controller
from tests.settings.test_settings import OFFLOADS, ethtool, parsed
from tests.support.local import call, out
from tests.support.running import Running
from tests.support.unfinished import outstanding

pytestmark = [pytest.mark.root, pytest.mark.netns, pytest.mark.usefixtures("whole_kernel", "v0")]

IPV4 = Path("/proc/sys/net/ipv4")
IPV6_MTU = Path("/proc/sys/net/ipv6/conf/v0/mtu")
FILE, SACK = IPV4 / "conf/v0/rp_filter", IPV4 / "tcp_sack"
FILTER = "sysctl.net.ipv4.conf.v0.rp_filter"
LEVELS = {
    "sysctl.net.ipv4.tcp_sack": "0",
    "mtu": "1400",
    "sg": "off",
    "qdisc": "pfifo_fast",
    FILTER: "1",
    "rps": "0",
}
CAMPAIGN = """\
netbench: 1
name: gone
hosts: {a: {address: 127.0.0.1, interface: v0}}
transfer: {duration: 100ms, warmup: 10ms, congestion: cubic}
settings: {mtu: 1400, tso: off}
verify: off
repeat: {min: 40, max: 40}
"""


def make(peer: str = "v1") -> None:
    out("ip", *f"link add v0 type veth peer name {peer}".split())
    for name in ("v0", peer):
        out("ip", "link", "set", name, "up")


@pytest.fixture
def v0() -> Iterator[None]:
    make()
    yield
    for name in ("v0", "w0"):
        with suppress(CalledProcessError):
            out("ip", "link", "delete", name)


def goes() -> None:
    out("ip", "link", "delete", "v0")


def rename(name: str, new: str) -> None:
    out("ip", "link", "set", name, "down")
    out("ip", "link", "set", name, "name", new, "up")


def is_made_anew() -> None:
    """It reads as the old one did, also what had moved along there."""
    goes()
    make()
    out("ip", "link", "set", "v0", "mtu", "1400")
    out("ethtool", "-K", "v0", "sg", "off")


def seen() -> list[str]:
    """What independent tools say of interfaces."""
    there = [ethtool("v0", OFFLOADS[name]) for name in ("sg", "tso")] if FILE.exists() else []
    return [*there, out("ip", "-o", "link")]


def dies(held: Any, worker: Worker, journal: list[Any]) -> None:
    os.kill(worker.hello.pid, signal.SIGKILL)
    worker.abandon()


def undoes(held: Any, worker: Worker, journal: list[Any]) -> None:
    """As a campaign does that goes on."""
    held.undo()
    assert outstanding(journal, "here") == []


@pytest.mark.parametrize("becomes", [goes, is_made_anew])
@pytest.mark.parametrize("end", [loses_its_controller, dies, undoes])
def test_what_an_interface_held_is_gone_with_it(
    becomes: Callable[[], None], end: Callable[..., None]
) -> None:
    with holding("v0") as (held, worker, journal):
        held.hold(parsed([{}, LEVELS, {}]))
        assert SACK.read_text() == "0\n"
        becomes()
        before = seen()
        end(held, worker, journal)
        lines = by_journal(journal, outstanding(journal, "here"))
        gone = [line.split()[0] for line in lines if ": gone with v0," in line]
        assert gone == ([] if end is undoes else ["rps", FILTER, "qdisc", "sg", "mtu"]), lines
        assert outstanding(journal, "here") == []
        assert (seen(), SACK.read_text()) == (before, "1\n")


@pytest.mark.parametrize("end", [loses_its_controller, dies, undoes])
def test_one_renamed_is_put_back_and_who_has_its_name_is_left(end: Callable[..., None]) -> None:
    was = [file.read_text() for file in (IPV6_MTU, FILE)]
    above()
    with holding("v0") as (held, worker, journal):
        held.hold(parsed([{}, {"mtu": "1400", "sg": "off", FILTER: "1"}, {}]))
        rename("v0", "w0")
        above("set m0 name m1")
        make("w1")
        out("ip", "link", "set", "v0", "mtu", "1350")
        out("ethtool", "-K", "v0", "tso", "off", "gso", "off")
        others = [*seen()[:2], out("ip", "-o", "link", "show", "v0"), IPV6_MTU.read_text()]
        end(held, worker, journal)
        by_journal(journal, outstanding(journal, "here"))
        assert outstanding(journal, "here") == []
    assert [*seen()[:2], out("ip", "-o", "link", "show", "v0"), IPV6_MTU.read_text()] == others
    there = (Path(str(file).replace("v0", "w0")) for file in (IPV6_MTU, FILE))
    assert [file.read_text() for file in there] == was
    assert (ethtool("w0", OFFLOADS["sg"]), above("set m1 up")) == ("on", "1500")
    assert difference(parse("link:7 m0\n mtu 1500\n"), parse("link:7 m1\n mtu 1400\n"))


def above(act: str = "add link v0 name m0 type macvlan") -> str:
    """The mtu of a macvlan on v0 once that was done, as `ip` says it."""
    out("ip", "link", *act.split())
    shown = out("ip", "-o", "link", "show", "type", "macvlan")
    return shown.partition(" mtu ")[2].partition(" ")[0]


@pytest.mark.parametrize("end", [loses_its_controller, dies, undoes])
def test_what_others_change_while_it_is_held_is_left(end: Callable[..., None]) -> None:
    """Also where a client holds what it does not change."""
    above()
    rp_filter = IPV4 / "conf/m0/rp_filter"
    with holding("v0") as (held, worker, journal):
        worker.operate("file", (str(SACK),), hold=True)
        own = {"mtu": "1400", "tso": "off", "sysctl.net.ipv4.conf.v0.rp_filter": "2"}
        held.hold(parsed([{}, own, {}]))
        above("set m0 mtu 1350")
        out("ethtool", "-K", "v0", "gro", "off")
        for file, value in ((rp_filter, "1"), (SACK, "0")):
            file.write_text(value)
        end(held, worker, journal)
        by_journal(journal, outstanding(journal, "here"))
        assert outstanding(journal, "here") == []
    now = above("set m0 up"), rp_filter.read_text(), SACK.read_text()
    SACK.write_text("1")
    assert now == ("1350", "1\n", "0\n")
    assert [ethtool("v0", OFFLOADS[name]) for name in ("tso", "gro")] == ["on", "off"]


def test_one_made_above_comes_back_and_another_of_its_name_is_left() -> None:
    shorter = parsed([{}, {"mtu": "1400"}, {}])
    with holding("v0") as (held, _, _):
        held.hold(shorter)
        held.undo()
        above()
        for was in "1400", "1500":
            above(f"set m0 mtu {was}")
            held.hold(shorter)
            held.undo()
            assert above("set m0 up") == was
        held.hold(shorter)
        above("delete m0")
        above()
        held.undo()
        assert above("set m0 up") == "1400"


def test_what_a_sysctl_of_all_moves_comes_back_to_one_made_between_two_cells() -> None:
    with holding("v0") as (held, _, _):
        for _ in range(2):
            above()
            (IPV4 / "conf/m0/forwarding").write_text("1")
            held.hold(parsed([{}, {"sysctl.net.ipv4.ip_forward": "1"}, {}]))
            held.undo()
            assert (IPV4 / "conf/m0/forwarding").read_text() == "1\n"
            above("delete m0")


def test_one_named_like_a_word_of_paths_takes_nothing_else_along() -> None:
    own = IPV4 / "conf/lo/forwarding"
    own.write_text("1")
    rename("v0", "ipv4")
    with holding("ipv4") as (held, worker, journal):
        held.hold(parsed([{}, {"mtu": "1400", "sysctl.net.ipv4.conf.all.forwarding": "1"}, {}]))
        dies(held, worker, journal)
        out("ip", "link", "delete", "ipv4")
        by_journal(journal, outstanding(journal, "here"))
    assert own.read_text() == "1\n", "of lo, which moved along"
    own.write_text("0")


def test_the_end_of_a_campaign_and_restore_say_so(tmp_path: Path) -> None:
    running = Running(tmp_path, tmp_path / "r", CAMPAIGN)
    running.await_records(2)
    goes()
    _, said = running.end()
    assert "a: tso, mtu: gone with v0," in said
    assert "no setting accounts" not in said
    assert call("restore", running.folder).stdout == "nothing is left to put back\n"
    make()
    running = Running(tmp_path, tmp_path / "s", CAMPAIGN)
    running.await_records(2)
    helpers = running.workers("helper")
    for pid in (running.process.pid, *helpers):
        os.kill(pid, signal.SIGKILL)
    running.end()
    goes()
    done = call("restore", running.folder)
    assert (done.returncode, done.stdout.count(": gone with v0,")) == (0, 2), done
    assert call("restore", running.folder).stdout == "nothing is left to put back\n"
