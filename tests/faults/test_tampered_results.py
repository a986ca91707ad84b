"""A result folder that another account has changed, or that came from elsewhere: `resume` and
`restore` name what was changed, and do nothing that the account itself has not signed.

To add a way of tampering, add a row to TAMPERINGS.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from netbench import campaign
from netbench.conductor import conductor
from netbench.conductor.host_facts import own_boot_id
from netbench.conductor.progress import Silent
from netbench.journal import Change, Ended, Entry, Restored, entry_json
from netbench.json_lines import now, to_line
from netbench.signing import Key, LineSigner, digest, key_file
from netbench.store import Store
from tests.support.local import call

NOBODY = 65534
CAMPAIGN = """\
netbench: 1
name: t
verify: off
hosts: {here: local}
transfer: {duration: 20ms, warmup: 2ms}
repeat: {min: 3, max: 3}
settings: {tcp_metrics: keep}
"""


@dataclass(frozen=True)
class Dead:
    """A campaign that died with one change left: its undo writes `mended`, and what tampering asks
    for writes `evil`.
    """

    folder: Path

    @property
    def place(self) -> Path:
        return self.folder.parent

    @property
    def journal(self) -> Path:
        return self.folder / "journal.jsonl"

    def lines(self) -> list[bytes]:
        return self.journal.read_bytes().splitlines(keepends=True)

    def write(self, lines: list[bytes]) -> None:
        self.journal.write_bytes(b"".join(lines))

    def change(self, number: int, word: str) -> Change:
        """A change by a command; what its undo does to the file `word` is seen later."""
        undo = ("sh", "-c", f"echo undone >> {self.place / word}")
        look = ("cat", "/proc/sys/kernel/ostype")
        boot = own_boot_id()
        return Change(
            number, "here", boot, f"{word}-{number}", "exec", ("true",), "", "", undo, look
        )

    @property
    def result(self) -> str:
        """The result's id."""
        return str(json.loads((self.folder / "signature.json").read_text())["id"])

    def evil(self) -> bytes:
        return to_line(entry_json(self.change(9, "evil"), now()))

    def run(self, verb: str, *options: str) -> subprocess.CompletedProcess[str]:
        """A verb of the command line."""
        return call(verb, *options, self.folder)

    def happened(self, word: str) -> bool:
        return (self.place / word).exists()


def begun(place: Path) -> Dead:
    """A campaign of which one run of three is missing, as a controller that was killed leaves it."""
    path = conductor.start(campaign.parse(CAMPAIGN, "t.yaml"), place / "r").path
    dead = Dead(path.rename(place / "result"))
    records = dead.folder / "records.jsonl"
    records.write_bytes(b"".join(records.read_bytes().splitlines(keepends=True)[:2]))
    store = Store.open(dead.folder)
    store.lock()
    earlier: list[Entry] = [dead.change(1, "earlier"), Restored((1,), "here")]
    for entry in [*earlier, dead.change(2, "mended"), Ended("interrupted")]:
        store.journal.write(entry)
    store.close()
    return dead


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Dead:
    return begun(tmp_path_factory.mktemp("original"))


@pytest.fixture
def dead(original: Dead, tmp_path: Path) -> Dead:
    """A copy, whose undo writes beside the copy."""
    copy = Dead(tmp_path / "result")
    shutil.copytree(original.folder, copy.folder)
    resign(copy, [line.replace(bytes(original.place), bytes(tmp_path)) for line in copy.lines()])
    return copy


def resign(dead: Dead, lines: list[bytes], key: Key | None = None) -> None:
    """Sign lines as the account itself would, or another one with its own key."""
    from netbench.signing import plain

    signer = LineSigner(key or Key(key_file().read_bytes()), dead.result)
    dead.write([signer.sign(plain(line), place) for place, line in enumerate(lines, 1)])


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the account's state folder, which a test may spoil."""
    state = tmp_path / "state"
    shutil.copytree(key_file().parent, state / "netbench")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    return state / "netbench" / "key"


@dataclass(frozen=True)
class Tampering:
    """What is done to a result, what the messages must name, and what the verbs then do.

    goes_on: `resume` finishes the campaign. mends: the change that the account has signed is put
    back. trusted: `restore --trust` does what the tampering asks for.
    """

    act: Callable[[Dead], object]
    names: tuple[str, ...]
    goes_on: bool = False
    mends: bool = False
    trusted: bool = False


def added(at: int) -> Callable[[Dead], None]:
    """A line that nobody signed, before line `at` + 1."""

    def act(dead: Dead) -> None:
        lines = dead.lines()
        dead.write([*lines[:at], dead.evil(), *lines[at:]])

    return act


