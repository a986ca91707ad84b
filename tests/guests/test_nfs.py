"""NFS: levels and refusals here; mounts and servers between two guests whose kernel has it."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from netbench import campaign
from netbench.base.errors import CampaignError
from netbench.engine.own_engine import local
from netbench.lab import Lab
from netbench.plan.plan import Plan
from netbench.run.held_settings import levels_of
from netbench.settings.nfs import Nfs, path
from netbench.settings.setting import Peers, SettingContext
from tests.support.guests import Guests
from tests.support.local import Command
from tests.support.running import wait_for

HERE = """\
netbench: 1
name: nfs
transfer: {send: nfs, receive: nfs, source: {file: FILE}, duration: 60ms, warmup: 20ms}
settings: {nfs: rsize=32K}
repeat: {min: 1, max: 1}
"""


def test_a_senders_level_stays_while_the_options_change() -> None:
    text = HERE.replace("settings: {nfs: rsize=32K}", "sweep: {nfs: [rsize=8K, rsize=1M]}")
    two = campaign.parse(text.replace("transfer:", "lab: qemu\ntransfer:"), "nfs.yaml")
    for unit in Plan(two).units:
        sender, receiver = levels_of(two, unit)
        assert sender.layers[1]["nfs"].value == "on"
        assert receiver.layers[1]["nfs"].written == unit.cell.factors["nfs"]
    one = campaign.parse(text, "nfs.yaml")
    both = [levels_of(one, unit) for unit in Plan(one).units]
    assert [host.layers[1]["nfs"].written for (host,) in both] == ["rsize=8K", "rsize=1M"]


class Told:
    """A worker that answers what it was told to."""

    def __init__(self, answers: dict[tuple[str, ...], str]) -> None:
        self.answers = answers

    def operate(self, op: str, target: Any, *_: Any, **__: Any) -> tuple[str, None]:
        return self.answers[(op, *((target,) if isinstance(target, str) else target))], None

    def undo(self, scope: int = 0) -> None:
        raise NotImplementedError


def test_a_sender_exports_and_a_receiver_mounts_and_a_host_that_is_both_does_both() -> None:
    peers = Peers(("/srv/a file",), ("10.0.0.2", "fd00::2"), ("10.0.0.1",))
    export = ("/srv", "10.0.0.1", "10.0.0.2 fd00::2", "/srv/a file")
    mount = "/run/netbench.nfs-10.0.0.1"
    answers = {("export", *export): "none\n", ("mount", mount): "none\n"}
    context = SettingContext("h", Told(answers), "10.0.0.1", peers=peers)
    first, second = Nfs().changes("", "rsize=4096,hard", context)
    assert (first.op, first.target, first.value) == ("export", export, "exported")
    assert (second.op, second.target) == ("mount", (mount,))
    source, _, options = str(second.value).partition("\n")
    assert source == "10.0.0.1:/srv"
    assert options.startswith("vers=4.2,addr=10.0.0.1,clientaddr=10.0.0.1,soft,")
    assert options.endswith(",rsize=4096,hard")
    assert Nfs().changes("", "off", context) == []


def test_what_is_mounted_is_read_in_the_words_of_the_level() -> None:
    peers, mount = Peers(("/srv/x",), (), ("fd00::1",)), ("mount", "/run/netbench.nfs-fd00::1")
    shown = "[fd00::1]:/srv ro,relatime,vers=4.2,rsize=131072,wsize=1048576,hard,proto=tcp6\n"
    place = SettingContext("h", Told({mount: shown}), "fd00::2", peers=peers)
    assert Nfs().reading("", "on", place) == "on"
    assert Nfs().reading("", "rsize=262144,hard,vers=4.2", place) == "rsize=131072,hard,vers=4.2"
    assert Nfs().reading("", "soft,nconnect=2", place) == "no soft,no nconnect"
    assert Nfs().reading("", "off", place) == "on"
    place = SettingContext("h", Told({mount: "none\n"}), "fd00::2", peers=peers)
    assert Nfs().reading("", "rsize=8192", place) == "off"


LEVELS = {
    "off": "off",
    "false": "off",
    "on": "on",
    "rsize=8K": "rsize=8192",
    "{rsize: 1M, vers: 4.1}": "rsize=1048576,vers=4.1",
    "rsize=8192,hard,wsize=8KiB": "rsize=8192,hard,wsize=8192",
    **dict.fromkeys(("", "rsize=", "rsize=much", "addr=10.0.0.9", "noresvport"), ""),
    **dict.fromkeys(("rsize=8K,rw", "a b", "rsize=8K rsize=4K", "x=$(id)"), ""),
}
"""A level, and what it is as the kernel shows it ("": no level)."""


def test_a_level_is_off_on_or_options() -> None:
    for level, meant in LEVELS.items():
        if meant:
            assert Nfs().parse(level) == Nfs().parse(meant) == meant
        else:
            with pytest.raises(ValueError, match=r"off, on, or options|netbench sets itself|size"):
                Nfs().parse(level)


def test_only_one_folder_can_be_exported() -> None:
    for files in ((), ("/a/x", "/b/x"), ("x",)):
        place = SettingContext("h", Told({}), "10.0.0.1", peers=Peers(files, ("10.0.0.2",)))
        with pytest.raises(ValueError, match="absolute paths in the same folder"):
            Nfs().why_not("", "on", place)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("settings: {nfs: rsize=32K}\n", "", "needs the setting nfs, expected nfs: on"),
        ("nfs: rsize=32K", "nfs: off", "needs the setting nfs"),
        ("receive: nfs", "receive: read", "go together, got send: nfs, receive: read"),
        ("source: {file: FILE}", "source: {files: 2, size: 1M}", "reads one file"),
        ("duration: 60ms, warmup: 20ms", "bytes: 1M", "expected a duration"),
        ("duration: 60ms", "duration: 60ms, rate: 1Gb/s", "no rate"),
    ],
)
def test_a_campaign_says_what_nfs_cannot_do(old: str, new: str, said: str) -> None:
    campaign.parse(HERE, "nfs.yaml")
    with pytest.raises(CampaignError, match=said):
        campaign.parse(HERE.replace(old, new), "nfs.yaml")


@pytest.mark.skipif(not local().receive["nfs"].row.why, reason="this kernel has NFS")
def test_a_kernel_without_nfs_is_told_of_before_anything_runs(
    netbench: Command, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"x" * 8192)
    (tmp_path / "c.yaml").write_text(HERE.replace("FILE", str(tmp_path / "file")))
    done = netbench("check", "c.yaml")
    told = " ".join((done.stdout + done.stderr).split())
    assert done.returncode
    assert "error: here: nfs: this kernel has no NFS server (CONFIG_NFSD" in told
    assert "error: here: nfs: this kernel has no NFS client (CONFIG_NFS_FS" in told
    assert "nfs: rsize=32K: " in told
    assert netbench("run", "c.yaml").returncode == 2
    assert not list((tmp_path / "results").glob("*/[!.]*/records.jsonl"))


# Guests

SIZE = 2 * 1024 * 1024 + 11
SWEEP = """\
transfer: {source: {file: "/srv/a b/data"}, duration: 1500ms, warmup: 100ms}
sweep: {send: [nfs], nfs: [rsize=8K, rsize=64K]}
include: [{send: nfs, receive: nfs}]
repeat: {min: 1, max: 1}
meters: [procstat, rusage]
"""
STATE = (
    "grep -c nfs /proc/mounts; ls -d /run/netbench.* 2>/dev/null; cd /proc/net/rpc && "
    "cat nfsd.export/content nfsd.fh/content auth.unix.ip/content 2>/dev/null | grep -v '^#'; "
    "cat /proc/net/tcp /proc/net/tcp6 | grep -c ':0801 .* 0A '"
)


class Mounting(Guests):
    """Two guests, the first with a file to send, and campaigns between them."""

    def __init__(self, made: Lab, folder: Path) -> None:
        super().__init__(made, folder)
        self.ssh("snd", f"mkdir -p '/srv/a b'; head -c {SIZE} /dev/urandom > '/srv/a b/data'")

    def ssh(self, guest: str, script: str, check: bool = False) -> str:
        return super().ssh(guest, script, check)

    def state(self) -> list[str]:
        """All of NFS that there is on both: mounts, our folders, exports, who listens."""
        return [self.ssh(guest, STATE) for guest in self.lab.hosts]

    @property
    def mount(self) -> str:
        return path(self.lab.hosts["snd"].address, "").rstrip("/")

    def mounted(self, text: str) -> subprocess.Popen[str]:
        """A campaign that has mounted the file's folder."""
        process = self.begin_run(self.text(text))
        wait_for(lambda: self.mount in self.ssh("rcv", "cat /proc/mounts"), seconds=90)
        return process

    def received(self) -> int:
        return int(self.ssh("rcv", "cat /sys/class/net/data0/statistics/rx_bytes"))


