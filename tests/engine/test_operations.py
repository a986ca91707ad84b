"""Operations of a worker on real interfaces, as ethtool, ip and tc see them."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from netbench.base.errors import EngineError
from netbench.engine.binding import Code
from netbench.engine.worker import Worker
from tests.support.engine_pair import helper
from tests.support.local import out, ran
from tests.support.needs import needs
from tests.support.running import wait_for
from tests.support.sshd import open_folder

DATA, PEER = "data0", "peer0"
ADDRESS, NEIGHBOUR, FAR, FAR6 = "10.91.0.1", "10.91.0.2", "203.0.113.7", "2001:db8:7::1"
NUMBERS = itertools.count()
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@dataclass(frozen=True)
class Namespace:
    """A network namespace with both ends of a veth: DATA, with addresses and two queues, and PEER."""

    name: str

    def run(self, *argv: str) -> str:
        return out("ip", "netns", "exec", self.name, *argv)

    def worker(self) -> contextlib.AbstractContextManager[Worker]:
        return helper("ip", "netns", "exec", self.name)

    def json(self, *argv: str) -> Any:
        return json.loads(self.run(*argv) or "[]")

    def link(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json("ip", "-j", "-d", "link", "show", DATA)[0]
        return found

    def features(self) -> str:
        return self.run("ethtool", "-k", DATA)

    def qdiscs(self, handle: bool = True) -> list[dict[str, Any]]:
        """What tc says of DATA's qdiscs, without counts; if asked for, without the kernel's handles."""
        left_out = {"refcnt"} if handle else {"refcnt", "handle", "parent"}
        found = self.json("tc", "-j", "qdisc", "show", "dev", DATA)
        for one in found:
            one.get("options", {}).pop("direct_packets_stat", None)
        return [{key: value for key, value in one.items() if key not in left_out} for one in found]


def need(*tools: str) -> None:
    if missing := [tool for tool in tools if not shutil.which(tool)]:
        pytest.skip(f"needs {', '.join(missing)}: apt-get install ethtool iproute2")


@contextlib.contextmanager
def namespace() -> Iterator[Namespace]:
    need("ip", "ethtool", "tc")
    name = f"nbops-{os.getpid()}-{next(NUMBERS)}"
    out("ip", "netns", "add", name)
    try:
        here = Namespace(name)
        queues = ("numtxqueues", "2", "numrxqueues", "2")
        here.run("ip", "link", "add", "dev", DATA, *queues, "type", "veth", "peer", "name", PEER)
        here.run(*f"ip address add {ADDRESS}/24 dev {DATA} label {DATA}:1".split())
        for interface in ("lo", DATA, PEER):
            here.run("ip", "link", "set", "dev", interface, "up")
        yield here
    finally:
        out("ip", "netns", "delete", name)


@pytest.fixture
@needs("root", "netns")
def here() -> Iterator[Namespace]:
    with namespace() as made:
        yield made


@pytest.fixture
def worker(here: Namespace) -> Iterator[Worker]:
    with here.worker() as opened:
        yield opened


def read(worker: Worker, op: str, *target: str) -> str:
    return worker.operate(op, target)[0]


def change(
    worker: Worker, op: str, target: tuple[str, ...] | str, value: str, scope: int = 0
) -> str:
    """What an operation that is held reads afterwards."""
    after = worker.operate(op, target, value, hold=True, scope=scope)[1]
    assert after is not None
    assert after == worker.operate(op, target)[0]
    return after


def fields(text: str) -> dict[str, str]:
    return {
        key.strip(): value.strip()
        for key, _, value in (line.partition(":") for line in text.splitlines())
    }


def refusal(worker: Worker, *words: Any, **more: Any) -> EngineError:
    with pytest.raises(EngineError) as caught:
        worker.operate(*words, **more)
    assert caught.value.remedy, f"says what to do: {caught.value}"
    return caught.value


# Features

# ethtool(8) has names of its own for some, and headings for others.
OF_ETHTOOL = {
    "rx-checksumming": "rx-checksum",
    "generic-segmentation-offload": "tx-generic-segmentation",
    "generic-receive-offload": "rx-gro",
    "large-receive-offload": "rx-lro",
    "rx-vlan-offload": "rx-vlan-hw-parse",
    "tx-vlan-offload": "tx-vlan-hw-insert",
    "ntuple-filters": "rx-ntuple-filter",
    "receive-hashing": "rx-hashing",
}
HEADINGS = {"tx-checksumming", "scatter-gather", "tcp-segmentation-offload"}


def ethtool_features(text: str) -> dict[str, str]:
    found = fields(text.partition("\n")[2])
    return {
        OF_ETHTOOL.get(name, name): state for name, state in found.items() if name not in HEADINGS
    }


def test_features_that_go_with_another_come_back_with_it(here: Namespace, worker: Worker) -> None:
    """Without scatter-gather there is no TSO; one that was asked for, but not active, is so again."""
    here.run("ethtool", "-K", DATA, "tx-gso-list", "off", "rx-gro-list", "on", "gro", "off")
    here.run("ethtool", "-K", PEER, "tx-checksum-ip-generic", "off")
    text = read(worker, "features", DATA)
    assert fields(text) == ethtool_features(here.features())
    assert "[fixed]" in text
    before, peer = here.features(), here.run("ethtool", "-k", PEER)
    assert "tcp-segmentation-offload: on" in before
    assert "off [requested on]" in peer
    change(worker, "features", DATA, "tx-scatter-gather off\ntx-scatter-gather-fraglist off\n")
    during = ethtool_features(here.features())
    assert during["tx-scatter-gather"] == "off"
    assert during["tx-tcp-segmentation"] == "off [requested on]"
    assert fields(read(worker, "features", DATA)) == during
    change(worker, "features", PEER, "tx-checksum-ip-generic on\nrx-checksum off\nrx-lro on")
    peer_during = ethtool_features(here.run("ethtool", "-k", PEER))
    assert (peer_during["tx-checksum-ip-generic"], peer_during["rx-checksum"]) == ("on", "off")
    assert "off [requested on]" not in here.run("ethtool", "-k", PEER)
    worker.undo()
    assert here.features() == before
    assert here.run("ethtool", "-k", PEER) == peer


def test_what_is_no_feature_is_refused(here: Namespace, worker: Worker) -> None:
    before = here.features()
    error = refusal(worker, "features", DATA, "rx-gro on\nwarp-drive on", hold=True)
    assert error.code == Code.UNSUPPORTED
    assert "a feature is on or off" in str(refusal(worker, "features", DATA, "rx-gro 1"))
    assert here.features() == before, "all or nothing"
    # A fixed one is no error: reading it again shows it.
    assert "rx-lro: off [fixed]\n" in change(worker, "features", DATA, "rx-lro on\n")


# Rings, coalescing, channels, drivers, counters


def test_channels_are_those_of_ethtool(here: Namespace, worker: Worker) -> None:
    def theirs() -> dict[str, str]:
        """What the device does not have is 0."""
        text = here.run("ethtool", "-l", DATA).lower().replace("n/a", "0")
        most, now = (
            {key: number for key, number in fields(part).items() if number.isdecimal()}
            for part in text.split("current hardware settings:")
        )
        return now | {f"{key}_max": number for key, number in most.items()}

    before = here.run("ethtool", "-l", DATA)
    assert fields(read(worker, "channels", DATA)) == theirs()
    assert theirs()["tx"] == "2"
    change(worker, "channels", DATA, "tx 1\n")
    change(worker, "channels", DATA, "rx 1\ntx 1\n")
    assert fields(read(worker, "channels", DATA)) == theirs()
    assert (theirs()["rx"], theirs()["tx"], theirs()["rx_max"]) == ("1", "1", "2")
    assert "channels of data0" in str(refusal(worker, "channels", DATA, "rx 64", hold=True))
    worker.undo()
    assert here.run("ethtool", "-l", DATA) == before


def test_coalescing_is_that_of_ethtool(here: Namespace, worker: Worker) -> None:
    """Of a tap: the one device without hardware that has any."""
    here.run("ip", "tuntap", "add", "dev", "tap0", "mode", "tap")
    before, text = here.run("ethtool", "-c", "tap0"), read(worker, "coalesce", "tap0")
    after = change(worker, "coalesce", "tap0", "rx_frames 16\n")
    assert re.search(r"rx-frames:\s+16\n", here.run("ethtool", "-c", "tap0"))
    assert set(after.splitlines()) - set(text.splitlines()) == {"rx_frames: 16"}
    worker.undo()
    assert here.run("ethtool", "-c", "tap0") == before
    assert refusal(worker, "coalesce", DATA).code == Code.UNSUPPORTED


def test_drivers_and_statistics_are_those_of_ethtool(here: Namespace, worker: Worker) -> None:
    theirs, found = fields(here.run("ethtool", "-i", DATA)), fields(read(worker, "driver", DATA))
    assert (found["driver"], found["version"]) == (theirs["driver"], theirs["version"])
    assert "bus" not in found, "veth has none, and tells none"
    link = fields(here.run("ethtool", DATA))
    assert [found["speed"] + "Mb/s", found["duplex"]] == [link["Speed"], link["Duplex"].lower()]
    assert read(worker, "driver", "lo") == "" or "driver" in fields(read(worker, "driver", "lo"))
    theirs = fields(here.run("ethtool", "-S", DATA))
    assert fields(read(worker, "statistics", DATA)) == {k: v for k, v in theirs.items() if v}
    assert int(theirs["peer_ifindex"]) > 0
    assert refusal(worker, "statistics", "lo").code == Code.UNSUPPORTED


# Links


def test_links_are_those_of_ip(here: Namespace, worker: Worker) -> None:
    before = here.run("ip", "-d", "link", "show", DATA)
    levels = [("mtu", 9000), ("txqueuelen", 77), ("gso_max_size", 131072), ("gro_max_size", 40000)]
    for key, value in (*levels, ("tso_max_size", None), ("mtu", 1400)):
        theirs = "txqlen" if key == "txqueuelen" else key
        assert read(worker, "link", DATA, key) == f"{here.link()[theirs]}\n"
        if value:
            assert change(worker, "link", (DATA, key), str(value)) == f"{value}\n"
            assert here.link()[theirs] == value
    worker.undo()
    assert here.run("ip", "-d", "link", "show", DATA) == before


def test_the_state_of_a_link_is_told(here: Namespace, worker: Worker) -> None:
    wait_for(lambda: read(worker, "link", DATA, "state") == "up\n")
    assert read(worker, "link", "lo", "state") == "up\n"
    here.run("ip", "link", "set", "dev", PEER, "down")
    wait_for(lambda: read(worker, "link", DATA, "state") == "no carrier\n")
    here.run("ip", "link", "set", "dev", DATA, "down")
    assert read(worker, "link", DATA, "state") == "down\n"
    assert "cannot be set" in str(refusal(worker, "link", (DATA, "state"), "up"))


OF_INTERFACE = "features rings coalesce channels qdisc driver statistics link".split()


def test_an_interface_goes_by_its_own_name(here: Namespace, worker: Worker) -> None:
    """What is allowed, and what is looked at around a change, goes by that."""
    here.run("ip", "link", "property", "add", "dev", DATA, "altname", "ensx")
    for op in OF_INTERFACE:
        more = ("mtu",) if op == "link" else ()
        error = refusal(worker, op, ("ensx", *more))
        assert f"'ensx' is another name of the interface {DATA}" in str(error)
        assert error.remedy == f"write {DATA}"
        assert "no interface 'eth9' on this host" in str(refusal(worker, op, ("eth9", *more)))
        for name in ("", "..", "a/b", "x" * 16):
            said = str(refusal(worker, op, (name, *more)))
            assert re.search("not the name of an interface|no interface", said)


@pytest.mark.root
def test_what_a_mount_must_not_have_no_option_can_give_back(tmp_path: Path) -> None:
    words, folder = tmp_path / "words", str(tmp_path / "folder")
    program = tmp_path / "mount"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {words}\n')
    program.chmod(0o755)
    (tmp_path / "filesystems").write_text("nodev\tnfs4\n")
    known = f'mount --bind {tmp_path}/filesystems /proc/filesystems && PATH={tmp_path}:$PATH "$@"'
    with helper("unshare", "--mount", "sh", "-c", known, "sh") as worker:
        worker.operate("mount", folder, "-h:/srv\nvers=4.2,rw,suid,dev,exec")
        for source in ("/srv", "", "--bind"):
            assert "is not a mount request" in str(
                refusal(worker, "mount", folder, f"{source}\nvers=4.2")
            )
    *_, options, end, source, place = words.read_text().splitlines()
    assert options == "vers=4.2,rw,suid,dev,exec,ro,nosuid,nodev,noexec,noatime"
    assert (end, source, place) == ("--", "-h:/srv", folder)


# Queueing disciplines

PROBED = "pfifo bfifo pfifo_fast fq fq_codel codel sfq pie cake mq noqueue".split()


def kinds_here(here: Namespace) -> list[str]:
    """Kinds that this kernel has, as tc(8) finds out."""
    found = []
    for kind in PROBED:
        with contextlib.suppress(subprocess.CalledProcessError):
            here.run("tc", "qdisc", "replace", "dev", DATA, "root", kind)
            found.append(kind)
            here.run("tc", "qdisc", "delete", "dev", DATA, "root")
    return found


def test_qdiscs_are_set_as_by_tc(here: Namespace, worker: Worker) -> None:
    before = here.qdiscs()
    kinds = kinds_here(here)
    assert {"pfifo", "noqueue"} <= set(kinds)
    for kind in kinds:
        here.run("tc", "qdisc", "replace", "dev", DATA, "root", kind)
        theirs = here.qdiscs(handle=False)
        here.run("tc", "qdisc", "delete", "dev", DATA, "root")
        text = change(worker, "qdisc", DATA, kind)
        assert here.qdiscs(handle=False) == theirs
        root = next(one for one in here.qdiscs() if one.get("root"))
        assert text.splitlines()[0].split()[:3] == ["root", kind, root["handle"]]
        worker.undo()
        assert here.qdiscs() == before
    for kind in kinds:  # each over the last
        change(worker, "qdisc", DATA, kind, scope=7)
    for kind in ("nosuchkind", *sorted(set(PROBED) - set(kinds))):
        error = refusal(worker, "qdisc", DATA, kind, hold=True, scope=7)
        assert error.code == Code.UNSUPPORTED
        assert f"this kernel has no qdisc '{kind}'" in str(error)
    worker.undo()
    assert here.qdiscs() == before


def test_a_root_of_the_hosts_own_is_left_alone(here: Namespace, worker: Worker) -> None:
    for root in ("handle 5: pfifo limit 77", "handle 6: htb default 1"):
        here.run("tc", "qdisc", "replace", "dev", DATA, "root", *root.split())
        before = here.qdiscs()
        error = refusal(worker, "qdisc", DATA, "pfifo", hold=True)
        assert error.code == Code.UNSUPPORTED
        assert "was set by another program, and could not be restored" in str(error)
        with here.worker() as another:  # as from a journal that somebody wrote
            for theirs in ("root htb 6: 0800", "root pfifo 5:"):
                with pytest.raises(EngineError, match=f"(?s)'{theirs[:5]}.*' is not a qdisc"):
                    another.operate("qdisc", DATA, theirs, restore=True)
        worker.undo()
        assert here.qdiscs() == before


# Addresses


def test_places_of_addresses_are_those_of_ip(here: Namespace, worker: Worker) -> None:
    here.run("ip", "route", "add", f"{FAR}/32", "via", NEIGHBOUR)
    assert read(worker, "interface", ADDRESS) == f"{DATA}\n"
    assert read(worker, "interface", "127.0.0.1") == "lo\n"
    assert read(worker, "interface", "127.0.0.9") == "lo\n", "all of its net"
    error = refusal(worker, "interface", "10.91.0.77")
    assert "no interface of this host has the address 10.91.0.77" in str(error)
    addresses = [NEIGHBOUR, FAR, ADDRESS, "127.0.0.1"]
    if Path("/proc/sys/net/ipv6").exists():
        here.run("ip", "address", "add", "2001:db8::1/64", "dev", DATA, "nodad")
        here.run("ip", "route", "add", f"{FAR6}/128", "via", "2001:db8::9")
        addresses += ["2001:db8::7", FAR6, "::1"]
        assert read(worker, "interface", "2001:0db8::0001") == f"{DATA}\n"
    for address in addresses:
        route = here.json("ip", "-j", "route", "get", address)[0]
        expected = {"interface": route["dev"]}
        expected |= {"gateway": route["gateway"]} if "gateway" in route else {}
        assert fields(read(worker, "route", address)) == expected
    assert "no route to 198.51.100.1" in str(refusal(worker, "route", "198.51.100.1"))
    assert "not an IP address" in str(refusal(worker, "route", "localhost"))


# Undoing


TTL = "/proc/sys/net/ipv4/ip_default_ttl"


def test_everything_is_undone_when_the_controller_is_gone(here: Namespace) -> None:
    before = here.link(), here.features(), here.qdiscs()
    told, into = os.pipe()
    controller = os.fork()
    if controller == 0:
        with contextlib.suppress(BaseException):
            worker = here.worker().__enter__()
            change(worker, "link", (DATA, "mtu"), "9000", scope=0)
            change(worker, "features", DATA, "tx-scatter-gather off", scope=1)
            change(worker, "qdisc", DATA, "pfifo", scope=2)
            os.write(into, b"%d" % worker.hello.pid)
            signal.pause()
        os._exit(0)
    os.close(into)
    with open(told) as pipe:
        pid = os.read(pipe.fileno(), 20).decode()
        assert here.link()["mtu"] == 9000
        os.kill(controller, signal.SIGKILL)
        os.waitpid(controller, 0)
    wait_for(lambda: not Path(f"/proc/{pid}/exe").exists())
    assert (here.link(), here.features(), here.qdiscs()) == before


def test_a_long_undo_shows_life_while_it_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after GOODBYE: the controller waits as long as heartbeats come."""
    log = tmp_path / "log"
    with helper() as worker:
        for i in range(3):
            worker.operate("exec", ["true"], undo=["sh", "-c", f"sleep 1.7; echo {i} >> {log}"])
        monkeypatch.setattr("netbench.engine.binding.SILENCE_SECONDS", 4)
        monkeypatch.setattr("netbench.engine.worker.GOODBYE_SECONDS", 0)
    assert log.read_text() == "2\n1\n0\n"


