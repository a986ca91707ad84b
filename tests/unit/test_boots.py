"""Boots without a host that boots: plan, releases, GRUB's menu. Real ones: tests/guests."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbench import campaign
from netbench.base.errors import BootError, CampaignError, HostBusy, HostError, HostGone, WorkerLost
from netbench.engine.worker import Worker
from netbench.hosts.host_channel import Channel, Result
from netbench.hosts.local import LocalChannel
from netbench.kernels.boot import boot_method, installed
from netbench.kernels.boot.acceptance import Look, look, rates, why_not_ready, why_wrong
from netbench.kernels.boot.boot_method import Target
from netbench.kernels.boot.campaign_boots import Boots, original_states
from netbench.kernels.boot.console import CONSOLE_LINES, PANIC, excerpt
from netbench.kernels.boot.copied import release_of
from netbench.kernels.boot.grub import entry_of
from netbench.kernels.boot.machine import Machine
from netbench.kernels.boot.state import State, is_of
from netbench.kernels.built import pinned, with_built_kernels
from netbench.model import BootSpec, Campaign, Host, Kernel, Pair, Repeat, build_name
from netbench.plan.plan import BOOT_SECONDS, Boot, Plan, Verify
from netbench.plan.plan_json import plan_json
from netbench.result.files import HostEntry
from netbench.result.journal import Back, BootBegun, Booted, Journal, OriginalKernel
from netbench.run.conductor import Conductor
from netbench.run.progress import Progress
from netbench.run.worker_pool import WorkerPool
from tests.support.engine_pair import WORKER
from tests.support.kernel_repository import Repository
from tests.support.local import Command
from tests.support.this_machine import ThisMachine
from tests.unit.test_plan import make, runs, steps_of


class AsHere:
    """The `boot` operation of a helper that this machine starts for it."""

    def operate(self, op: str, target: Iterable[str], *, seconds: float) -> tuple[str, str | None]:
        worker = Worker(LocalChannel("here", WORKER).start_helper(), "here")
        try:
            return worker.operate(op, target, seconds=seconds)
        finally:
            worker.close()


HERE = Machine(Host("here"), ThisMachine("here"), AsHere)


# The plan


def booted(
    boots: int, low: int, kernels: Sequence[str] = ("k1", "k2", "k3"), seed: int = 1
) -> Plan:
    campaign: Campaign = make({"kernel": list(kernels), "tso": ["on", "off"]}, seed)
    cells = tuple(cell._replace(kernel=cell.factors["kernel"]) for cell in campaign.cells)
    known = {name: Kernel(name, release=name) for name in kernels}
    repeat = Repeat(min=low, max=low, boots=boots)
    return Plan(campaign._replace(cells=cells, kernels=known, repeat=repeat))


@given(boots=st.integers(1, 6), low=st.integers(1, 9), seed=st.integers(0, 2**32))
def test_in_each_round_every_kernel_is_booted_once(boots: int, low: int, seed: int) -> None:
    plan = booted(boots, low, seed=seed)
    order = [boot.kernel for boot in plan.all_boots()]
    assert [boot.number for boot in plan.all_boots()] == list(range(1, 3 * boots + 1))
    for start in range(0, len(order), 3):
        assert sorted(order[start : start + 3]) == ["k1", "k2", "k3"]
    order = [boot.kernel for boot in booted(20, 20, seed=seed).all_boots()]
    assert len({tuple(order[at : at + 3]) for at in range(0, 60, 3)}) > 1, "not always in one order"


@pytest.mark.parametrize(("boots", "low", "blocks"), [(1, 4, 4), (2, 4, 2), (3, 4, 2), (4, 2, 1)])
def test_each_boot_has_blocks_of_its_kernel_alone_and_all_give_the_runs_asked_for(
    boots: int, low: int, blocks: int
) -> None:
    plan = booted(boots, low)
    assert plan.blocks_a_boot == blocks
    assert plan.blocks == 3 * boots * blocks
    count: dict[str, int] = {}
    for block in range(plan.blocks):
        boot = plan.boot(block)
        assert boot is not None
        units = [run.unit for run in runs(plan, block)]
        assert {unit.cell.kernel for unit in units} == {boot.kernel}
        for unit in units:
            count[unit.cell.id] = count.get(unit.cell.id, 0) + 1
    assert set(count.values()) == {boots * blocks}
    assert boots * blocks >= low


def test_boots_without_kernels_are_for_their_own_sake_and_none_take_no_time() -> None:
    alone = make({"x": ["1"]})
    plan = Plan(alone)
    assert (plan.all_boots(), plan.boot(0), plan.seconds_of_boots(0)) == ([], None, 0)
    plan = Plan(alone._replace(repeat=Repeat(min=4, max=4, boots=2)))
    assert plan.all_boots() == [Boot(1, ""), Boot(2, "")]
    plan = booted(2, 4, ("k1", "k2"))  # two blocks a boot; of four boots the last is the way back
    left = [plan.seconds_of_boots(block) / BOOT_SECONDS for block in range(8)]
    assert left == [4, 4, 3, 3, 2, 2, 1, 1]


def test_cells_are_verified_in_the_first_boot_of_their_kernel_alone() -> None:
    plan = booted(2, 4)
    plan = Plan(plan.campaign._replace(verify=True))
    every = [(block, step) for block in range(plan.blocks or 0) for step in steps_of(plan, block)]
    verified = [block for block, step in every if isinstance(step, Verify)]
    assert sorted(verified) == [0, 0, 2, 2, 4, 4]


# Releases


@pytest.mark.parametrize(
    ("release", "wanted", "fits"),
    [
        ("6.1.0-44-cloud-amd64", "6.1", True),
        ("6.1.1-rc2", "6.1.1", True),
        ("6.1.0-44-amd64", "6.1.0-4", False),
        ("6.1.0+patched", "6.1.0", True),
    ],
)
def test_a_release_begins_with_the_wanted_one_where_a_number_ends(
    release: str, wanted: str, fits: bool
) -> None:
    assert is_of(release, wanted) is fits
    assert Target("k", wanted, prefix=True).matches(State("b", release, "quiet")) is fits
    assert Target("k", wanted).matches(State("b", release, "quiet")) is (release == wanted)


def test_a_kernel_with_another_command_line_is_another_one() -> None:
    up = State("b", "6.12", "BOOT_IMAGE=/boot/vmlinuz root=/dev/vda1 mitigations=off initrd=/i")
    for wanted, same in (("root=/dev/vda1 mitigations=off", True), ("root=/dev/vda1", False)):
        assert Target("k", "6.12", command_line=wanted).matches(up) == same
        assert up.same_kernel(State("2", "6.12", wanted)) == same
        assert not up.same_kernel(State("2", "6.1", wanted))
    assert Target("k", "6.12", append="mitigations=off").matches(up)
    assert not Target("k", "6.12", append="mitigations=auto").matches(up)


class Files(Machine):
    """A host of which only its files are known: what this machine has is not to change."""

    def __init__(self, *paths: str) -> None:
        super().__init__(Host("there"), ThisMachine("there"), AsHere)
        self._paths = paths

    def listing(self, folder: str) -> list[str]:
        inside = (p.removeprefix(f"{folder}/") for p in self._paths if p.startswith(f"{folder}/"))
        return list(dict.fromkeys(path.split("/")[0] for path in inside))

    def exists(self, path: str) -> bool:
        return any(one == path or one.startswith(f"{path}/") for one in self._paths)


DEBIAN = Files(
    *(
        f"/boot/{name}-{release}"
        for name in ("vmlinuz", "initrd.img")
        for release in ("6.1.0-9-amd64", "6.1.0-10-amd64")
    ),
    "/boot/vmlinuz-6.12.3-bare",
    "/lib/modules/6.6.1-gone/modules.dep",
)


RHEL = "5.14.0-427.el9.x86_64"
OTHERS = Files(
    *(f"/boot/vmlinuz-{RHEL}{more}" for more in ("", "+debug")),
    *(f"/boot/vmlinuz-6.9.0{more}" for more in ("-rc1", "-rc1.old", "", ".old")),
)


@pytest.mark.parametrize(
    ("there", "wanted", "release", "initrd"),
    [
        (DEBIAN, "6.1", "6.1.0-10-amd64", "/boot/initrd.img-6.1.0-10-amd64"),
        (DEBIAN, "6.12", "6.12.3-bare", ""),
        (OTHERS, RHEL, RHEL, ""),  # RHEL puts one for debugging beside it
        (OTHERS, "6.9.0-rc1", "6.9.0-rc1", ""),  # installkernel keeps the one before it
        (OTHERS, "6.9", "6.9.0", ""),
    ],
)
def test_the_newest_installed_kernel_of_a_release_is_found_with_its_initrd(
    there: Files, wanted: str, release: str, initrd: str
) -> None:
    """A release is itself before it is the beginning of another."""
    image = f"/boot/vmlinuz-{release}"
    assert installed.find(there, wanted) == installed.Installed(release, image, initrd)


def test_the_original_kernel_is_not_one_of_a_longer_name() -> None:
    """Its own image is gone: the firmware's default is the best that is left."""
    gone = Files("/boot/vmlinuz-6.9.1+debug")
    assert boot_method("kexec").prepare_original(gone, State("1", "6.9.1", "")).image == ""