@pytest.fixture
def guests(made: Lab, tmp_path: Path) -> Mounting:
    return Mounting(made, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_file_is_read_through_mounts_that_are_gone_afterwards(guests: Mounting) -> None:
    before, arrived = guests.state(), guests.received()
    guests.ssh("rcv", f"mkdir -m 700 {guests.mount}")  # as a worker that was killed leaves it
    done = guests.run(guests.text(SWEEP))
    said = " ".join([*done.out.split(), done.err])
    arrived = guests.received() - arrived
    records = guests.records()
    assert (done.code, [record["status"] for record in records]) == (0, ["ok", "ok"]), said
    total = 0
    for record in records:
        size = "8192" if "8K" in record["cell"] else "65536"
        level = f"rsize={size}"
        assert record["settings"]["receiver"]["nfs"] == {"asked": level, "read": level}
        assert record["settings"]["sender"]["nfs"] == {"asked": "on", "read": "on"}
        proof = record["proof"]["receiver"]
        (opened,), (closed,) = record["receiver"]["flow"]["bytes"]
        assert proof["served_bytes"][-1][0] >= closed
        assert proof["cached_bytes"][-1] == [0]
        assert closed > opened
        for side in ("sender", "receiver"):
            opened, *after = record[side]["procstat"]["system"]
            assert sum(after) > opened
        total += proof["served_bytes"][-1][0]
    # more than the file holds
    assert max(record["proof"]["receiver"]["passes"][-1][0] for record in records) > 0
    assert arrived > total
    assert "did not engage" not in said
    assert "not rsize" not in said
    assert guests.state() == before


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("owner", "bits", "reader"), [("1234:4321", "400", ("1234", "4321")), ("0:0", "644", ())]
)
def test_clients_read_as_the_files_owner_and_nothing_else(
    guests: Mounting, owner: str, bits: str, reader: tuple[str, ...]
) -> None:
    """Nobody reads what root owns and all may read; the kernel does not show that."""
    guests.ssh(
        "snd",
        f"cd '/srv/a b' && chown {owner} data && chmod {bits} data && echo x > secret && chmod 600"
        " secret && echo x > /srv/above && chmod 755 /srv '/srv/a b'",
    )
    one_cell = SWEEP.replace("1500ms", "60s").replace("[rsize=8K, rsize=64K]", "[rsize=8K]")
    process, mount = guests.mounted(one_cell), guests.mount
    try:
        read = f"head -c 1 {mount}/data | wc -c; cat {mount}/secret; cat {mount}/../above; id -u"
        wait_for(lambda: guests.ssh("rcv", f"head -c 1 {mount}/data | wc -c").strip() == "1")
        assert guests.ssh("rcv", f"{{ {read}; }} 2>/dev/null").split() == ["1", "0"], "by root"
        content = guests.ssh("snd", "cat /proc/net/rpc/nfsd.export/content").splitlines()
        options = {
            line.split("\t")[0]: set(line.partition("(")[2].rstrip(")").split(","))
            for line in content
            if not line.startswith("#")
        }
        folder = options.pop("/srv/a\\040b")
        assert folder >= {"ro", "root_squash", "all_squash"}
        assert folder & {"no_subtree_check", "insecure", "rw", "v4root"} == set()
        shown = {word.partition("=")[2] for word in folder if word.startswith("anon")}
        assert shown == set(reader)
        assert [place for place, words in options.items() if "v4root" not in words] == []
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_killed_controller_leaves_no_mount_and_no_server(guests: Mounting) -> None:
    before = guests.state()
    process = guests.mounted(SWEEP.replace("1500ms", "60s"))
    try:
        assert guests.state() != before
        process.send_signal(signal.SIGKILL)
        process.wait()
        # an emulated client that gives up a server that is gone
        wait_for(lambda: guests.state() == before)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_client_whose_server_is_cut_off_gives_up_alone(guests: Mounting) -> None:
    """Its read would wait for minutes: it is broken off when the run is given up, which is told."""
    before = guests.state()
    text = SWEEP.replace("1500ms", "4s").replace("[rsize=8K, rsize=64K]", "[rsize=8K]")
    process = guests.mounted(text)
    try:
        received = guests.received()
        wait_for(lambda: guests.received() > received + 10_000_000)
        guests.ssh("snd", "ip link set data0 down")
        wait_for(lambda: guests.records() != [], lambda: process.poll() is None, 200)
        record, *_ = guests.records()
        assert record["status"] == "failed", record["reason"]
        assert "the worker runs, but did not answer in time" in record["reason"]
    finally:
        guests.ssh("snd", "ip link set data0 up")
        process.send_signal(signal.SIGINT)
        said = guests.end(process).err
    assert "is using this host" not in said
    wait_for(lambda: guests.state() == before)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_what_a_server_does_not_give_refuses_the_cell_and_leaves_nothing(guests: Mounting) -> None:
    before = guests.state()
    levels = "['{rsize: 16M}', '{no_such_option: 1}']"
    said = guests.run(guests.text(SWEEP.replace("[rsize=8K, rsize=64K]", levels))).err
    assert [record["status"] for record in guests.records()] == ["refused", "refused"], said
    reasons = {record["factors"]["nfs"]: record["reason"] for record in guests.records()}
    assert "reads rsize=1048576" in reasons["{rsize: 16M}"]
    assert "options of nfs(5) that this kernel knows" in reasons["{no_such_option: 1}"]
    assert guests.state() == before
    address = guests.lab.hosts["snd"].address
    # anything that listens
    guests.ssh("snd", f"dropbear -r /etc/dropbear/host_key -p {address}:2049 -P /tmp/taken")
    try:
        wait_for(lambda: guests.state() != before)
        shutil.rmtree(guests.folder / "results")
        guests.run(guests.text(SWEEP))
        assert {record["status"] for record in guests.records()} == {"refused"}
        assert "free TCP port 2049" in guests.records()[0]["reason"]
    finally:
        guests.ssh("snd", "kill $(cat /tmp/taken)")
    assert guests.state() == before
