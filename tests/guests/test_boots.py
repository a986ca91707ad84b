"""Boots of real kernels: guests that go from one kernel to another, and what goes wrong then."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import signal
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from netbench.base.errors import HostError, LabRefused
from netbench.kernels.boot.machine import Machine
from netbench.kernels.boot.state import State
from netbench.lab import Lab, debian, qemu, sshd, userland
from netbench.lab import command as programs
from netbench.lab import guests as lab_guests
from netbench.lab.command import Tools
from netbench.lab.cpio import Archive
from netbench.lab.guest_console import await_login
from netbench.lab.guests import boot
from netbench.lab.lab import LabHost, LabKernel
from netbench.lab.userland import identity
from netbench.run.worker_pool import open_channel
from tests.support.guests import Guests, guests_lab
from tests.support.running import wait_for

NAME = f"b{os.getpid()}"
OLD, NEW = "6.1", "6.12"
DEADLINE = "30s"  # of boots that fail: long enough for the good ones beside them
Record = dict[str, Any]


class Booted(Guests):
    """The lab, and campaigns on it that boot guests."""

    def __init__(self, made: Lab, folder: Path) -> None:
        super().__init__(made, folder)
        self.original_kernel = self.states()

    def state(self, guest: str) -> State:
        host = self.host(guest)
        channel = open_channel(host)
        try:
            return Machine(host, channel, lambda: pytest.fail("asked for root")).state(10.0)
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
        """A campaign of one cell a kernel, booted in the order given. `boot`: how."""
        text = (
            f"verify: off\nmeters: [rusage]\nkernels: {json.dumps(dict(kernels))}\n"
            "transfer: {source: memory, duration: 200ms, warmup: 20ms, congestion: cubic}\n"
            f"repeat: {{min: {blocks * boots}, max: {blocks * boots}, boots: {boots}, metrics: [throughput]}}\n"
        )
        if not kernels:
            text = text.replace("kernels: {}\n", "")
        else:
            text += f"sweep: {{kernel: {json.dumps(list(kernels))}}}\norder: {{seed: {seed(list(kernels))}}}\n"
        return self.text(text + more, **{guest: {"boot": boot} for guest in guests})

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


@pytest.fixture
def guests(own: Lab, tmp_path: Path) -> Iterator[Booted]:
    """Campaigns in a folder of their own; afterwards every guest is on its first kernel."""
    found = Booted(own, tmp_path)
    yield found
    strayed = found.strayed()
    for guest in strayed:  # the next test shall not suffer
        found.renew(guest)
    assert strayed == []


def statuses(records: Sequence[Record]) -> list[tuple[str, str]]:
    return [(record["factors"]["kernel"], record["status"]) for record in records]


def boots(journal: Sequence[Record], what: str) -> list[str]:
    return [entry["release"] for entry in journal if entry["kind"] == what]


# kexec


@pytest.mark.slow
def test_kexec_of_an_image_and_of_a_package_in_several_boots(guests: Booted) -> None:
    release = guests.lab.kernels[NEW].release
    image = {"image": f"/boot/vmlinuz-{release}", "initrd": f"/boot/initrd.img-{release}"}
    image["append"] = "netbench.test=image"
    package = {"deb": guests.lab.kernels[NEW].source, "append": "netbench.test=deb"}
    held = "settings: {sysctl.net.ipv4.tcp_sack: 0}\n"
    file = guests.write({"image": image, "deb": package}, "kexec", held, boots=2)
    before = guests.ssh("a", "ls -A /boot /boot/netbench | sort")
    done = guests.run(file)
    assert done.code == 0, done.err
    assert sorted(statuses(guests.records())) == [("deb", "ok")] * 2 + [("image", "ok")] * 2
    assert boots(guests.journal(), "booted") == [release] * 4
    original, *facts = guests.facts("a")
    assert original["facts"]["kernel"] == guests.lab.kernels[OLD].release
    lines = [entry["facts"]["command_line"] for entry in facts]
    told = [re.findall(r"netbench.test=(\w+)", line) for line in lines]
    records = guests.records()
    assert [[record["factors"]["kernel"]] for record in records] == told
    assert [record["boot"] for record in records] == [entry["boot"] for entry in facts]
    assert len({entry["boot_id"] for entry in (original, *facts)}) == 5
    for record in records:
        held = record["settings"]["sender"]["sysctl.net.ipv4.tcp_sack"]
        assert held == {"asked": "0", "read": "0"}, "anew in every boot"
    assert guests.ssh("a", "cat /proc/sys/net/ipv4/tcp_sack") == "1"
    assert guests.ssh("a", "ls -A /boot /boot/netbench | sort") == before, "nothing is put there"


@pytest.mark.slow
def test_a_host_that_fell_back_to_a_kernel_of_that_release_is_seen(guests: Booted) -> None:
    """As where the new kernel dies early and the board resets."""
    release = guests.lab.kernels[OLD].release
    image = {"image": f"/boot/vmlinuz-{release}", "initrd": f"/boot/initrd.img-{release}"}
    real = "/usr/sbin/kexec"
    falls = f'#!/bin/sh\n[ "$1" = -e ] && exec reboot -f\nexec {real}.real "$@"\n'
    guests.ssh("a", f"cp -p {real} {real}.real; echo {shlex.quote(falls)} >{real}")
    done = guests.run(guests.write({"patched": image}, "kexec"))  # the root has the real one again
    assert (done.code, statuses(guests.records())) == (0, [("patched", "ok")]), done.err
    assert f"boot 1, once more: a: it booted {release} with the command line" in done.err


@pytest.mark.slow
def test_a_disk_that_is_full_while_a_kernel_is_copied(guests: Booted) -> None:
    place = "~/.cache/netbench/kernels"
    guests.ssh("a", f"mkdir -p {place} && mount -t tmpfs -o size=4M none {place}")
    package = {"deb": guests.lab.kernels[NEW].source}
    try:
        assert guests.run(guests.write({"copied": package}, "kexec")).code == 1
        assert statuses(guests.records()) == [("copied", "failed")]
        (failed,) = guests.records()
        said = failed["reason"]
        assert said.startswith("boot: copied: a: cannot write /root/.cache/netbench/kernels/")
        assert "No space left on device" in said
        left = guests.ssh("a", f"ls -A {place}; cat /sys/kernel/kexec_loaded")
        assert left == "0", "nothing is left"
        assert boots(guests.journal(), "boot") == [], "nothing was booted"
    finally:
        guests.ssh("a", f"umount {place}")


@pytest.mark.slow
def test_hosts_that_cannot_be_booted_are_found_by_check(guests: Booted) -> None:
    done = guests.netbench("check", guests.write({"gone": {"release": "6.66"}}, "kexec"))
    said = " ".join(done.out.split())
    assert "error: a: cannot be booted: no kernel 6.66 is installed, only 6.1" in said
    file = guests.write({NEW: {"release": NEW}}, "kexec")
    guests.ssh("a", "mv /usr/sbin/kexec /usr/sbin/kexec.away")
    without = guests.run(file)
    assert "a: cannot be booted: the host has no kexec; install kexec-tools there" in without.err
    guests.ssh("a", "mv /usr/sbin/kexec.away /usr/sbin/kexec")
    guests.ssh("a", "echo 1 > /proc/sys/kernel/kexec_load_disabled")
    try:
        off = guests.run(file)
        why = "kexec is switched off until the next boot (sysctl kernel.kexec_load_disabled)"
        assert f"a: cannot be booted: {why}" in off.err
        assert [done.code, without.code, off.code] == [2, 2, 2]
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
    tried = [entry["number"] for entry in guests.journal() if entry["kind"] == "boot"]
    assert tried == [1, 1, 2], "tried twice"
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
    assert guests.run(guests.write(kernels, {"qemu": NAME, "deadline": DEADLINE})).code == 1
    assert statuses(guests.records()) == [("mute", "failed"), (NEW, "ok")]
    (failed,) = guests.on("mute")
    assert failed["reason"].startswith("boot: mute: a: it did not come back within 30 s")
    assert told in failed["reason"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["qemu", "kexec"])
def test_a_kernel_that_dies_while_it_is_measured(guests: Booted, method: str) -> None:
    """Its cells have failed, what was held in it is gone, and the other kernel is measured."""
    kernels = {"bad": {"release": NEW}, OLD: {"release": OLD}}
    held = "settings: {sysctl.net.ipv4.tcp_sack: 0}\n"
    how = {"qemu": NAME} if method == "qemu" else method
    file = guests.write(kernels, how, held, guests=("a", "b"), blocks=2)
    file.write_text(file.read_text().replace("200ms", "3s"))
    process = guests.begin_run(file)
    wait_for(lambda: bool(guests.journal()) and guests.records() != [])
    guests.ssh("b", "echo c > /proc/sysrq-trigger", check=False)
    done = guests.end(process)
    assert done.code == 1, done.err
    assert statuses(guests.records()) == [
        *(("bad", status) for status in ("ok", "interrupted", "failed")),
        *((OLD, "ok"), (OLD, "ok")),
    ]
    reason, *console = guests.on("bad")[-1]["reason"].splitlines()
    assert reason.startswith("boot: bad: b: it was rebooted, not by this campaign (boot ")
    told = any("Kernel panic - not syncing: sysrq" in line for line in console)
    assert told == (method == "qemu")
    assert all(line.startswith("  console of b: ") for line in console)
    assert done.err.count("kernel bad, going back: b: it was rebooted") == 1
    again = guests.netbench("restore", guests.result)
    assert (again.code, again.out.strip()) == (0, "nothing is left to put back"), again.err


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
    ends = [(entry["kind"], entry.get("why")) for entry in guests.journal()]
    assert [why for kind, why in ends if kind == "ended"] == ["interrupted"]
    assert any(kind == "back" for kind, _ in ends)
    assert guests.records() == []


@pytest.mark.slow
def test_a_host_that_reboots_by_itself_is_another_host(guests: Booted) -> None:
    """What was set and read of it is gone: the campaign ends, and goes on only when it is resumed."""
    file = guests.write({}, "kexec", guests=("a", "b"), blocks=2)
    file.write_text(file.read_text().replace("200ms", "3s"))
    process = guests.begin_run(file)
    wait_for(lambda: bool(guests.journal()) and guests.records() != [])
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
    tried = [entry["number"] for entry in guests.journal() if entry["kind"] == "boot"]
    assert tried == [1], "the first attempt"


# Side by side

LANES = "pairs: [{sender: a, receiver: a}, {sender: b, receiver: b}]\nsettings: {sysctl.net.ipv4.tcp_sack: 0}\n"


def overlap(records: Sequence[Record]) -> bool:
    """Whether runs of both pairs were under way at the same time."""
    spans = [(r["pair"], datetime.fromisoformat(r["started"]).timestamp()) for r in records]
    return any(a != b and abs(x - y) < 0.2 for a, x in spans for b, y in spans)


@pytest.mark.slow
def test_an_interrupt_ends_both_lanes(guests: Booted) -> None:
    process = guests.begin_run(guests.write({}, "kexec", LANES, guests=("a", "b"), blocks=100))
    wait_for(
        lambda: bool(guests.journal()) and len(guests.records()) >= 4,
        lambda: process.poll() is None,
    )
    process.send_signal(signal.SIGINT)
    done = guests.end(process)
    assert done.code == 130, done.err
    records = guests.records()
    assert {r["pair"] for r in records} == {"a>a", "b>b"}
    assert overlap(records), "side by side"
    assert {r["status"] for r in records} <= {"ok", "interrupted"}
    said = [guests.ssh(guest, "cat /proc/sys/net/ipv4/tcp_sack") for guest in ("a", "b")]
    assert said == ["1", "1"]
    assert len({r["run"] for r in records}) == len(records)


# GRUB: a guest that its own boots: a disk with a boot loader, the lab's kernels as installed ones,
# and Debian's menu

_SECTOR = 512
_PARTITION_AT = 2048  # sectors; what is before it holds GRUB's core
_MODULES = ("biosdisk", "part_msdos", "ext2", "normal")
_PROGRAMS = {
    "grub-common": ("usr/bin/grub-editenv", "usr/sbin/grub-probe"),
    "grub2-common": ("usr/sbin/grub-reboot",),
}
_LIBRARY = "usr/share/grub/grub-mkconfig_lib"
_ENVIRONMENT = b"# GRUB Environment Block\n".ljust(1024, b"#")
# As update-grub of Debian 12 writes it, but for graphics, and a console on the serial line.
_HEAD = Path(__file__).with_name("grub_head.txt").read_text()
_SIMPLE = """\
menuentry 'Debian GNU/Linux' --class debian --class os $menuentry_id_option 'gnulinux-simple-test' {{
	echo	'Loading Linux {release} ...'
	linux	/vmlinuz-{release} {append}
	initrd	/initrd.img-{release}
}}
"""
_ADVANCED = """\
	menuentry 'Debian GNU/Linux, with Linux {release}' --class debian $menuentry_id_option 'gnulinux-{release}-advanced-test' {{
		linux	/vmlinuz-{release} {append}
		initrd	/initrd.img-{release}
	}}
	menuentry 'Debian GNU/Linux, with Linux {release} (recovery mode)' $menuentry_id_option 'gnulinux-{release}-recovery-test' {{
		linux	/vmlinuz-{release} {append} single
		initrd	/initrd.img-{release}
	}}
