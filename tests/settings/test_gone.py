"""Interfaces that go while their settings are changed, and others that are made under their names:
what was held of one is gone with it, whoever undoes. Seen by other means than netbench's.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import pytest

from netbench.base.errors import EngineError
from netbench.engine.worker import Worker
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


@pytest.mark.parametrize("is_asked", [True, False])
def test_one_with_another_name_has_not_gone_and_who_has_its_name_is_left(is_asked: bool) -> None:
    """Nor what moved along: none of it is put back before its interface has its name again."""
    before = (*seen(), IPV6_MTU.read_text())
    with holding("v0") as (held, worker, journal):
        held.hold(parsed([{}, {"mtu": "1400", "sg": "off"}, {}]))
        rename("v0", "w0")
        make("w1")
        out("ip", "link", "set", "v0", "mtu", "1350")
        out("ethtool", "-K", "v0", "tso", "off", "gso", "off")
        others = (*seen(), IPV6_MTU.read_text())
        if is_asked:
            with pytest.raises(EngineError, match="what moved along is called w0 now"):
                worker.undo()
        dies(held, worker, journal)
        with pytest.raises(EngineError, match=r"the interface \d+ v0 is \d+ w0 now"):
            by_journal(journal, outstanding(journal, "here"))
        assert (*seen(), IPV6_MTU.read_text()) == others
        goes()
        rename("w0", "v0")
        lines = by_journal(journal, outstanding(journal, "here"))
        assert lines[0] == "sg (features v0): put back"
        assert (*seen(), IPV6_MTU.read_text()) == before
        assert outstanding(journal, "here") == []


def above(act: str = "add link v0 name m0 type macvlan") -> str:
    """The mtu of a macvlan on v0 once that was done, as `ip` says it."""
    out("ip", "link", *act.split())
    shown = out("ip", "-o", "link", "show", "type", "macvlan")
    return shown.partition(" mtu ")[2].partition(" ")[0]


def test_one_made_above_comes_back_and_another_of_its_name_is_left() -> None:
    shorter = parsed([{}, {"mtu": "1400"}, {}])
    with holding("v0") as (held, _, _):
        held.hold(shorter)
        held.undo()
        assert above() == "1500"
        for was in "1500", "1400":
            held.hold(shorter)
            assert above("set m0 up") == "1400"
            if was == "1400":
                above("delete m0")
                above()
            held.undo()
            assert above("set m0 up") == was


def test_one_above_with_another_name_waits_for_its_own() -> None:
    above()
    with holding("v0") as (held, worker, journal):
        held.hold(parsed([{}, {"mtu": "1400"}, {}]))
        above("set m0 name m1")
        with pytest.raises(EngineError, match="the interface of m0 is called m1 now"):
            held.undo()
        dies(held, worker, journal)
        with pytest.raises(EngineError, match="the interface of m0 is called m1 now"):
            by_journal(journal, outstanding(journal, "here"))
        assert above("set m1 name m0") == "1400"
        by_journal(journal, outstanding(journal, "here"))
        assert above("set m0 up") == "1500"
    assert outstanding(journal, "here") == []


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