def test_a_kernel_that_is_not_installed_is_told_with_those_that_are() -> None:
    with pytest.raises(
        BootError, match=r"no kernel 6\.6 is installed, only 6.*, 6\.6\.1-gone, 6\.12"
    ):
        installed.find(DEBIAN, "6.6")  # its modules are there, its image is not
    wanted = [Kernel("a", release="6.1"), Kernel("b", release="7"), Kernel("c", image="/x")]
    assert installed.missing(DEBIAN, wanted).startswith("no kernel 7 is installed")


def test_an_image_on_a_host_says_its_release(tmp_path: Path) -> None:
    header = bytearray(0x2000)
    struct.pack_into("<H", header, 0x20E, 0x1000)
    header[0x1200:0x121F] = b"6.12.3-patched (me@here) #1 SMP"
    image = tmp_path / "vmlinuz"
    image.write_bytes(header)
    assert release_of(HERE, str(image)) == "6.12.3-patched"
    for content, told in (
        (b"#!/bin/sh\n", "is not an x86 ker"),
        (bytes(0x2000), "cannot read the"),
    ):
        image.write_bytes(content)
        with pytest.raises(BootError, match=told):
            release_of(HERE, str(image))


# in GRUB's menu, as update-grub of Debian 12 writes it
@pytest.mark.parametrize(
    ("release", "entry"),
    [
        ("6.12.3-amd64", "gnulinux-simple-6c5e"),
        ("6.1.0-9-amd64", "gnulinux-advanced-6c5e>gnulinux-6.1.0-9-amd64-advanced-6c5e"),
        ("6.6.1-mine", "mine"),
        ("6.7.1-mine", ""),  # GRUB would take "6.7 of mine" for the seventh entry
        ("6.5.1-mine", ""),  # and "2nd>x" for one of the third
        ("6.8.1-mine", "Patched"),  # by its title, since its id begins with a digit
        ("6.1.0", ""),
    ],
)
def test_the_entry_that_boots_a_release(release: str, entry: str) -> None:
    assert entry_of(Path(__file__).with_name("grub_menu.txt").read_text(), release) == entry