"""
_MOUNT = "#!/bin/sh\nmodprobe -a virtio_blk ext4\nmount -t ext4 /dev/vda1 /boot || mount -t ext2 /dev/vda1 /boot\n"


def move_in(lab: Lab, name: str) -> None:
    """Start a guest anew, of a disk whose default entry is the lab's first kernel."""
    tools = programs.find((*qemu.NEEDS, "mke2fs"))
    packages = {package: debian.unpacked(package, tools) for package in (*_PROGRAMS, "grub-pc-bin")}
    host = lab.hosts[name]
    lab_guests.stop(lab, host)
    image = sshd.place(lab.folder, name) / "grub-disk"
    _disk(lab, host, packages, image, tools)
    lab_guests.start_qemu(lab, host, ["-drive", f"if=virtio,format=raw,file={image}"], tools)
    await_login(lab, host, tools, 240.0)


def _disk(lab: Lab, host: LabHost, packages: dict[str, Path], image: Path, tools: Tools) -> None:
    content = image.with_name("grub-content")
    modules = packages["grub-pc-bin"] / "usr/lib/grub/i386-pc"
    shutil.copytree(
        modules, content / "grub" / "i386-pc", ignore=shutil.ignore_patterns("*.img", "*.module")
    )
    (content / "grub" / "grub.cfg").write_text(
        _menu(list(lab.kernels.values()), lab.accelerator.append)
    )
    (content / "grub" / "grubenv").write_bytes(_ENVIRONMENT)
    for kernel in lab.kernels.values():
        shutil.copyfile(kernel.image, content / f"vmlinuz-{kernel.release}")
        root = kernel.initrd.read_bytes() + identity(lab, host, False)
        root += _additions(host, packages, tools)
        (content / f"initrd.img-{kernel.release}").write_bytes(root)
    size = (
        sum(file.stat().st_size for file in content.rglob("*")) * 5 // 4 // _SECTOR
        + (16 << 20) // _SECTOR
    )
    with image.open("wb") as disk:
        disk.truncate((_PARTITION_AT + size) * _SECTOR)
    offset = f"offset={_PARTITION_AT * _SECTOR}"
    # ext2: what GRUB 2.06 reads whatever mke2fs's defaults are
    words = f"mke2fs -q -t ext2 -E {offset} -d {content} {image} {size * _SECTOR // 1024}k"
    tools.run(words.split())
    with image.open("r+b") as disk:
        disk.write(_first_sectors(packages, modules, size, image.with_name("core.img")))
    shutil.rmtree(content)