# Files


@pytest.mark.root
def test_a_choice_is_put_back_by_its_word() -> None:
    path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not path.exists() or not os.access(path, os.W_OK):
        pytest.skip("needs a kernel with transparent huge pages")
    before = path.read_text()
    word = re.search(r"\[(\w+)\]", before)
    assert word is not None
    other = next(choice for choice in re.findall(r"\w+", before) if choice != word[1])
    try:
        with helper() as worker:
            assert f"[{other}]" in change(worker, "file", str(path), other)
            assert f"[{other}]" in path.read_text()
            worker.undo()
            assert path.read_text() == before
    finally:
        path.write_text(word[1])


# Locks


def take(worker: Worker, what: str, holder: str) -> str:
    """Who has a lock once this worker has asked for it; "not OTHER" when it was refused."""
    try:
        after = worker.operate("lock", what, holder, hold=True)[1]
    except EngineError as error:
        found = re.fullmatch(r"locked by (\S+), process \d+", error.message)
        return f"not {found[1]}" if found and error.code == Code.REQUEST else str(error)
    assert after is not None
    return after.partition("\n")[0]


def holder(worker: Worker, what: str) -> str:
    """Who has a lock; "": nobody."""
    return read(worker, "lock", what).partition("\n")[0]


def take_in_time(worker: Worker, what: str, holder: str) -> None:
    """The kernel's lock is one for the whole machine: another test may hold it for a while."""
    wait_for(lambda: take(worker, what, holder) == holder)