# The user's own command


def command(tmp_path: Path, body: str) -> Machine:
    script = tmp_path / "boot-host"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    words = (str(script), "{host}", "{kernel}", "{release}", "{append}", "a'b;c")
    return Machine(Host("snd", boot=BootSpec("command", argv=words)), ThisMachine("snd"), AsHere)


def test_a_command_gets_its_words_and_no_shell_sees_them(tmp_path: Path) -> None:
    machine = command(tmp_path, f'printf "%s\\n" "$@" > {tmp_path}/told')
    ours = boot_method("command")
    new = Kernel("new", release="6.12", append="$(id) quiet")
    ours.reboot(machine, ours.prepare(machine, new, State("1", "6.1", "")))
    told = (tmp_path / "told").read_text().splitlines()
    assert told == ["snd", "new", "6.12", "$(id) quiet", "a'b;c"]
    ours.reboot(machine, ours.prepare_original(machine, State("1", "6.1.0-9-amd64", "")))
    assert (tmp_path / "told").read_text().splitlines()[1:3] == ["original", "6.1.0-9-amd64"]


@pytest.mark.parametrize("release", ["-x", "6.1;id", "6.1\n"])
def test_what_a_host_calls_its_kernel_is_no_other_word(tmp_path: Path, release: str) -> None:
    machine, ours = command(tmp_path, "exit 0"), boot_method("command")
    with pytest.raises(BootError, match="which is no release"):
        ours.prepare(machine, Kernel("new", release="6.12"), State("1", release, ""))