def _menu(kernels: list[LabKernel], append: str) -> str:
    advanced = "".join(
        _ADVANCED.format(release=kernel.release, append=append) for kernel in kernels
    )
    simple = _SIMPLE.format(release=kernels[0].release, append=append)
    title = "submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-test' {\n"
    return f"{_HEAD}{simple}{title}{advanced}}}\n"


def _first_sectors(packages: dict[str, Path], modules: Path, size: int, core: Path) -> bytes:
    """GRUB's first sector with a table of one partition, and its core where boot.img looks."""
    maker = packages["grub-common"] / "usr/bin/grub-mkimage"
    libraries = str(packages["grub-common"] / "usr/lib/x86_64-linux-gnu")
    words = f"{maker} -d {modules} -O i386-pc -p (hd0,msdos1)/grub -o {core}".split()
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
    subprocess.run([*words, *_MODULES], check=True, capture_output=True, env=environment)
    boot = bytearray((modules / "boot.img").read_bytes()[:_SECTOR])
    boot[446:462] = struct.pack(
        "<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", _PARTITION_AT, size
    )
    boot[462:512] = bytes(48) + b"\x55\xaa"
    whole = bytes(boot) + core.read_bytes()
    assert len(whole) <= _PARTITION_AT * _SECTOR
    return whole