def test_a_host_is_locked_by_one_holder(here: Namespace) -> None:
    with here.worker() as other, namespace() as elsewhere, elsewhere.worker() as far:
        with here.worker() as first, here.worker() as second:
            assert holder(first, "host") == ""
            assert take(first, "host", "one") == "one"
            assert take(first, "host", "one") == "one", "its own"
            assert take(other, "host", "two") == "not one"
            assert take(second, "host", "one") == "one", "another worker of the same campaign"
            assert read(other, "lock", "host") == f"one\n{first.hello.pid}\n{second.hello.pid}\n"
            assert take(first, "host", "two") == "not one", "a name is for life"
            assert take(far, "host", "two") == "two", "another namespace is another host"
            first.undo()
            assert holder(other, "host") == "one", "never undone"
            os.kill(first.hello.pid, signal.SIGKILL)
            wait_for(lambda: read(other, "lock", "host") == f"one\n{second.hello.pid}\n")
            assert take(other, "host", "two") == "not one", "each of them holds it"
        assert take(other, "host", "two") == "two", "free once its process has left"


def test_the_first_network_namespace_has_a_number_of_its_own(here: Namespace) -> None:
    """It alone has what no namespace has of its own."""
    with here.worker() as apart, helper() as beside:
        backlog = Path("/proc/sys/net/core/netdev_max_backlog")
        assert (beside.hello.network == 1, apart.hello.network == 1) == (backlog.exists(), False)