def test_a_command_that_fails_is_quoted(tmp_path: Path) -> None:
    ours, new = boot_method("command"), Target("new", "6.12")
    failing = command(tmp_path, "echo no route to the BMC >&2; exit 3")
    with pytest.raises(BootError, match=r"failed \(exit 3\): no route to the BMC"):
        ours.reboot(failing, new)
    assert "new: a command needs `release`" in ours.why_not(failing, [Kernel("new", image="/x")])
    (tmp_path / "boot-host").unlink()
    with pytest.raises(BootError, match=f"snd: cannot run {tmp_path}/boot-host"):
        ours.reboot(failing, new)


# Consoles


def test_of_a_console_the_panic_is_shown_else_the_end() -> None:
    lines = [f"line {chr(65 + number)}" for number in range(40)]
    assert excerpt(lines) == lines[-CONSOLE_LINES:]
    lines[20] = f"[ 1.0] {PANIC}: VFS"
    assert {lines[19], lines[20]} <= {*excerpt(lines)}
    assert [len(excerpt(some)) for some in (lines, lines[20:22], [])] == [CONSOLE_LINES, 2, 0]
    again = [f"[{number}] it does not listen" for number in range(30)]
    assert excerpt(["no network device", *again]) == ["no network device", "[0] it does not listen"]


# The journal


def test_a_journal_knows_the_original_kernels_of_hosts_until_they_are_back() -> None:
    journal = Journal()
    for host in "ab":
        journal.write(OriginalKernel(host, "1", "6.1", "quiet"))
    begun = [BootBegun(1, "k", "a", "6.2", "1"), BootBegun(2, "k", "b", "6.2", "1")]
    seen = Booted(1, "a", "2", "6.2")
    for entry in (begun[0], seen, begun[1]):
        journal.write(entry)
    assert set(original_states(journal)) == {"a", "b"}
    assert [journal.boot_of(host) for host in "abc"] == [seen, begun[1], None]
    assert [journal.seen_boot_id(host) for host in "abc"] == ["2", "1", ""]
    assert [journal.left_boot_id(host) for host in "abc"] == ["1", "1", ""]
    assert journal.last_number(BootBegun) == 2
    journal.write(Back("a", "9"))
    assert original_states(journal) == {"b": State("1", "6.1", "quiet")}
    assert journal.boot_of("a") == Back("a", "9")
    assert journal.seen_boot_id("a") == "9"


# The hosts are simulated: a file of three lines, and a program as their power switch.

SWITCH = """\
#!/bin/sh
cd FOLDER/$1 && echo "$2" >> told
up() { printf '%s\\n' "boot$(wc -l < told)" "$1" "$2" > next && mv next state; }
case $2 in BODY esac
"""


