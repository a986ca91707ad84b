"""Results that another account changed, or of elsewhere: a way is a row of TAMPERINGS."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from netbench import api, campaign
from netbench.base.errors import HostError, NetbenchError
from netbench.base.json_lines import to_line
from netbench.base.locked import is_locked
from netbench.live.watched import Watched
from netbench.result import campaign_state
from netbench.result.campaign_state import CampaignState, state_folder
from netbench.result.journal import (
    Back,
    BootBegun,
    Booted,
    Change,
    Ended,
    Entry,
    Journal,
    MadeSink,
    ModulesShown,
    OriginalKernel,
    Restored,
    entry_json,
    machine_of,
)
from netbench.result.store import Store
from netbench.run import conductor
from netbench.run.held_settings import BEGUN
from netbench.run.host_facts import own_boot_id
from netbench.run.worker_pool import WorkerPool
from netbench.settings.put_back import undone_by
from tests.support.engine_pair import helper
from tests.support.local import call
from tests.support.unfinished import unfinished

CAMPAIGN = """\
netbench: 1
name: t
verify: off
hosts: {here: local}
transfer: {duration: 20ms, warmup: 2ms}
repeat: {min: 3, max: 3}
settings: {tcp_metrics: keep}
"""
LEFT = "nothing is left to put back\n"


@dataclass(frozen=True)
class Dead:
    """A campaign that died with one change left, whose undo writes `mended`; tampering: `evil`."""

    folder: Path

    @property
    def place(self) -> Path:
        return self.folder.parent

    @property
    def journal(self) -> Path:
        return self.folder / "journal.jsonl"

    @property
    def state(self) -> CampaignState:
        found = campaign_state.find(self.folder)
        assert found
        return found

    def change(self, number: int, word: str) -> Change:
        """A change by a command; what its undo does to the file `word` is seen later."""
        undo = ("sh", "-c", f"echo undone >> {self.place / word}; : {'x' * 400}")
        look = ("sh", "-c", f"cat {self.place / word} 2>&-; true")
        boot = own_boot_id()
        return Change(
            number, "here", boot, f"{word}-{number}", "exec", ("x",), "", "undone\n", undo, look
        )

    def evil(self) -> bytes:
        return to_line(entry_json(self.change(9, "evil")))

    def run(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A verb of the command line, of the result where nothing else is said."""
        return call(verb, *(words or [self.folder]))

    def happened(self, word: str) -> bool:
        return (self.place / word).exists()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("finished")
    return conductor.start(campaign.parse(CAMPAIGN, "t.yaml"), place).path