def test_a_kernel_is_locked_across_namespaces(here: Namespace) -> None:
    with here.worker() as other, namespace() as there, there.worker() as far, helper() as beside:
        with here.worker() as first:
            mine = f"mine-{os.getpid()}"
            take_in_time(first, "kernel", mine)
            assert holder(far, "kernel") == mine
            for worker in (other, far, beside):
                assert take(worker, "kernel", "theirs") == f"not {mine}"
            assert take(other, "kernel", mine) == mine, "another worker of the same campaign"
            assert take(far, "host", "theirs") == "theirs", "the host's is another lock"
            for each in (first, other):
                os.kill(each.hello.pid, signal.SIGKILL)
            take_in_time(far, "kernel", "theirs")
        assert take(beside, "kernel", mine) == "not theirs"


def lock_file(here: Namespace) -> Path:
    """The file of a namespace's lock, as root has it."""
    info = here.run("stat", "--dereference", "--format=%d-%i", "/proc/self/ns/net").strip()
    return Path(f"/run/netbench/locks/host-{info}")


@pytest.mark.root
def test_what_locks_hold_is_roots_alone(here: Namespace, worker: Worker) -> None:
    assert take(worker, "host", "me") == "me"
    file = lock_file(here)
    assert file.read_text() == f"me\n{worker.hello.pid}\n"
    found = [(path.stat().st_uid, path.stat().st_mode & 0o777) for path in (file.parent, file)]
    assert found == [(0, 0o700), (0, 0o600)]
    assert not file.parent.parent.stat().st_mode & 0o022
    file.write_bytes(b"a\x1b[31m\tb\xff" + b"x" * 100)
    with here.worker() as other:
        assert holder(other, "host") == "a?[31m?b?" + "x" * 51, "no control character, 60 at most"