class Simulated:
    """Hosts that are booted by a program, the journal, and what was said."""

    def __init__(
        self, folder: Path, body: str, hosts: Sequence[str] = ("h",), deadline: int = 5
    ) -> None:
        self.folder = folder
        script = folder / "switch"
        whole = f"{body} original) up 6.1 quiet;;"
        script.write_text(SWITCH.replace("FOLDER", str(folder)).replace("BODY", whole))
        script.chmod(0o755)
        for name in hosts:
            (folder / name).mkdir()
            (folder / name / "state").write_text("boot0\n6.1\nquiet\n")
        argv = (str(script), "{host}", "{kernel}")
        how = BootSpec("command", argv=argv, deadline=deadline * 10**9)
        self.known = {name: Host(name, ssh=name, boot=how) for name in hosts}
        self.journal = Journal()
        self.said: list[str] = []
        self.boots = self.anew()

    def anew(self) -> Boots:
        """As another controller finds it."""
        campaign = booted(1, 1, ("a", "b")).campaign
        pairs = (Pair(next(iter(self.known)), list(self.known)[-1]),)
        kernels = {name: Kernel(name, release="6.12", append=name) for name in ("a", "b")}
        campaign = campaign._replace(hosts=self.known, pairs=pairs, kernels=kernels)
        pool = cast(WorkerPool, self)  # of which boots use nothing but what is here
        return Boots(campaign, pool, self.journal, self.said.append)

    def host_worker(self, host: str) -> SimpleNamespace:
        return SimpleNamespace(hello=SimpleNamespace(machine=""))

    def channel(self, host: str) -> Channel:
        return cast(Channel, SimulatedChannel(self.folder / host / "state"))

    def release(self, host: str, wait: bool = True) -> None:
        """No worker is there."""

    disconnect = release

    def release_of(self, host: str) -> str:
        return (self.folder / host / "state").read_text().split("\n")[1]

    def told(self, host: str) -> list[str]:
        return (self.folder / host / "told").read_text().split()


class SimulatedChannel:
    def __init__(self, file: Path) -> None:
        self.file = file

    def run(self, argv: Sequence[str], timeout: float = 30.0) -> Result:
        if not self.file.exists():
            raise HostError("h: it is down")
        return Result(tuple(argv), 0, self.file.read_text(), "")


UP = 'a|b) up 6.12 "quiet $2";;'


def test_the_original_kernel_is_read_anew_after_a_restore(tmp_path: Path) -> None:
    """Else a controller that dies on the next kernel leaves the host there for good."""
    lab = Simulated(tmp_path, 'a) up 6.66 a;; b) up 6.12 "quiet b";;')
    with pytest.raises(BootError, match=r"h: it booted 6\.66 instead of 6.12"):
        lab.boots.bring_up("a", lambda number: "")
    assert lab.release_of("h") == "6.1"
    lab.boots.bring_up("b", lambda number: "")
    assert lab.release_of("h") == "6.12"
    assert (lab.anew().back(), lab.release_of("h")) == (["h: back on 6.1"], "6.1")


def test_a_host_that_was_never_told_to_boot_is_back(tmp_path: Path) -> None:
    lab = Simulated(tmp_path, UP)
    lab.journal.write(OriginalKernel("h", "boot0", "6.1", "quiet"))
    assert (lab.anew().back(), lab.journal.left()) == ([], False)


@pytest.mark.parametrize(
    ("body", "refused", "why", "told"),
    [
        (UP, ["no address"], "", ["a", "a"]),
        # a command that leaves the words of a kernel out
        ("a) up 6.12 quiet;;", [], "command line `quiet` instead of `a`", ["a", "a", "original"]),
    ],
)
def test_a_kernel_that_is_not_accepted_is_booted_once_more(
    tmp_path: Path, body: str, refused: list[str], why: str, told: list[str]
) -> None:
    lab = Simulated(tmp_path, body)
    with pytest.raises(BootError, match=why) if why else nullcontext():
        lab.boots.bring_up("a", lambda number: refused.pop() if refused else "")
    assert lab.told("h") == told
    assert why or lab.said == ["boot 1, once more: no address"]