def add_signed(key: Callable[[Dead], Key], result: str = "") -> Callable[[Dead], None]:
    """A line with a signature that is not of this account, or not for this result."""

    def act(dead: Dead) -> None:
        signer = LineSigner(key(dead), result or dead.result)
        lines = dead.lines()
        dead.write([*lines, signer.sign(dead.evil(), len(lines) + 1)])

    return act


def edited(name: str, old: str, new: str) -> Callable[[Dead], None]:
    def act(dead: Dead) -> None:
        file = dead.folder / name
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new.replace("PLACE", str(dead.place)), 1))

    return act


def edit_change(dead: Dead) -> None:
    """The undo of the change that is left is another one."""
    dead.write([line.replace(b"mended", b"evil") for line in dead.lines()])


def own_key(dead: Dead) -> Key:
    return Key(key_file().read_bytes())


def foreign_key(dead: Dead) -> Key:
    return Key(b"x" * 32)


def signed_by_another(dead: Dead) -> None:
    """All of it, as that account's own result would be."""
    from netbench.codec import to_json
    from netbench.result_signature import SIGNED, sign

    files = {name: (dead.folder / name).read_bytes() for name in SIGNED}
    signature = sign(foreign_key(dead), files)
    (dead.folder / "signature.json").write_text(json.dumps({"schema": 2, **to_json(signature)}))
    resign(dead, [*dead.lines(), dead.evil()], foreign_key(dead))


def journal_of_another(dead: Dead) -> None:
    """The journal of another result of the same campaign, by the same account."""
    other = begun(dead.place / "other")
    shutil.copy(other.journal, dead.journal)


def link(name: str) -> Callable[[Dead], None]:
    """A file of the result is a link to what another account may change."""

    def act(dead: Dead) -> None:
        file = dead.folder / name
        file.rename(dead.place / "elsewhere")
        file.symlink_to(dead.place / "elsewhere")

    return act


def link_folder(dead: Dead) -> None:
    dead.folder.rename(dead.place / "elsewhere")
    dead.folder.symlink_to(dead.place / "elsewhere")


def mode(name: str, bits: int) -> Callable[[Dead], None]:
    return lambda dead: (dead.folder / name).chmod(bits)


def owned_by_nobody(name: str) -> Callable[[Dead], None]:
    return lambda dead: os.chown(dead.folder / name, NOBODY, NOBODY)


def spoil_key(change: Callable[[Path], object]) -> Callable[[Dead], object]:
    return lambda dead: change(key_file())


def link_key(file: Path) -> None:
    file.rename(file.with_name("other"))
    file.symlink_to("other")