@pytest.mark.root
@pytest.mark.parametrize(
    "trap", ["a link", "a folder of another account", "a folder that all may write"]
)
def test_a_folder_of_locks_that_others_may_write_is_not_used(here: Namespace, trap: str) -> None:
    place = Path("/tmp/netbench-65534")
    with open_folder() as trapped:
        os.chown(trapped, 65534, 65534)
        if trap == "a link":
            place.symlink_to(trapped)
        else:
            (place / "locks").mkdir(parents=True)
            if trap == "a folder that all may write":
                os.chown(place, 65534, 65534)
                place.chmod(0o777)
            else:  # which could put another folder in the place of this one
                os.chown(place / "locks", 65534, 65534)
        try:
            with as_nobody(here) as worker:
                assert take(worker, "host", "me") == "me"
                assert list(Path("/tmp").glob("netbench-65534.*/locks/host-*")) != []
            assert list(trapped.iterdir()) == []
        finally:
            if place.is_symlink():
                place.unlink()


@pytest.mark.root
def test_an_account_has_one_lock_whatever_its_environment(here: Namespace) -> None:
    with open_folder() as runtime:
        os.chown(runtime, 65534, 65534)
        login = ("env", f"XDG_RUNTIME_DIR={runtime}")
        with as_nobody(here, *login) as first, as_nobody(here) as second:
            assert take(first, "host", "one") == "one"
            assert take(second, "host", "two") == "not one"