def test_a_host_that_another_campaign_uses_is_not_booted(tmp_path: Path) -> None:
    def busy(_: object) -> str:
        raise HostBusy("h: in use")

    lab = Simulated(tmp_path, UP)
    for act in (lambda: lab.boots.bring_up("a", busy), lab.boots.back):
        with pytest.raises(HostError, match="h: in use"):
            act()
        lab.boots._lock = busy
    lab.boots._lock = Mock(side_effect=[WorkerLost("h: gone"), HostBusy("h: in use")])
    with pytest.raises(HostBusy, match="h: in use"):
        lab.boots.bring_up("b", lambda number: "")
    assert lab.told("h") == ["a"]


def test_a_host_is_restored_only_with_its_original_command_line(tmp_path: Path) -> None:
    lab = Simulated(tmp_path, f"original) up 6.1 'quiet more';; {UP}")
    lab.boots.bring_up("a", lambda number: "")
    with pytest.raises(HostError, match=r"h: not restored .* with the command line `quiet more`"):
        lab.boots.back()
    assert isinstance(lab.journal.boot_of("h"), Booted)


def test_a_host_that_did_not_go_is_waited_for_when_it_is_told_again(tmp_path: Path) -> None:
    """What still answers from the boot that it should leave is not yet an answer."""
    late = f"original) [ $(grep -c original told) = 1 ] || {{ (sleep 0.5; up 6.1 quiet) >/dev/null 2>&1 & }};; {UP}"
    lab = Simulated(tmp_path, late, deadline=2)
    lab.boots.bring_up("a", lambda number: "")
    assert lab.boots.back() == ["h: back on 6.1"]
    assert lab.told("h") == ["a", "original", "original"]


def test_what_was_put_back_is_said_though_another_host_fails(tmp_path: Path) -> None:
    body = f"original) [ $1 = g ] && exit 3; up 6.1 quiet;; {UP}"
    lab = Simulated(tmp_path, body, hosts=("h", "g"))
    lab.boots.bring_up("a", lambda number: "")
    with pytest.raises(HostError) as caught:
        lab.boots.back()
    first, second = str(caught.value).split("; ", 1)
    assert first == "h: back on 6.1"
    assert second.startswith("g: not restored to its original kernel 6.1: g:")


def test_a_silent_host_that_is_booted_back_after_a_crash_is_told_of(tmp_path: Path) -> None:
    lab = Simulated(tmp_path, UP, deadline=1)
    lab.boots.bring_up("a", lambda number: "")
    lab.journal.write(BootBegun(2, "a", "h", "6.12", "boot1"))
    (tmp_path / "h" / "state").unlink()  # it was never booted
    again = lab.anew()
    assert again.finish_boots() == ["h: back on 6.1"]
    assert again.back() == []


@pytest.mark.parametrize(
    ("stays", "failed"),
    [("false", True), ("[ $1 = g ]", True), ("true", False)],
    ids=["all are back", "one is not", "none is: it may be the controller that is cut off"],
)
def test_a_kernel_that_dies_has_failed_once_a_host_is_back(
    tmp_path: Path, stays: str, failed: bool
) -> None:
    lab = Simulated(tmp_path, f"original) {stays} && exit 3; up 6.1 quiet;; {UP}", hosts=("h", "g"))
    lab.boots.bring_up("a", lambda number: "")
    (tmp_path / "g" / "state").unlink()
    kept, nothing = list[str](), SimpleNamespace(restore=int, forget=int)
    conductor: Any = SimpleNamespace(
        _boots=lab.boots, _booted=Boot(1, "a"), _held=nothing, _noise=nothing,
        _campaign=SimpleNamespace(roles={"h": "sender", "g": "receiver"}),
        _pool=SimpleNamespace(release=lab.release, start_all=int, reached=int),
        _store=SimpleNamespace(journal=lab.journal),
        _recorder=SimpleNamespace(keep_unmeasured=lambda *of_unit: kept.append(of_unit[-1])),
    )  # fmt: skip
    conductor._fail = partial(Conductor._fail, conductor)

    def die() -> None:
        raise HostGone("g: it is gone")

    units = booted(1, 1, ("a", "b")).units
    with nullcontext() if stays == "false" else pytest.raises(HostError, match="g: not restored"):
        Conductor._on_kernel(conductor, die, lambda: units[:1])
    assert kept == ["boot: a: g: it is gone"] * failed
    with pytest.raises(HostGone):  # no kernel is booted any more
        Conductor._on_kernel(conductor, die)