@pytest.fixture
def dead(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dead:
    """A campaign of which one run of three is missing, as a killed controller leaves it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(finished, tmp_path / "result")
    dead = Dead(unfinished(tmp_path / "result", 2))
    store = Store.open(dead.folder)
    store.lock()
    earlier: list[Entry] = [dead.change(1, "earlier"), Restored((1,), "here")]
    for entry in [*earlier, dead.change(2, "mended"), Ended("interrupted")]:
        store.journal.write(entry)
    store.close()
    return dead


def edited(name: str, old: str, new: str) -> Callable[[Dead], None]:
    def act(dead: Dead) -> None:
        file = dead.folder / name
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new.replace("PLACE", str(dead.place)), 1))

    return act


def lines(change: Callable[[Dead, list[bytes]], list[bytes]]) -> Callable[[Dead], None]:
    """Change the lines of the journal's copy."""

    def act(dead: Dead) -> None:
        old = dead.journal.read_bytes().splitlines(keepends=True)
        dead.journal.write_bytes(b"".join(change(dead, old)))

    return act


def link(name: str) -> Callable[[Dead], None]:
    """A file of the result is a link to what another account may change."""

    def act(dead: Dead) -> None:
        (dead.folder / name).rename(dead.place / "elsewhere")
        (dead.folder / name).symlink_to(dead.place / "elsewhere")

    return act


def relinked(dead: Dead) -> None:
    state_folder().rename(dead.place / "other")
    state_folder().symlink_to(dead.place / "other")


def lose_state_and_add(dead: Dead) -> None:
    shutil.rmtree(state_folder())
    lines(lambda dead, old: [*old, dead.evil()])(dead)


def of_another(dead: Dead) -> None:
    """It says that it is another campaign of this account."""
    files = {name: (dead.folder / name).read_bytes() for name in ("campaign.yaml", "plan.json")}
    other = campaign_state.begin(files, dead.place / "other")
    (dead.folder / "id").write_text(f"{other.path.name}\n")


@dataclass(frozen=True)
class Tampering:
    """What is done to a result; what `resume` says; whether `restore` mends or what it says."""

    act: Callable[[Dead], object]
    says: str
    mends: bool = True
    shows: str = ""
    code: int = 0


def journal(change: Callable[[Dead, list[bytes]], list[bytes]]) -> Tampering:
    return Tampering(lines(change), "journal.jsonl was changed")


def host(words: str) -> Tampering:
    """Another host in campaign.yaml."""
    return Tampering(edited("campaign.yaml", "{here: local}", words), "campaign.yaml was changed")


def unknown(act: Callable[[Dead], object]) -> Tampering:
    """It is no campaign of this account any more."""
    shown = "says that this is left changed: here: works on this machine here: "
    return Tampering(act, "knows no such campaign", False, shown, 2)


TOUCH = "[/bin/sh, -c, 'touch PLACE/evil']"
LINKED = "netbench is a symbolic link"
TAMPERINGS = {
    "a line added": journal(lambda dead, old: [*old, dead.evil()]),
    "a line changed": journal(lambda dead, old: [each.replace(b"mended", b"evil") for each in old]),
    "a line removed from the middle": journal(lambda dead, old: [old[0], *old[2:]]),
    "another host": host("{here: {ssh: evil.example}}"),
    "a boot.command": host(f"{{here: {{ssh: nowhere, boot: {{command: {TOUCH}}}}}}}"),
    "a command": host(f"{{here: local}}\ncommand: {{x: {{apply: {TOUCH}, read: [x], undo: [x]}}}}"),
    "the lab": host("{here: {}}\nlab: netns"),
    "the plan changed": Tampering(
        edited("plan.json", '"seconds"', '"seconds_at_most"'), "plan.json was changed"
    ),
    "plan and campaign changed": Tampering(
        lambda dead: [(dead.folder / n).write_text("{") for n in ("plan.json", "campaign.yaml")],
        "campaign.yaml and plan.json was changed",
    ),
    "another campaign's ID": Tampering(of_another, "was moved", False, "was moved", 1),
    "the folder is another's": Tampering(
        lambda dead: os.chown(dead.folder, 65534, 0), "belongs to nobody, who may have changed it"
    ),
    "no ID": Tampering(lambda dead: (dead.folder / "id").unlink(), "/id: No such file"),
    "an ID that leads elsewhere": Tampering(
        lambda dead: (dead.folder / "id").write_text("../../../result\n"), "id was changed"
    ),
    "a state folder that is lost": unknown(lambda dead: shutil.rmtree(state_folder())),
    "another account's, with a line added": unknown(lose_state_and_add),
    "a state folder that others may write": Tampering(
        lambda dead: dead.state.path.chmod(0o777), "others may read", False, "others may read", 1
    ),
    "a state folder that is a link": Tampering(relinked, LINKED, False, LINKED, 1),
    **{
        f"{name} that is a link": Tampering(link(name), "a symbolic link")
        for name in ("plan.json", "records.jsonl", "journal.jsonl", "samples")
    },
}


@pytest.mark.parametrize("verb", ["resume", "restore"])
@pytest.mark.parametrize("row", TAMPERINGS.values(), ids=TAMPERINGS)
def test_what_was_tampered_with_is_named_and_not_acted_on(
    dead: Dead, verb: str, row: Tampering
) -> None:
    records = (dead.folder / "records.jsonl").read_bytes()
    row.act(dead)
    (dead.place / "way").symlink_to(dead.place)
    done = dead.run(verb, f"{dead.place}/way/{dead.folder.name}")
    said = " ".join(done.stderr.split())
    assert ("defect" in said, dead.happened("evil")) == (False, False)
    assert not dead.happened("earlier"), "it was undone before"
    if verb == "resume":
        assert (done.returncode > 0, row.says in said) == (True, True), said
        assert (dead.folder / "records.jsonl").read_bytes() == records
    else:
        assert (done.returncode, row.shows in said) == (row.code, True), said
    assert dead.happened("mended") == (verb == "restore" and row.mends)


@pytest.mark.parametrize("cut", [1, 10_000])
def test_a_copy_of_the_journal_that_a_crash_has_cut_is_brought_up_to_date(
    dead: Dead, cut: int
) -> None:
    whole = dead.journal.read_bytes()
    dead.journal.write_bytes(whole[: max(0, len(whole) - cut)])
    done = dead.run("resume")
    assert (done.returncode, dead.happened("mended")) == (0, True), done.stderr
    assert dead.journal.read_bytes().startswith(whole)
    assert dead.run("restore").stdout.startswith("nothing is left to put back")


def test_a_result_that_was_moved_is_one_still(dead: Dead) -> None:
    done = Dead(dead.folder.rename(dead.place / "a result \x1b[31m of mine")).run("resume")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("how", ["--all", "exchanged", "gone", "link", "R"])
def test_restore_alone_lists_what_was_left_changed_and_puts_it_back_when_told(
    dead: Dead, how: str
) -> None:
    identity = dead.state.path.name
    listed = call("restore")
    assert (listed.returncode, listed.stderr, dead.happened("mended")) == (0, "", False)
    assert listed.stdout.startswith(f"{identity} t {dead.folder}\n  here: works on this machine")
    assert f"echo undone >> {dead.place / 'mended'}; : ...\n" in listed.stdout, "which is brief"
    if how == "gone":
        shutil.rmtree(dead.folder)
    if how in ("exchanged", "link"):  # of another account, to root's own
        os.symlink(dead.folder.rename(dead.place / "own"), dead.folder)
        os.lchown(dead.folder, 1234, 1234)
    if how == "exchanged":
        (dead.place / "own" / campaign_state.ID).write_text(f"{'f' * 32}\n")
    words = {"--all": "--all", "R": str(dead.folder), "exchanged": str(dead.folder)}
    done = call("restore", words.get(how, identity))
    assert (done.returncode, done.stderr, dead.happened("mended")) == (0, "", True)
    assert how != "link" or dead.journal.read_bytes().count(b'"restored"') == 1
    again = call("restore")
    assert (again.returncode, again.stdout, again.stderr) == (0, LEFT, "")
    assert list(campaign_state.unfinished()) == list(campaign_state.unfinished()) == []
    Journal(campaign_state.folders()[0] / "journal.jsonl").write(dead.change(5, "later"))
    assert [name for name, _ in campaign_state.unfinished()] == [identity]


def test_an_id_is_that_of_a_state_whatever_folder_has_its_name(
    dead: Dead, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity, ended = dead.state.path.name, dead.state.path.with_name("f" * 32)
    shutil.copytree(dead.state.path, ended)
    (ended / "journal.jsonl").write_bytes(b"")
    monkeypatch.chdir(dead.place)
    Path(identity).mkdir()
    Path(identity, campaign_state.ID).write_text(f"{ended.name}\n")
    assert (call("restore", identity).returncode, dead.happened("mended")) == (0, True)


def test_states_that_cannot_be_read_are_not_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "netbench").mkdir(0o700)
    (tmp_path / "netbench" / "campaigns").touch()
    done = call("restore")
    assert (done.returncode, done.stdout) == (1, "")
    assert "campaigns: Not a directory" in done.stderr
    (tmp_path / "c.yaml").write_text("netbench: 1\nname: c\ntransfer: {duration: 1s}\n")
    assert "has left changed is not known" in " ".join(
        call("check", tmp_path / "c.yaml").stdout.split()
    )


def test_what_a_host_has_undone_is_forgotten_there_though_another_cannot_be_reached(
    dead: Dead,
) -> None:
    """An account has few such logs."""
    file, identity = dead.state.path / "campaign.yaml", dead.state.path.name
    hosts = "{here: {address: 127.0.0.1}, far: {ssh: 'root@127.0.0.1:1', address: 127.0.0.2}}"
    file.write_text(file.read_text().replace("{here: local}", hosts))
    far = replace(dead.change(3, "mended"), host="far", boot_id="another")
    with dead.state.journal.open("ab") as journal:
        journal.write(to_line(entry_json(far)))
    with helper() as worker:
        worker.operate("undone", (identity, "0"), "begin")
        done = call("restore", identity)
        assert (done.returncode, "far (" in done.stderr) == (1, True), done.stderr
        assert undone_by(worker, identity, [BEGUN]) == set()


@pytest.mark.parametrize("verb", ["run", "check", "transfer", "resume"])
def test_no_campaign_begins_on_top_of_what_a_dead_one_left(
    dead: Dead, finished: Path, tmp_path: Path, verb: str
) -> None:
    """So their order is no matter. What its helper has undone is not in the way."""
    identity, file = dead.state.path.name, tmp_path / "c.yaml"
    file.write_text(CAMPAIGN)
    other = unfinished(Path(shutil.copytree(finished, tmp_path / "other")), 2)
    words: dict[str, list[object]] = {"resume": [other], "transfer": ["duration=20ms"]}
    done = call(verb, *words.get(verb, [file]))
    said = " ".join((done.stdout + done.stderr).split())
    left = f"here: a dead campaign has left mended-2 changed; `restore {identity}` puts it back"
    assert (done.returncode, left in said) == (2, True), said
    with helper() as worker, dead.state.journal.open("ab") as torn:
        torn.write(b'{"time":"2026')  # the controller's last word
        torn.flush()
        for step in ("begin", "2"):
            worker.operate("undone", (identity, "0"), step)
        assert call(verb, *words.get(verb, [file])).returncode == 0
    assert Journal(dead.state.journal).left() == (verb == "check"), "the helper's word may go"


@pytest.mark.usefixtures("whole_kernel")
@pytest.mark.parametrize(
    "how", ["it dies after the look", "it is being restored", "it lives", "it is of 0.2.0"]
)
def test_once_hosts_are_locked_nobody_is_at_what_is_left_on_them(
    dead: Dead, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """One that lives in another namespace has the kernel's lock; of which 0.2.0 was is not known."""
    if how == "it dies after the look":
        monkeypatch.setattr(conductor, "check", lambda *_: [])
    else:
        dead.state.lock(dead.folder)
    if how == "it lives":
        Journal(dead.state.journal).write(replace(dead.change(2, "mended"), network=3))
    told = pytest.raises(HostError, match=r"(left|result has) mended-2 changed")
    with helper() as worker, told if how != "it lives" else nullcontext():
        if how in ("it lives", "it is of 0.2.0"):
            worker.operate("lock", "kernel", "it+1")
        conductor.start(campaign.parse(CAMPAIGN, "t.yaml"), tmp_path / "r")


@pytest.mark.usefixtures("whole_kernel")
def test_what_a_host_elsewhere_says_is_undone_is_not_forgotten(
    dead: Dead, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkerPool, "is_local", lambda *_: False)  # it says that it is this one
    with helper() as worker:
        for step in ("begin", "2"):
            worker.operate("undone", (dead.state.path.name, "0"), step)
        conductor.start(campaign.parse(CAMPAIGN, "t.yaml"), tmp_path / "r")
    assert Journal(dead.state.journal).left()


def test_what_a_dead_campaign_has_booted_is_not_measured(dead: Dead, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(CAMPAIGN)
    journal, boot = Journal(dead.state.journal), own_boot_id()
    with helper() as worker:
        own = machine_of(worker.hello.machine)
    for entry in (Restored((2,), "here"), OriginalKernel("x", "1", "6.1", "quiet")):
        journal.write(entry)
    assert call("check", file).returncode == 0
    journal.write(Booted(1, "x", boot, "6.2"))
    left = "here: a dead campaign has left another kernel, or its modules;"
    assert left in call("check", file).stdout
    journal.write(Back("x", boot))
    assert call("check", file).returncode == 0
    booting = BootBegun(2, "k", "x", "6.2", "1")
    for entry in (OriginalKernel("x", "1", "6.1", "quiet", own), booting):
        journal.write(entry)
    assert left in call("check", file).stdout
    for entry in (Back("x", boot), ModulesShown("x", "/lib/modules/6.1", False, own)):
        journal.write(entry)
    assert left in call("check", file).stdout


def test_a_state_that_cannot_be_read_keeps_no_other_from_being_put_back(
    dead: Dead, tmp_path: Path
) -> None:
    bad = campaign_state.begin(dict.fromkeys(("campaign.yaml", "plan.json"), b""), tmp_path / "no")
    bad.journal.write_text('{"kind": "of a later version"}\n')
    bad.path.chmod(0o777)
    (bad.path.parent / "gone").symlink_to("nowhere")
    listed = call("restore").stdout
    assert dead.state.path.name in listed
    assert f"{bad.path.name} cannot be read: " in listed
    said = " ".join(call("check", dead.state.path / "campaign.yaml").stdout.split())
    assert f"warning: what the campaign {bad.path.name} has left changed is not known: " in said
    done = call("restore", "--all")
    assert (done.returncode, dead.happened("mended")) == (1, True)
    assert "is a place that others may" in done.stderr
    assert f"is forgotten by removing {bad.path.parent}/ID\n" in done.stderr
    bad.path.chmod(0o700)


def test_two_controllers_on_copies_of_one_result(dead: Dead) -> None:
    copy = Dead(dead.place / "copy")
    shutil.copytree(dead.folder, copy.folder)
    held = Store.open(copy.folder)
    held.lock()
    for verb in ("resume", "restore"):
        done = dead.run(verb)
        assert (done.returncode, "is in use by another netbench" in done.stderr) == (1, True)
    assert "(running)" in call("restore").stdout
    assert call("restore", "--all").returncode == 1
    argv = ["unshare", "-pf", "--mount-proc", sys.executable, "-m", "netbench", "restore"]
    assert b"(running)" in subprocess.check_output(argv)
    held.close()
    assert not dead.happened("mended")
    with (dead.folder / "records.jsonl").open() as read:
        fcntl.lockf(read, fcntl.LOCK_SH)  # whoever may read it can do that
        assert not is_locked(dead.folder / "records.jsonl")
        held = Store.open(dead.folder)
        held.lock()
        watched = Watched(dead.folder)
        assert (watched.look(), watched.state) == (True, "running")
        held.close()
        assert dead.run("resume").returncode == 0


def test_another_machine_with_this_home_names_what_it_does_not_put_back(
    dead: Dead, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home on NFS. The host `here` is another one there, and so is its boot."""
    journal = dead.state.journal
    for old, new in ((b'"machine":"', b'"machine":"not-'), (own_boot_id().encode(), b"other")):
        for file in (journal, dead.journal):
            file.write_bytes(file.read_bytes().replace(old, new))
    done = dead.run("restore")
    assert done.returncode == 1
    assert "here: mended-2 (exec x) was changed on the machine not-" in done.stderr
    assert not dead.happened("mended")
    resumed = dead.run("resume")
    assert (resumed.returncode, "on the machine not-" in resumed.stderr) == (0, True)
    assert not dead.happened("mended")
    assert "mended-2" in call("restore").stdout


def test_what_a_campaign_made_is_its_own_by_its_state_alone(dead: Dead) -> None:
    """A line in the result lets nothing be written over."""
    made = MadeSink(str(dead.place / "mine"), "here", own_boot_id(), 1, 2)
    lines(lambda dead, old: [*old, to_line(entry_json(made))])(dead)
    assert Store.open(dead.folder).journal.all(MadeSink) == []


def test_states_that_nobody_used_for_long_are_forgotten(dead: Dead, tmp_path: Path) -> None:
    old = campaign_state.begin(dict.fromkeys(("campaign.yaml", "plan.json"), b""), tmp_path / "no")
    for state in (old, dead.state):
        os.utime(state.journal, (0, 0))
        os.utime(state.path, (0, 0))
    shutil.rmtree(dead.folder)
    running = campaign_state.begin(dict.fromkeys(("campaign.yaml", "plan.json"), b""), tmp_path)
    running.lock(tmp_path)
    os.utime(running.journal, (0, 0))
    os.utime(running.path, (0, 0))
    kept = campaign_state.begin(dict.fromkeys(("campaign.yaml", "plan.json"), b""), tmp_path / "no")
    left = {folder.name for folder in campaign_state.folders()}
    running.close()
    assert old.path.name not in left
    assert kept.path.name in left
    assert len(left) == 3, "and what is left changed, or in use, is not"


HELD = CAMPAIGN.replace("settings: {tcp_metrics: keep}", "settings: {sysctl.net.ipv4.tcp_sack: 0}")
SACK = Path("/proc/sys/net/ipv4/tcp_sack")


@pytest.mark.parametrize("spoil", ["a file in its place", "a full disk"])
@pytest.mark.parametrize("text", [CAMPAIGN, HELD], ids=["changes nothing", "changes hosts"])
def test_without_a_place_for_its_state_a_campaign_changes_no_host(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch, spoil: str, text: str
) -> None:
    """One that changes none is run, and cannot be resumed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(small_disk))
    if spoil == "a full disk":
        (small_disk / "filler").write_bytes(b"x" * (2 << 20))
    else:
        (small_disk / "netbench").touch()
    file, before = tmp_path / "t.yaml", SACK.read_text()
    file.write_text(text.replace("min: 3, max: 3", "min: 1, max: 1"))
    done = call("run", file, "--results", tmp_path / "r")
    (folder,) = (tmp_path / "r" / "t").iterdir()
    if text is HELD:
        assert (done.returncode, "set XDG_STATE_HOME to a folder" in done.stderr) == (2, True)
        assert (folder / "records.jsonl").read_bytes() == b""
        assert SACK.read_text() == before
        return
    assert done.returncode == 0, done.stderr
    assert call("resume", folder).returncode == 0, "it is finished"
    (folder / "journal.jsonl").write_text("")
    said = " ".join(call("resume", folder).stderr.split())
    assert "knows no such campaign" in said
    assert "read it first, it is code" in said


@pytest.mark.root
def test_a_disk_of_the_state_that_fills_up_ends_the_campaign_before_a_change(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(small_disk))
    before = SACK.read_text()
    honest = Store.lock

    def lock(store: Store) -> None:
        honest(store)
        with pytest.raises(OSError, match="No space left"):
            (small_disk / "filler").write_bytes(b"x" * (2 << 20))

    monkeypatch.setattr(Store, "lock", lock)
    file = tmp_path / "t.yaml"
    file.write_text(HELD)
    done = call("run", file, "--results", tmp_path / "r")
    assert done.returncode == 1
    assert f"cannot write {small_disk}/netbench/campaigns/" in done.stderr
    assert "No space left on device; free some space there, then `resume`" in done.stderr
    assert SACK.read_text() == before
    (folder,) = (tmp_path / "r" / "t").iterdir()
    assert (folder / "records.jsonl").read_bytes() == b""
    (small_disk / "filler").unlink()
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(small_disk))
    assert call("resume", folder).returncode == 0
    assert SACK.read_text() == before


@pytest.mark.parametrize("umask", [0, 0o077])
def test_others_may_write_nothing_of_a_result_and_read_nothing_of_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    results, text = tmp_path / "new" / "results", tmp_path / "c.yaml"
    text.write_text(CAMPAIGN.replace("min: 3, max: 3", "min: 1, max: 1"))
    state = tmp_path / "home" / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    usual = os.umask(umask)
    try:
        made = call("run", text, "--results", results)
        assert made.returncode == 0, made.stderr
        folder = Path(made.stdout.splitlines()[-1])
        assert call("report", folder, "--html", folder / "report" / "r.html").returncode == 0
    finally:
        os.umask(usual)
    every = [results.parent, results, *results.rglob("*"), state.parent, *state.parent.rglob("*")]
    assert len([path for path in every if path.is_file()]) > 8
    loose = {path: oct(path.stat().st_mode) for path in every if path.stat().st_mode & 0o022}
    assert loose == {}
    (own,) = (state / "netbench" / "campaigns").iterdir()
    assert own.stat().st_mode & 0o777 == 0o700


# A result that was edited by hand, or damaged: every verb that reads it names the place


CAMPAIGN_OF_DAMAGE = "netbench: 1\nname: d\nverify: off\ntransfer: {duration: 20ms, warmup: 2ms}\nrepeat: {min: 3, max: 3}\nsettings: {tcp_metrics: keep}\n"
DEEP = "[" * 10**5 + "]" * 10**5
CHANGE = {
    **{"time": "2026-03-01T12:00:00.123456Z", "kind": "change", "number": 10**400, "host": "here"},
    **{"boot_id": "", "setting": "tso", "op": "features", "target": ["lo"]},
    **{"value": "off", "before": "on"},
}
# What a line or a file may have is tried in unit/test_record.py and unit/test_journal.py.
DAMAGED: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a record that is not JSON": ("records.jsonl:2", lambda data: data.replace(b'\n{"', b"\n", 1)),
    "a record of another version": (
        "records.jsonl:2",
        lambda data: data.replace(b'\n{"schema":2', b'\n{"schema":9', 1),
    ),
    "a plan that is nested too deep": ("plan.json", lambda data: DEEP.encode()),
    "facts of no host": ("facts.json", lambda data: b'{"schema":2,"hosts":[]}'),
    "a journal of nothing": ("journal.jsonl:1", lambda data: b"{}\n"),
    "a change beyond all numbers": (
        "journal.jsonl:2",
        lambda data: data + json.dumps(CHANGE).encode() + b"\n",
    ),
}


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result that has two runs of three: the third was cut off."""
    path = conductor.start(
        campaign.parse(CAMPAIGN_OF_DAMAGE, "d.yaml"), tmp_path_factory.mktemp("r")
    ).path
    records = path / "records.jsonl"
    records.write_bytes(records.read_bytes()[:-1])
    return path


def damaged(whole: Path, folder: Path, damage: str) -> Path:
    """A copy of a result with this damage."""
    where, change = DAMAGED[damage]
    shutil.copytree(whole, folder)
    unfinished(folder)
    file = folder / where.partition(":")[0]
    data = file.read_bytes()
    file.write_bytes(change(data))
    assert file.read_bytes() != data, "nothing was damaged"
    return folder


def refusals(folder: Path, verbs: Sequence[Callable[[Path], object]]) -> list[str]:
    """The errors with which verbs refuse a result."""
    messages = []
    for verb in verbs:
        try:
            verb(folder)
        except NetbenchError as error:
            messages.append(str(error))
    return messages


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_result_is_an_error_that_names_the_place(
    broken_off: Path, tmp_path: Path, damage: str
) -> None:
    where, _ = DAMAGED[damage]
    folder = damaged(broken_off, tmp_path / "copy", damage)
    messages = refusals(folder, (api.build_report, api.resume))
    assert len(messages) == 2
    if where.startswith("journal"):
        assert refusals(folder, [api.restore]) == [], "it acts on the campaign's state"
        (folder / "id").unlink()
        messages += refusals(folder, [api.restore])
        assert len(messages) == 3
    changed = [message for message in messages if "was changed after" in message]
    name = where.partition(":")[0]
    assert len(changed) == (name in ("journal.jsonl", "plan.json"))
    assert [m for m in messages if (name if m in changed else where) not in m] == []
    assert [message for message in messages if "; " not in message] == [], "what to do"


@pytest.mark.parametrize("verb", ["restore", "resume", "report"])
def test_the_command_line_names_the_place_and_no_defect(
    broken_off: Path, tmp_path: Path, verb: str
) -> None:
    folder = damaged(broken_off, tmp_path / "copy", "a journal of nothing")
    (folder / "id").unlink()
    done = call(verb, folder)
    assert done.returncode == 1
    assert "journal.jsonl:1: " in done.stderr
    assert "defect" not in done.stderr