EVIL = "{here: local}\ncommand: {x: {apply: [/bin/sh, -c, 'touch PLACE/evil'], read: [echo], undo: [x]}}\n"
SKIPPED = {"goes_on": True, "mends": True, "trusted": True}
TAMPERINGS = {
    "a line added": Tampering(added(7), ("journal.jsonl:6 is not signed",), **SKIPPED),
    "a line added before all others": Tampering(
        added(0), ("journal.jsonl:1 is not signed",), **SKIPPED
    ),
    "a line added in the middle": Tampering(
        added(3), ("journal.jsonl:4 is not signed",), **SKIPPED
    ),
    "a line with a made-up signature": Tampering(
        lambda dead: dead.write(
            [*dead.lines(), dead.evil()[:-2] + b',"mac":"6:%s"}\n' % (b"0" * 64)]
        ),
        ("journal.jsonl:6 has no valid signature",),
        **SKIPPED,
    ),
    "a line of another account": Tampering(
        add_signed(foreign_key), ("journal.jsonl:6 has no valid signature",), **SKIPPED
    ),
    "a line of another result": Tampering(
        add_signed(own_key, "0" * 32), ("journal.jsonl:6 has no valid signature",), **SKIPPED
    ),
    "a line twice": Tampering(
        lambda dead: dead.write([*dead.lines(), dead.lines()[1]]),
        ("journal.jsonl:6 is a copy",),
        goes_on=True,
        mends=True,
    ),
    "a line changed": Tampering(
        edit_change,
        ("journal.jsonl:4 has no valid", "journal.jsonl:5 is out of place"),
        trusted=True,
    ),
    "a line removed from the middle": Tampering(
        lambda dead: dead.write([dead.lines()[0], *dead.lines()[2:]]),
        ("journal.jsonl:2 is out of place", "journal.jsonl:4 is out of place"),
    ),
    **{
        f"the last {5 - left} of 5 lines cut off": Tampering(
            lambda dead, left=left: dead.write(dead.lines()[:left]),
            (f"journal.jsonl has lost {5 - left} line",),
        )
        for left in (0, 2, 3, 4)
    },
    "the journal emptied and signed anew": Tampering(
        lambda dead: resign(dead, [dead.lines()[0]]), ("journal.jsonl has lost 4 lines",)
    ),
    "lines in another order": Tampering(
        lambda dead: dead.write([*dead.lines()[:1], *reversed(dead.lines()[1:])]),
        ("journal.jsonl:2 is out of place",),
    ),
    "a signature taken off": Tampering(
        lambda dead: dead.write([*dead.lines()[:3], dead.evil(), *dead.lines()[4:]]),
        ("journal.jsonl:4 is not signed", "journal.jsonl:5 is out of place"),
        trusted=True,
    ),
    "the journal of another result": Tampering(
        journal_of_another,
        (
            *("journal.jsonl:1 has no valid", "journal.jsonl:5 has no valid"),
            "journal.jsonl has lost 5 lines",
        ),
    ),
    "the plan changed": Tampering(
        edited("plan.json", '"seconds"', '"seconds_at_most"'), ("plan.json was changed",)
    ),
    "another host in campaign.yaml": Tampering(
        edited("campaign.yaml", "{here: local}", "{here: {ssh: evil.example}}"),
        ("campaign.yaml was changed",),
    ),
    "a boot.command in campaign.yaml": Tampering(
        edited(
            "campaign.yaml",
            "{here: local}",
            "{here: {ssh: nowhere, boot: {command: [/bin/sh, -c, 'touch PLACE/evil']}}}",
        ),
        ("campaign.yaml was changed",),
    ),
    "an ssh_config in campaign.yaml": Tampering(
        edited("campaign.yaml", "{here: local}", "{here: {ssh: x}}\nssh_config: PLACE/config"),
        ("campaign.yaml was changed",),
    ),
    "a command in campaign.yaml": Tampering(
        edited("campaign.yaml", "{here: local}\n", EVIL), ("campaign.yaml was changed",)
    ),
    "the lab in campaign.yaml": Tampering(
        edited("campaign.yaml", "{here: local}", "{here: {}}\nlab: netns"),
        ("campaign.yaml was changed",),
    ),
    "a campaign with its own digest": Tampering(
        lambda dead: [
            edited("campaign.yaml", "netbench: 1\n", "netbench: 1\nssh_config: x\n")(dead),
            edited(
                "signature.json",
                json.loads((dead.folder / "signature.json").read_text())["campaign"],
                digest((dead.folder / "campaign.yaml").read_bytes()),
            )(dead),
        ],
        ("signature.json was changed",),
    ),
    "no signature": Tampering(
        lambda dead: (dead.folder / "signature.json").unlink(), ("signature.json is missing",)
    ),
    "all of it signed by another account": Tampering(
        signed_by_another, ("begun by another account, or on another machine",), trusted=True
    ),
    "no key": Tampering(spoil_key(Path.unlink), ("begun by another account",)),
    "another key": Tampering(
        spoil_key(lambda file: file.write_bytes(b"y" * 32)), ("begun by another account",)
    ),
    "a key that others may read": Tampering(
        spoil_key(lambda file: file.chmod(0o644)), ("others may read", "netbench/key")
    ),
    "a key of another size": Tampering(
        spoil_key(lambda file: file.write_bytes(b"")), ("netbench/key is not a key of 32 bytes",)
    ),
    "a key that is a link": Tampering(spoil_key(link_key), ("netbench/key is a symbolic link",)),
    "a key's folder that others may write": Tampering(
        spoil_key(lambda file: file.parent.chmod(0o777)), ("others may write", "state/netbench")
    ),
    "a folder that all may write": Tampering(mode("", 0o777), ("others may write",)),
    "a folder that a group may write": Tampering(mode("", 0o775), ("others may write",)),
    "a journal that a group may write": Tampering(
        mode("journal.jsonl", 0o664), ("others may write", "journal.jsonl (mode 0664)")
    ),
    "a campaign that all may write": Tampering(
        mode("campaign.yaml", 0o646), ("others may write", "campaign.yaml")
    ),
    "samples that all may write": Tampering(
        mode("samples", 0o1777), ("others may write", "samples")
    ),
    "a folder that is a link": Tampering(link_folder, ("result is a symbolic link",)),
    **{
        f"{name} that is a link": Tampering(link(name), (f"{name} is a symbolic link",))
        for name in (
            *("campaign.yaml", "plan.json", "signature.json", "facts.json", "records.jsonl"),
            *("journal.jsonl", "log.txt", "samples"),
        )
    },
}
FOREIGN = {
    f"{name or 'a folder'} of nobody": Tampering(owned_by_nobody(name), ("belongs to nobody",))
    for name in ("", "campaign.yaml", "plan.json", "journal.jsonl", "signature.json", "samples")
}