# This machine


def test_this_machine_is_not_booted(netbench: Command, small_file: Path) -> None:
    small_file.write_text(small_file.read_text().replace("sweep: {", "sweep: {kernel: ['6.1'], "))
    done = netbench("run", small_file)
    assert done.returncode == 2
    assert "netbench runs on, which cannot boot itself; name hosts" in " ".join(done.stderr.split())


# Builds of a kernel: their keys, the plan's turns, and what the conductor boots


TEXT = """\
netbench: 1
name: builds
hosts: {{snd: {{ssh: snd}}, rcv: {{ssh: rcv}}}}
kernels: {{a: {}, b: {}}}
sweep: {{kernel: [a, b]}}
repeat: {{min: 8, max: 8, boots: {}}}
"""
GIT = "{git: /x, rev: v1, builds: 2}"
DEBS = "{builds: [{deb: a1.deb}, {deb: a2.deb}], append: quiet}"


def parsed(one: str, other: str, boots: int = 4) -> campaign.Campaign:
    return campaign.parse(TEXT.format(one, other, boots), "/lab/builds.yaml")


# Keys


def test_a_number_links_a_kernel_from_git_as_often() -> None:
    each = parsed(GIT, "{git: /x, rev: v2, builds: 2}").kernels["a"].each
    assert [(k.name, k.layout, k.rev, k.builds) for k in each] == [
        ("a#1", 0, "v1", ()), ("a#2", 1, "v1", ())
    ]  # fmt: skip
    alone = parsed("{git: /x, rev: v1, builds: 1}", "{release: '6.1'}").kernels["a"]
    assert alone.each == (alone,)


def test_listed_builds_take_the_place_of_a_source() -> None:
    found = parsed(DEBS, "{builds: [{release: '6.1'}, {image: /i, initrd: /r}]}")
    debs = (Kernel(f"a#{n}", deb=f"/lab/a{n}.deb", append="quiet") for n in (1, 2))
    assert found.kernels["a"].each == (*debs,)
    assert found.kernels["b"].each[1] == Kernel("b#2", image="/i", initrd="/r")
    assert [kernel.name for kernel in found.builds] == ["a#1", "a#2", "b#1", "b#2"]


def test_boots_that_builds_do_not_fit_are_refused() -> None:
    with pytest.raises(CampaignError, match=r"repeat\.boots: expected 2 or more, a boot of each b"):
        parsed(GIT, GIT, boots=1)
    with pytest.raises(CampaignError, match=r"kernels\.b\.builds: expected as many builds as a"):
        parsed(GIT, "{git: /x, rev: v1, builds: 3}")
    assert parsed(GIT, "{release: '6.1'}", boots=2).warnings == ()
    assert "3 boots are no multiple of 2 builds" in parsed(GIT, GIT, boots=3).warnings[0]


# The plan


def several(boots: int, builds: Sequence[int]) -> Plan:
    plan = booted(boots, boots, ("k1", "k2"))
    kernels = {
        name: kernel._replace(git="/x", layouts=number)
        for (name, kernel), number in zip(plan.campaign.kernels.items(), builds, strict=True)
    }
    return Plan(plan.campaign._replace(kernels=kernels))


def test_builds_of_a_kernel_take_turns_from_round_to_round() -> None:
    plan = several(5, (2, 1))
    boots = plan.all_boots()
    assert [boot.build for boot in boots if boot.kernel == "k1"] == [1, 2, 1, 2, 1]
    assert {boot.build for boot in boots if boot.kernel == "k2"} == {None}
    assert [boot.kernel for boot in boots] == [b.kernel for b in several(5, (1, 1)).all_boots()]
    told = plan_json(plan)["boots"]
    assert isinstance(told, list)
    assert [each.get("build") for each in told] == [boot.build for boot in boots]
    assert plan.boot_on("k1") == Boot(0, "k1", 1)