@pytest.mark.root
def test_accounts_without_a_folder_lock_each_its_own(here: Namespace) -> None:
    bare = ("env", "--ignore-environment", f"PATH={os.environ['PATH']}")
    place = Path("/tmp/netbench-65534")
    try:
        with as_nobody(here, *bare) as first, as_nobody(here, *bare) as second:
            assert "run as root there" in str(refusal(first, "lock", "kernel", "me"))
            assert "run as root" in str(refusal(first, "link", (DATA, "mtu"), "1400"))
            assert "run as root" in str(refusal(first, "features", DATA, "rx-gro on"))
            assert "run as root" in str(refusal(first, "qdisc", DATA, "pfifo"))
            assert take(first, "host", "one") == "one", "which needs none"
            locked = ran(["flock", "-n", str(place / "locks"), "true"])
            assert locked.returncode, "so systemd-tmpfiles leaves it"
            assert take(second, "host", "two") == "not one"
            assert (place.stat().st_uid, place.stat().st_mode & 0o777) == (65534, 0o700)
        place.mkdir()  # by somebody else, who was faster
        with as_nobody(here, *bare) as first, as_nobody(here, *bare) as second:
            assert take(first, "host", "one") == "one", "a campaign is not stopped by that"
            assert list(place.iterdir()) == []
            place.rmdir()
            assert take(second, "host", "two") == "not one", "nor is its lock taken away"
    finally:
        for each in Path("/tmp").glob("netbench-65534*"):
            shutil.rmtree(each, ignore_errors=True)