def _additions(host: LabHost, packages: dict[str, Path], tools: Tools) -> bytes:
    """What the guest has beside a lab's: GRUB's own programs, and its disk at /boot."""
    archive = Archive()
    libraries: dict[str, Path] = {}
    for package, paths in _PROGRAMS.items():
        for path in paths:
            file = packages[package] / path
            archive.file(path, file.read_bytes(), 0o755)
            if not file.read_bytes().startswith(b"#!"):
                found = userland._libraries(file, packages[package], tools)
                libraries |= {library.name: library for library in found}
    for name, library in sorted(libraries.items()):
        folder = "usr/lib64" if name.startswith("ld-linux") else "usr/lib"
        archive.file(f"{folder}/{name}", library.read_bytes(), 0o755)
    mkconfig = (packages["grub-common"] / _LIBRARY, packages["grub2-common"] / _LIBRARY)
    with suppress(StopIteration):
        archive.file(_LIBRARY, next(file for file in mkconfig if file.exists()).read_bytes())
    archive.file("usr/sbin/mount-boot", _MOUNT.encode(), 0o755)
    inittab = userland._INITTAB.format(management=host.management)
    archive.file("etc/inittab", f"::sysinit:/usr/sbin/mount-boot\n{inittab}".encode())
    return archive.whole()


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
