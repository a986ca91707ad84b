"""Boots of real kernels: guests of a lab that go from one kernel to another, and what goes wrong on
the way.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from netbench.base.errors import HostError, LabRefused
from netbench.engine.worker import Worker
from netbench.kernels.boot.machine import Machine
from netbench.kernels.boot.state import State
from netbench.lab import Lab, sshd
from netbench.lab.guests import boot
from netbench.run.worker_pool import open_channel
from tests.support.grub_guest import move_in
from tests.support.guests import Guests, guests_lab
from tests.support.running import wait_for

NAME = f"b{os.getpid()}"
OLD, NEW = "6.1", "6.12"
DEADLINE = "30s"  # of boots that fail: long enough for the good ones beside them
Record = dict[str, Any]


def no_helper() -> Worker:
    raise AssertionError("the state of a host is read without root")


class Booted(Guests):
    """The lab, and campaigns on it that boot guests."""

    def __init__(self, made: Lab, folder: Path) -> None:
        super().__init__(made, folder)
        self.original_kernel = self.states()

    def state(self, guest: str) -> State:
        host = self.host(guest)
        channel = open_channel(host)
        try:
            return Machine(host, channel, no_helper).state(10.0)
        finally:
            channel.close()

    def states(self) -> dict[str, State]:
        return {guest: self.state(guest) for guest in self.lab.hosts}

    def strayed(self) -> list[str]:
        """Guests that are not on their original kernel."""
        return [
            guest
            for guest, state in self.states().items()
            if not state.same_kernel(self.original_kernel[guest])
        ]

    def renew(self, guest: str) -> None:
        """Boot a guest afresh, on its original kernel."""
        boot(self.lab.name, guest, next(iter(self.lab.kernels.values())))

        def answers() -> bool:
            try:
                return self.state(guest).same_kernel(self.original_kernel[guest])
            except HostError:
                return False

        wait_for(answers)

    def emulator(self, guest: str) -> int:
        (found,) = sshd.servers(self.lab.folder, guest)
        return found

    def write(
        self,
        kernels: Mapping[str, Any],
        boot: Any,
        more: str = "",
        guests: Sequence[str] = ("a",),
        blocks: int = 1,
        boots: int = 1,
    ) -> Path:
        """A campaign of one cell a kernel, booted in the order given. `boot`: how, or how by guest."""
        how = (
            boot
            if isinstance(boot, dict) and set(boot) == set(guests)
            else dict.fromkeys(guests, boot)
        )
        text = (
            f"verify: off\nmeters: [rusage]\nkernels: {json.dumps(dict(kernels))}\n"
            "transfer: {source: memory, duration: 200ms, warmup: 20ms, congestion: cubic}\n"
            f"repeat: {{min: {blocks * boots}, max: {blocks * boots}, boots: {boots}, metrics: [throughput]}}\n"
        )
        if not kernels:
            text = text.replace("kernels: {}\n", "")
        if kernels:
            text += f"sweep: {{kernel: {json.dumps(list(kernels))}}}\norder: {{seed: {seed(list(kernels))}}}\n"
        return self.text(text + more, **{guest: {"boot": how[guest]} for guest in guests})

    def journal(self) -> list[Record]:
        files = list((self.folder / "results").glob("*/[!.]*/journal.jsonl"))
        lines = files[0].read_text().splitlines(keepends=True) if files else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def facts(self, guest: str) -> list[Record]:
        found: list[Record] = json.loads((self.result / "facts.json").read_text())["hosts"][guest]
        return found

    def on(self, kernel: str) -> list[Record]:
        return [record for record in self.records() if record["factors"]["kernel"] == kernel]

    def booting(self, method: Any) -> subprocess.Popen[str]:
        """A campaign that has begun to boot the newer kernel."""
        process = self.begin_run(self.write({NEW: {"release": NEW}}, method))
        wait_for(
            lambda: any(entry["kind"] == "boot" for entry in self.journal()),
            lambda: process.poll() is None,
        )
        return process


def seed(kernels: list[str]) -> int:
    """A seed with which kernels are booted in the order given."""
    for number in range(1000):
        order = list(kernels)
        random.Random(f"netbench {number} boots 0").shuffle(order)
        if order == kernels:
            return number
    raise AssertionError


@pytest.fixture(scope="module")
def own(fetched: None) -> Iterator[Lab]:
    """Two guests on 6.1, with 6.12 installed beside it."""
    with guests_lab(NAME, ("a", "b"), (OLD, NEW), disk=True) as found:
        yield found


def kept(lab: Lab, folder: Path) -> Iterator[Booted]:
    """Campaigns in a folder of their own; afterwards every guest is on the kernel that it came
    with.
    """
    found = Booted(lab, folder)
    yield found
    strayed = found.strayed()
    for guest in strayed:  # the next test shall not suffer
        found.renew(guest)
    assert strayed == []


@pytest.fixture
def guests(own: Lab, tmp_path: Path) -> Iterator[Booted]:
    yield from kept(own, tmp_path)


@pytest.fixture
def shared(made: Lab, tmp_path: Path) -> Iterator[Booted]:
    """The guests of the lab that all tests share, for what boots none of them."""
    hosts = {"a": made.hosts["snd"], "b": made.hosts["rcv"]}
    yield from kept(replace(made, hosts=hosts), tmp_path)


def statuses(records: Sequence[Record]) -> list[tuple[str, str]]:
    return [(record["factors"]["kernel"], record["status"]) for record in records]


def boots(journal: Sequence[Record], what: str) -> list[str]:
    return [entry["release"] for entry in journal if entry["kind"] == what]


# kexec


@pytest.mark.slow
def test_kexec_to_another_kernel_and_back(guests: Booted) -> None:
    old, new = (guests.lab.kernels[name].release for name in (OLD, NEW))
    assert guests.ssh("a", "cat /proc/sys/net/ipv4/tcp_sack") == "1"
    done = guests.run(
        guests.write({NEW: {"release": NEW}}, "kexec", "settings: {sysctl.net.ipv4.tcp_sack: 0}\n")
    )
    assert done.code == 0, done.err
    assert done.folder.name == guests.result.name
    assert statuses(guests.records()) == [(NEW, "ok")]
    assert boots(guests.journal(), "booted") == [new]
    facts = guests.facts("a")
    assert [entry["facts"]["kernel"] for entry in facts] == [old, new]
    (record,) = guests.records()
    assert record["boot"] == facts[1]["boot"] == 1
    assert record["settings"]["sender"]["sysctl.net.ipv4.tcp_sack"] == {"asked": "0", "read": "0"}
    state = guests.state("a")
    assert state.release == old
    assert state.command_line == guests.original_kernel["a"].command_line
    assert len({*(entry["boot_id"] for entry in facts), state.boot_id}) == 3, "three boots"
    assert guests.ssh("a", "cat /proc/sys/net/ipv4/tcp_sack") == "1"


@pytest.mark.slow
def test_kexec_of_an_image_and_of_a_package_in_several_boots(guests: Booted) -> None:
    release = guests.lab.kernels[NEW].release
    image = {
        "image": f"/boot/vmlinuz-{release}",
        "initrd": f"/boot/initrd.img-{release}",
        "append": "netbench.test=image",
    }
    package = {"deb": guests.lab.kernels[NEW].source, "append": "netbench.test=deb"}
    file = guests.write(
        {"image": image, "deb": package},
        "kexec",
        "settings: {sysctl.net.ipv4.tcp_sack: 0}\n",
        boots=2,
    )
    before = guests.ssh("a", "ls -A /boot /boot/netbench | sort")
    done = guests.run(file)
    assert done.code == 0, done.err
    assert sorted(statuses(guests.records())) == [("deb", "ok")] * 2 + [("image", "ok")] * 2
    assert boots(guests.journal(), "booted") == [release] * 4
    told = [
        re.findall(r"netbench.test=(\w+)", entry["facts"]["command_line"])
        for entry in guests.facts("a")[1:]
    ]
    assert [[record["factors"]["kernel"]] for record in guests.records()] == told
    for record in guests.records():
        assert record["settings"]["sender"]["sysctl.net.ipv4.tcp_sack"] == {
            "asked": "0",
            "read": "0",
        }, "anew in every boot"
    assert guests.ssh("a", "ls -A /boot /boot/netbench | sort") == before, (
        "nothing is put into /boot"
    )


@pytest.mark.slow
def test_a_disk_that_is_full_while_a_kernel_is_copied(guests: Booted) -> None:
    guests.ssh(
        "a",
        "mkdir -p ~/.cache/netbench/kernels && mount -t tmpfs -o size=4M none ~/.cache/netbench/kernels",
    )
    try:
        done = guests.run(
            guests.write({"copied": {"deb": guests.lab.kernels[NEW].source}}, "kexec")
        )
        assert done.code == 1
        assert statuses(guests.records()) == [("copied", "failed")]
        (failed,) = guests.records()
        assert failed["reason"].startswith(
            "boot: copied: a: cannot write /root/.cache/netbench/kernels/"
        )
        assert "No space left on device" in failed["reason"]
        assert (
            guests.ssh("a", "ls -A ~/.cache/netbench/kernels; cat /sys/kernel/kexec_loaded") == "0"
        ), "nothing is left"
        assert boots(guests.journal(), "boot") == [], "nothing was booted"
    finally:
        guests.ssh("a", "umount ~/.cache/netbench/kernels")


@pytest.mark.slow
def test_hosts_that_cannot_be_booted_are_found_by_check(guests: Booted) -> None:
    file = guests.write({NEW: {"release": NEW}}, "kexec")
    absent = guests.write({"gone": {"release": "6.66"}}, "kexec").rename(
        guests.folder / "absent.yaml"
    )
    done = guests.netbench("check", absent)
    assert done.code == 2
    assert "error: a: cannot be booted: no kernel 6.66 is installed, only 6.1" in " ".join(
        done.out.split()
    )
    guests.write({NEW: {"release": NEW}}, "kexec")
    guests.ssh("a", "mv /usr/sbin/kexec /usr/sbin/kexec.away")
    done = guests.run(file)
    assert done.code == 2
    assert (
        "a: cannot be booted: the host has no kexec; install kexec-tools there, or name another boot method"
        in done.err
    )
    guests.ssh(
        "a",
        "mv /usr/sbin/kexec.away /usr/sbin/kexec; echo 1 > /proc/sys/kernel/kexec_load_disabled",
    )
    try:
        done = guests.run(file)
        assert done.code == 2
        assert (
            "a: cannot be booted: kexec is switched off until the next boot (sysctl kernel.kexec_load_disabled)"
            in done.err
        )
        assert guests.journal() == [], "nothing was begun"
    finally:
        guests.renew("a")


@pytest.mark.slow
def test_a_kernel_that_is_locked_down_refuses_kexec_and_is_left_by_the_firmware(
    guests: Booted,
) -> None:
    kernels = {"locked": {"release": NEW, "append": "lockdown=integrity"}, NEW: {"release": NEW}}
    done = guests.run(guests.write(kernels, "kexec"))
    assert done.code == 1
    assert statuses(guests.records()) == [("locked", "ok"), (NEW, "failed")]
    (failed,) = guests.on(NEW)
    release = guests.lab.kernels[NEW].release
    assert failed["reason"] == (
        f"boot: {NEW}: a: cannot load /boot/vmlinuz-{release}: kexec -s: kexec_file_load failed: Operation not permitted; "
        "kexec -c: kexec_load failed: Operation not permitted; is the kernel locked down (Secure Boot)?; "
        "sign the image, or name another boot method"
    )
    assert guests.strayed() == [], done.err


# Kernels that do not come up


@pytest.mark.slow
def test_a_kernel_that_panics(guests: Booted) -> None:
    """It panics twice; then the guest is booted back, and the other kernel is booted next."""
    kernels = {"bad": {"release": NEW, "append": "rdinit=/nonexistent"}, OLD: {"release": OLD}}
    done = guests.run(guests.write(kernels, {"qemu": NAME}))
    assert done.code == 1
    assert statuses(guests.records()) == [("bad", "failed"), (OLD, "ok")]
    (failed,) = guests.on("bad")
    reason, *console = failed["reason"].splitlines()
    assert reason == "boot: bad: a: its kernel panicked"
    assert any("Kernel panic - not syncing" in line for line in console)
    assert all(line.startswith("  console of a: ") for line in console)
    assert [entry["number"] for entry in guests.journal() if entry["kind"] == "boot"] == [
        1,
        1,
        2,
    ], "tried twice"
    assert done.err.count("boot 1, once more: a: its kernel panicked") == 1
    assert done.err.count("kernel bad, going back: a: its kernel panicked") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("append", "told"),
    [("module_blacklist=virtio_net", "No listening ports"), ("rdinit=/usr/bin/cat", "")],
    ids=["no network", "it hangs"],
)
def test_a_kernel_that_never_answers(guests: Booted, append: str, told: str) -> None:
    kernels = {"mute": {"release": NEW, "append": append}, NEW: {"release": NEW}}
    done = guests.run(guests.write(kernels, {"qemu": NAME, "deadline": DEADLINE}))
    assert done.code == 1
    assert statuses(guests.records()) == [("mute", "failed"), (NEW, "ok")]
    (failed,) = guests.on("mute")
    assert failed["reason"].startswith("boot: mute: a: it did not come back within 30 s")
    assert told in failed["reason"]


# Controllers that end


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "verb"), [("qemu", "resume"), ("qemu", "restore"), ("kexec", "restore")]
)
def test_what_a_controller_that_was_killed_while_a_host_boots_has_left(
    guests: Booted, method: str, verb: str
) -> None:
    process = guests.booting({"qemu": NAME} if method == "qemu" else method)
    process.kill()
    guests.end(process)
    assert guests.records() == []
    done = guests.netbench(verb, guests.result)
    assert done.code == 0, done.err
    assert guests.strayed() == []
    if verb == "resume":
        assert statuses(guests.records()) == [(NEW, "ok")]
        known = [each["release"] for each in guests.journal() if each["kind"] == "original_kernel"]
        assert known == [guests.lab.kernels[OLD].release], "known from before"
        return
    said = done.out + done.err
    assert f"a: back on {guests.lab.kernels[OLD].release}" in said or "a: is on" in said
    assert guests.netbench("restore", guests.result).code == 0, "there is nothing more to restore"


@pytest.mark.slow
def test_an_interrupt_while_a_host_boots(guests: Booted) -> None:
    process = guests.booting({"qemu": NAME})
    process.send_signal(signal.SIGINT)
    done = guests.end(process)
    assert done.code == 130, done.err
    assert "interrupted" in done.err
    assert guests.strayed() == []
    assert [entry["why"] for entry in guests.journal() if entry["kind"] == "ended"] == [
        "interrupted"
    ]
    assert any(entry["kind"] == "back" for entry in guests.journal())
    assert guests.records() == []


@pytest.mark.slow
def test_a_host_that_reboots_by_itself_is_another_host(guests: Booted) -> None:
    """What was set and read of it is gone: the campaign ends, and goes on only when it is resumed."""
    file = guests.write({}, "kexec", guests=("a", "b"), blocks=2)
    file.write_text(file.read_text().replace("200ms", "3s"))
    process = guests.begin_run(file)
    wait_for(
        lambda: (
            len(list((guests.folder / "results").glob("*/[!.]*/records.jsonl"))) == 1
            and guests.records() != []
        )
    )
    guests.renew("b")
    done = guests.end(process)
    assert done.code == 1
    assert "b: it was rebooted, not by this campaign (boot " in done.err
    assert [record["status"] for record in guests.records()] == ["ok", "interrupted"]
    assert guests.netbench("resume", guests.result).code == 0
    assert [record["status"] for record in guests.records()] == ["ok", "interrupted", "ok"]


@pytest.mark.slow
def test_the_link_to_a_host_is_lost_while_it_boots(guests: Booted) -> None:
    """The guest stands still, and accepts connections, but answers none: no look at it may last."""
    process = guests.booting({"qemu": NAME})
    pids: list[int] = []

    def on_its_way() -> bool:
        with suppress(ValueError):
            pids.append(guests.emulator("a"))
            words = Path(f"/proc/{pids[-1]}/cmdline").read_bytes()
            return guests.lab.kernels[NEW].image.as_posix().encode() in words
        return False

    wait_for(on_its_way, lambda: process.poll() is None)
    os.kill(pids[-1], signal.SIGSTOP)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(10)  # more than two looks
    finally:
        os.kill(pids[-1], signal.SIGCONT)
    done = guests.end(process)
    assert done.code == 0, done.err
    assert statuses(guests.records()) == [(NEW, "ok")]
    assert [entry["number"] for entry in guests.journal() if entry["kind"] == "boot"] == [1], (
        "the first attempt"
    )


# Side by side

LANES = "pairs: [{sender: a, receiver: a}, {sender: b, receiver: b}]\nsettings: {sysctl.net.ipv4.tcp_sack: 0}\n"


def overlap(records: Sequence[Record]) -> bool:
    """Whether runs of both pairs were under way at the same time."""
    spans = [(r["pair"], datetime.fromisoformat(r["started"]).timestamp()) for r in records]
    return any(a != b and abs(x - y) < 0.2 for a, x in spans for b, y in spans)


@pytest.mark.slow  # a minute of boots under emulation
def test_pairs_on_kernels_of_their_own_run_side_by_side(shared: Booted) -> None:
    file = shared.write({}, "kexec", LANES, guests=("a", "b"), blocks=3)
    done = shared.run(file)
    assert done.code == 0, done.err
    records = shared.records()
    assert sorted((r["pair"], r["block"], r["status"]) for r in records) == [
        (pair, block, "ok") for pair in ("a>a", "b>b") for block in range(3)
    ]
    assert sorted(r["run"] for r in records) == [1, 2, 3, 4, 5, 6]
    assert overlap(records)
    assert [shared.ssh(guest, "cat /proc/sys/net/ipv4/tcp_sack") for guest in ("a", "b")] == [
        "1",
        "1",
    ]


@pytest.mark.slow
def test_an_interrupt_ends_both_lanes(guests: Booted) -> None:
    file = guests.write({}, "kexec", LANES, guests=("a", "b"), blocks=100)
    process = guests.begin_run(file)
    wait_for(
        lambda: bool(guests.journal()) and len(guests.records()) >= 4,
        lambda: process.poll() is None,
    )
    process.send_signal(signal.SIGINT)
    done = guests.end(process)
    assert done.code == 130, done.err
    records = guests.records()
    assert {r["pair"] for r in records} == {"a>a", "b>b"}
    assert {r["status"] for r in records} <= {"ok", "interrupted"}
    assert [guests.ssh(guest, "cat /proc/sys/net/ipv4/tcp_sack") for guest in ("a", "b")] == [
        "1",
        "1",
    ]
    assert len({r["run"] for r in records}) == len(records)


# GRUB


@pytest.fixture
def grub(tmp_path: Path, fetched_grub: None) -> Iterator[Booted]:
    """A guest that GRUB boots from a disk, on 6.1 by default."""
    with guests_lab(f"{NAME}g", ("a",), (OLD, NEW)) as found:
        try:
            move_in(found, "a")
        except LabRefused as error:
            pytest.skip(str(error))
        yield Booted(found, tmp_path)


@pytest.mark.slow
def test_grub_boots_another_kernel_once(grub: Booted) -> None:
    old, new = (grub.lab.kernels[name].release for name in (OLD, NEW))
    menu = grub.ssh("a", "md5sum /boot/grub/grub.cfg")
    done = grub.run(grub.write({NEW: {"release": NEW}}, "grub"))
    assert done.code == 0, done.err
    assert statuses(grub.records()) == [(NEW, "ok")]
    assert boots(grub.journal(), "booted") == [new]
    assert grub.facts("a")[-1]["facts"]["kernel"] == new
    assert grub.states()["a"].release == old
    assert grub.strayed() == []
    assert grub.ssh("a", "md5sum /boot/grub/grub.cfg") == menu
    assert grub.ssh("a", "grub-editenv - list") == "", "no entry is chosen for the next boot"