def check_verb(dead: Dead, verb: str, row: Tampering) -> None:
    done = dead.run(verb)
    said = " ".join(done.stderr.split())
    assert [name for name in row.names if name not in said] == [], said
    assert "defect" not in said
    assert not dead.happened("evil")
    assert not dead.happened("earlier"), "it was undone before"
    assert dead.happened("mended") == row.mends, said
    if verb == "resume":
        assert done.returncode == (0 if row.goes_on else 1), said


@pytest.mark.parametrize("verb", ["resume", "restore"])
@pytest.mark.parametrize("row", TAMPERINGS.values(), ids=TAMPERINGS)
def test_what_was_tampered_with_is_named_and_not_acted_on(
    dead: Dead, own_state: Path, verb: str, row: Tampering
) -> None:
    row.act(dead)
    check_verb(dead, verb, row)
    if verb == "restore" and row.trusted:
        trusted = dead.run("restore", "--trust")
        assert trusted.returncode == 0, trusted.stderr
        assert f"echo undone >> {dead.place / 'evil'}" in trusted.stderr, "it is shown first"
        assert dead.happened("evil")


@pytest.mark.root
@pytest.mark.parametrize("verb", ["resume", "restore"])
@pytest.mark.parametrize("row", FOREIGN.values(), ids=FOREIGN)
def test_what_belongs_to_another_account_is_refused(
    dead: Dead, own_state: Path, verb: str, row: Tampering
) -> None:
    row.act(dead)
    check_verb(dead, verb, row)
    if verb == "restore":
        trusted = dead.run("restore", "--trust")
        assert (trusted.returncode, dead.happened("mended")) == (1, False)


@pytest.mark.parametrize("cut", [1, 20, 80, 200])
def test_a_journal_that_a_kill_has_cut_stays_usable(dead: Dead, own_state: Path, cut: int) -> None:
    """The last line, `ended`, is not whole: all before it counts, and what is added as well. The
    account counts a line once it is whole.
    """
    (own_state.parent / "lines" / dead.result).write_bytes(b"%012d\n" % (len(dead.lines()) - 1))
    last = dead.lines()[-1]
    dead.journal.write_bytes(dead.journal.read_bytes()[: -min(cut, len(last) - 1)])
    done = dead.run("restore")
    assert (done.returncode, done.stderr) == (0, "")
    assert dead.happened("mended")
    resumed = dead.run("resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "sign" not in resumed.stderr
    again = dead.run("restore")
    assert (again.returncode, again.stdout, again.stderr) == (
        0,
        "nothing is left to put back\n",
        "",
    )


@pytest.mark.parametrize("name", ["moved", "a result \x1b[31m of mine", "x" * 200])
def test_a_result_that_was_moved_is_one_still(dead: Dead, own_state: Path, name: str) -> None:
    moved = Dead(dead.folder.rename(dead.place / name))
    done = moved.run("resume")
    assert done.returncode == 0, done.stderr


def test_what_restore_would_do_is_shown_without_trust(dead: Dead, own_state: Path) -> None:
    own_state.unlink()
    done = dead.run("restore")
    assert done.returncode == 1
    assert "here: works on this machine" in done.stderr
    assert f"echo undone >> {dead.place / 'mended'}" in done.stderr
    assert f"restore --trust {dead.folder}" in done.stderr
    trusted = dead.run("restore", "--trust")
    assert trusted.returncode == 0
    assert dead.happened("mended")


def test_reports_need_no_key(dead: Dead, own_state: Path) -> None:
    own_state.unlink()
    done = dead.run("report")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("spoil", ["a file in its place", "others may read it"])
def test_without_a_key_a_campaign_runs_and_only_trust_acts_on_it(
    own_state: Path, tmp_path: Path, spoil: str
) -> None:
    if spoil == "others may read it":
        own_state.chmod(0o644)
    else:
        shutil.rmtree(own_state.parent)
        own_state.parent.write_text("")
    said: list[str] = []
    progress = Silent()
    progress.say = said.append  # type: ignore[method-assign]
    conclusion = conductor.start(campaign.parse(CAMPAIGN, "t.yaml"), tmp_path / "r", progress)
    assert conclusion.why == "done"
    assert [line for line in said if "`resume` refuses" in line] != []
    dead = Dead(conclusion.path)
    dead.write([dead.evil()])
    assert dead.run("restore").returncode == 1
    assert not dead.happened("evil")
    if spoil == "a file in its place":
        assert dead.run("restore", "--trust").returncode == 0
        assert dead.happened("evil")


@pytest.mark.parametrize(
    "umask",
    [0, 0o077, *(pytest.param(usual, marks=pytest.mark.slow) for usual in (0o002, 0o022))],
)
def test_others_may_write_nothing_of_a_result(
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
    key = state / "netbench" / "key"
    assert (key.stat().st_mode & 0o777, len(key.read_bytes())) == (0o600, 32)