@pytest.mark.root
def test_where_no_lock_can_be_taken_the_host_is_refused(here: Namespace) -> None:
    closed = 'mount --bind /tmp /tmp; mount -o remount,bind,ro /tmp; exec "$@"'
    argv = ("ip", "netns", "exec", here.name, "sh", "-ec", closed, "sh", *NOBODY)
    with helper(*argv) as worker:
        assert "look at /run/netbench/locks, or /tmp" in str(refusal(worker, "lock", "host", "me"))


@contextlib.contextmanager
def as_nobody(here: Namespace, *prefix: str) -> Iterator[Worker]:
    """A worker of another account in a namespace."""
    need("setpriv")
    try:
        with helper("ip", "netns", "exec", here.name, *NOBODY, *prefix) as worker:
            yield worker
    except PermissionError:
        pytest.skip("the user nobody may not run the worker from here")
    finally:
        for each in Path("/tmp").glob("netbench-65534*"):
            shutil.rmtree(each, ignore_errors=True)  # its locks


@contextlib.contextmanager
def squatting(here: Namespace, *names: str) -> Iterator[None]:
    """Another account holds these abstract sockets."""
    need("setpriv")
    code = "import socket, sys\nheld = [socket.socket(1, 2) for _ in sys.argv[1:]]\n"
    code += "for one, name in zip(held, sys.argv[1:]): one.bind('\\0' + name)\n"
    code += "print('held', flush=True); sys.stdin.readline()"
    argv = ["ip", "netns", "exec", here.name, *NOBODY, "/usr/bin/python3", "-c", code, *names]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.kill()


@pytest.mark.root
def test_no_other_account_can_take_or_forge_a_lock_of_root(here: Namespace) -> None:
    """And what other accounts say of themselves is bounded, in number and in length."""
    names = ("netbench.lock.host", "netbench.lock.host.by.evil", "netbench.campaign.me")
    names += ("netbench.campaign.a\x1b]0;x\x07b",)
    with squatting(here, *names), here.worker() as worker, as_nobody(here) as theirs:
        assert take(theirs, "host", "theirs") == "theirs"
        assert holder(worker, "host") == ""
        assert take(worker, "host", "me") == "me"
        with here.worker() as second:
            assert take(second, "host", "other") == "not me"
        assert holder(theirs, "host") == "theirs", "each account has its own"
        hints = sorted(read(worker, "lock", "hints").splitlines())
        assert hints == ["a?]0;x?b", "me", "theirs"]
        with squatting(here, *(f"netbench.campaign.{'x' * 70}{i}" for i in range(99))):
            hints = read(worker, "lock", "hints").splitlines()
        assert (len(hints), max(map(len, hints))) == (16, 60)


def test_of_many_one_gets_the_lock(here: Namespace) -> None:
    """And names of holders are short words."""
    with here.worker() as worker:
        for name in ("", "two words", "x" * 61, "line\n"):
            assert "not a valid lock holder" in str(refusal(worker, "lock", "host", name))
        assert "unknown lock 'planet'" in str(refusal(worker, "lock", "planet"))
        assert holder(worker, "host") == ""
    count = 6
    ready = threading.Barrier(count)

    def ask(worker: Worker) -> str:
        ready.wait()
        return take(worker, "host", f"holder-{worker.hello.pid}")

    with contextlib.ExitStack() as stack, ThreadPoolExecutor(count) as pool:
        workers = [stack.enter_context(here.worker()) for _ in range(count)]
        got = list(pool.map(ask, workers))
        winner = holder(workers[0], "host")
    assert sorted(got) == [winner, *[f"not {winner}"] * (count - 1)]