# What is booted


def test_the_build_of_the_round_is_booted(tmp_path: Path) -> None:
    """Hosts are stand-ins, which a program boots: it is told the name of the build."""
    lab = Simulated(tmp_path, 'a#1|a#2) up 6.12 "quiet a";; ' + UP)
    builds = tuple(Kernel(build_name("a", at), release="6.12", append="a") for at in (1, 2))
    other = Kernel("b", release="6.12", append="b")
    lab.boots._kernels = {"a": Kernel("a", builds=builds), "b": other}
    for turn in (1, 2, None):
        lab.boots.bring_up("b" if turn is None else "a", lambda number: "", turn)
    assert lab.told("h") == ["a#1", "a#2", "b"]


def test_a_campaign_has_each_build_built_of_the_commit_that_it_keeps(
    repository: Repository,
) -> None:
    git = f"{{git: {repository.place}, rev: master, config: tinyconfig, builds: 2}}"
    wanted = pinned(parsed(git, git, boots=2))
    assert "builds: 2" in wanted.text
    built = with_built_kernels(wanted, Progress().say)
    trees = [build.tree for build in built.kernels["a"].each]
    assert len(set(trees)) == 2
    assert [build.tree for build in built.kernels["b"].each] == trees
    assert [build.name for build in built.builds][:2] == ["a#1", "a#2"]


class Answering:
    """A pool of workers that find every address."""

    def host_worker(self, host: str) -> Answering:
        return self

    def operate(self, op: str, address: str) -> str:
        return "eth0"


def test_a_boot_is_accepted_by_what_earlier_boots_of_its_build_were() -> None:
    def entry(build: int | None, release: str) -> HostEntry:
        return HostEntry(1, "id", 100, {"kernel": release}, on="a", build=build)

    wanted = parsed(DEBS, DEBS)
    stored = {"snd": [entry(1, "6.1"), entry(2, "6.2")]}
    pool = cast(WorkerPool, Answering())
    assert why_not_ready(wanted, pool, stored, {"snd": entry(2, "6.2")}) == ""
    why = why_not_ready(wanted, pool, stored, {"snd": entry(1, "6.2")})
    assert "kernel was 6.1, then 6.2" in why


# Clocks of booted hosts by two looks, which are made up: no clock here runs at another rate


MS = 10**6


def looked(there: int, at: int, took: int = 0) -> Look:
    """A clock that said so, asked at a time, with the answer after `took`; all in ms."""
    return Look(at * MS, there * MS, (at + took) * MS)


@pytest.mark.parametrize(
    ("passed", "took", "wrong"),
    [
        (1000, 0, False),
        (1018, 0, False),  # what a step of 10 ms and 1% allow
        (1025, 0, True),
        (975, 0, True),
        (1025, 20, False),  # the answer may have been late by as much
        (2000, 200, True),
        (500, 200, True),
        (0, 0, True),
    ],
)
def test_a_clock_is_wrong_where_no_delay_explains_it(passed: int, took: int, wrong: bool) -> None:
    first, second = looked(70_000, 5_000, took), looked(70_000 + passed, 6_000, took)
    why = why_wrong({"a": looked(0, 0), "b": first}, {"a": looked(1000, 1000), "b": second})
    assert why.startswith("b: its clock runs ") == wrong
    assert bool(why) == wrong


def test_what_is_read_is_the_time_since_boot_and_the_true_rate_lies_between_the_bounds() -> None:
    found = look(lambda: "351735.47 234388.90\n")
    assert found.there == 351_735_470_000_000
    assert found.before <= found.after
    low, high = rates(looked(0, 0, 30), looked(1500, 1000, 30))
    assert low < 1.5 < high


@pytest.mark.parametrize("text", ["x", "nan 1", "1e400 1"])
def test_what_is_no_uptime_is_the_hosts_error(text: str) -> None:
    with pytest.raises(HostError, match="/proc/uptime is no time there"):
        look(lambda: text)
