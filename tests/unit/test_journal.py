"""The journal: what is written is read back, what it knows of hosts, and damaged lines."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbench import campaign
from netbench.base.cancel import held_back
from netbench.base.errors import StoreError
from netbench.base.json_lines import JsonLines, to_line
from netbench.result.journal import (
    ENTRIES,
    FIRST,
    Back,
    BootBegun,
    Booted,
    Change,
    Ended,
    Entry,
    Journal,
    LeftChanged,
    MadeSink,
    ModulesHidden,
    ModulesShown,
    OriginalKernel,
    Restored,
    Why,
    entry_json,
    machine_of,
    parse_entry,
)
from netbench.run.restore import restore_plan
from tests.support import damage

WHERE = "r/journal.jsonl:3"
TIME = "2026-03-01T12:00:00.123456Z"
NUMBER = st.integers(0, 2**64 - 1)
NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("number", "device", "inode"), NUMBER),
    "numbers": st.lists(NUMBER, max_size=3).map(tuple),
}
entries: st.SearchStrategy[Entry] = st.one_of(
    st.builds(kind, **{f.name: NUMBERS[f.name] for f in fields(kind) if f.name in NUMBERS})
    for kind in ENTRIES.values()
)
EXAMPLES: dict[str, Entry] = {
    "change": Change(
        7,
        "snd",
        "b1",
        "tso",
        "features",
        ("eth0",),
        "off",
        "on",
        ("u",),
        ("l", "m"),
        "2 eth0",
        5,
        "m",
    ),
    "restored": Restored((7, 8), "snd"),
    "left_changed": LeftChanged("snd", {"net.ipv4.tcp_dsack": ("1", "0")}),
    "made_sink": MadeSink("/data/out", "rcv", "b", 65024, 131),
    "ended": Ended("limit"),
    "original_kernel": OriginalKernel("snd", "b0", "6.1", "quiet", "m"),
    "modules_shown": ModulesShown("snd", "/lib/modules/6.12", True, "m"),
    "modules_hidden": ModulesHidden("snd", "/lib/modules/6.12"),
    "boot": BootBegun(1, "new", "snd", "6.12", "b0"),
    "booted": Booted(1, "snd", "b1", "6.12"),
    "back": Back("snd", "b2"),
}
RAW: dict[str, dict[str, Any]] = {
    kind: entry_json(entry) | {"time": TIME} for kind, entry in EXAMPLES.items()
}


@given(st.lists(entries, max_size=5))
def test_what_is_written_is_read_back(written: list[Entry]) -> None:
    for entry in written:
        assert parse_entry(to_line(entry_json(entry)), WHERE)[1] == entry


def test_every_kind_is_on_disk_with_its_keys(tmp_path: Path) -> None:
    assert EXAMPLES.keys() == ENTRIES.keys()
    (tmp_path / "journal.jsonl").touch()
    journal = Journal(tmp_path / "journal.jsonl")
    for entry in EXAMPLES.values():
        journal.write(entry)
    assert journal.entries() == list(EXAMPLES.values())
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == list(ENTRIES)
    for line, entry in zip(lines, EXAMPLES.values(), strict=True):
        own = [each.name for each in fields(entry)]
        assert list(line) == ["time", "kind", "machine", "netns", *own]


@given(st.sampled_from(sorted(RAW)).flatmap(lambda kind: damage.damaged(RAW[kind])))
def test_a_damaged_line_is_an_error_that_names_it_or_an_entry_still(line: bytes) -> None:
    if refused := damage.refusal(parse_entry, line, WHERE):
        assert refused.startswith(f"{WHERE}: ")
        assert "; " in refused
    else:
        _, entry = parse_entry(line, WHERE)
        assert parse_entry(to_line(entry_json(entry)), WHERE)[1] == entry


def test_a_journal_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_bytes(to_line(RAW["back"]) + b'{"time":"","kind":"back"}\n' + b"{unfinished")
    with pytest.raises(StoreError, match=rf"^{file}:2: .*\(host: Field required\)"):
        Journal(file).entries()


NUMBERED = ((1, "a"), (2, "b"), (3, "a"))  # changes of hosts


def test_entries_are_known_without_reading_them_again(tmp_path: Path) -> None:
    """Each of hundreds of hosts is asked about, while all of them write."""
    path = tmp_path / "journal.jsonl"
    changes = [Change(n, host, "b", "tso", "link", ("eth0",), "1", "2") for n, host in NUMBERED]
    path.touch()
    Journal(path).write(changes[0])
    later = Journal(path)
    for entry in (*changes[1:], Restored((1,), "a")):
        later.write(entry)
    read = Journal(path).entries()
    path.unlink()
    assert later.entries() == read
    assert later.outstanding("a") == [changes[2]]


def test_changes_are_outstanding_until_they_are_restored_on_their_host() -> None:
    changes = [Change(n, host, "b", "tso", "features", (), "off", "on") for n, host in NUMBERED]
    journal = Journal()
    for entry in (*changes, Restored((1, 2), "b")):
        journal.write(entry)
    assert journal.outstanding("a") == [changes[2], changes[0]]
    assert journal.outstanding("b") == []


def test_an_interrupt_waits_until_a_line_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the copy would miss it, and the next line make it another journal's."""
    own, copy = (tmp_path / name for name in ("own.jsonl", "copy.jsonl"))
    copy.touch()
    own.touch()
    journal = Journal(own, copy)
    assert journal.begin()
    append = JsonLines.append

    def interrupted(lines: JsonLines, line: bytes, force: bool = False) -> None:
        append(lines, line, force)
        if force:
            held_back.interrupt()

    monkeypatch.setattr(JsonLines, "append", interrupted)
    whys: tuple[Why, ...] = ("limit", "done")
    for why in whys:
        with pytest.raises(KeyboardInterrupt):
            journal.write(Ended(why))
    assert journal.entries() == [Ended("limit"), Ended("done")]
    assert copy.read_bytes() == own.read_bytes()


LINE = to_line(RAW["back"])


@pytest.mark.parametrize(
    ("own", "copy", "same", "after"),
    [
        (LINE * 2, LINE, True, LINE * 2),
        (LINE * 2 + b'{"ti', LINE + b'{"t', True, LINE * 2),
        (LINE, LINE * 2, False, LINE * 2),
        (LINE * 2, LINE.replace(b"snd", b"rcv"), False, LINE.replace(b"snd", b"rcv")),
        (LINE * 2, b"", True, LINE * 2),
    ],
)
def test_a_copy_is_brought_up_to_date_or_is_another_journals(
    tmp_path: Path, own: bytes, copy: bytes, same: bool, after: bytes
) -> None:
    """And one that is not is not written again."""
    paths = tmp_path / "own.jsonl", tmp_path / "copy.jsonl"
    for path, data in zip(paths, (own, copy), strict=True):
        path.write_bytes(data)
    journal = Journal(*paths)
    assert (journal.begin(), paths[1].read_bytes()) == (same, after)
    journal.write(Ended("done"))
    assert (paths[1].read_bytes() == paths[0].read_bytes()) == same


@pytest.mark.parametrize(
    ("boot", "is_local", "machine", "netns", "elsewhere"),
    [
        ("b", True, None, None, ""),
        ("b", False, "other", 1, ""),  # the host says that it is the same
        ("later", True, None, 1, ""),  # booted since
        ("later", False, "other", None, "on the machine other"),
        ("later", True, "other", None, "on the machine other"),
        ("b", True, None, 1, "in the network namespace 1"),
        ("later", True, "", 0, ""),  # of an older netbench
    ],
)
def test_what_a_controller_elsewhere_changed_is_named_and_not_put_back(
    tmp_path: Path,
    boot: str,
    is_local: bool,
    machine: str | None,
    netns: int | None,
    elsewhere: str,
) -> None:
    change = Change(1, "h", "b", "tso", "features", ("eth0",), "on", "off")
    raw = entry_json(change)
    raw |= {} if machine is None else {"machine": machine}
    raw |= {} if netns is None else {"netns": netns}
    (tmp_path / "journal.jsonl").write_bytes(to_line(raw))
    journal = Journal(tmp_path / "journal.jsonl")
    changes, lines = journal.here("h", boot, is_local)
    assert (changes, bool(lines)) == ([] if elsewhere else [change], bool(elsewhere))
    known = Journal(tmp_path / "known.jsonl")
    (tmp_path / "known.jsonl").write_bytes(to_line({**raw, "of_machine": "m"}))
    told = [known.here("h", boot, is_local, machine=of)[0] == [] for of in ("m", "another")]
    assert told == ([False, True] if boot == "later" else [bool(elsewhere)] * 2)
    assert all(elsewhere in line for line in lines)
    assert journal.left()


@pytest.mark.parametrize(("op", "target"), [("features", "eth0"), ("file", "/proc/sys/vm/a")])
def test_no_namespace_is_taken_for_one_that_is_gone(tmp_path: Path, op: str, target: str) -> None:
    """But for what is of the whole kernel."""
    change = Change(1, "h", "b", "tso", op, (target,), "on", "off", network=7)
    (tmp_path / "journal.jsonl").write_bytes(to_line({**entry_json(change), "netns": 1}))
    journal = Journal(tmp_path / "journal.jsonl")
    told = [bool(journal.here("h", "b", False, network)[1]) for network in (0, 7, 8)]
    assert told == [False, False, op == "features"]
    assert bool(journal.here("h", "b", True)[1]) == (op == "features")


def test_the_machine_is_told_without_its_id() -> None:
    """As machine-id(5) asks for."""
    file = Path("/etc/machine-id")
    identity = file.read_text().strip() if file.exists() else "-"
    assert RAW["back"]["machine"]
    assert RAW["back"]["machine"] not in identity
    assert machine_of("uninitialized") == machine_of("") == "" != machine_of(identity)


# What `restore` shows of a journal, before or in place of acting on it


CAMPAIGN = campaign.parse(
    """\
netbench: 1
name: r
ssh_config: /config
hosts:
  snd: {ssh: root@snd, boot: {command: [/opt/boot, "a word"]}}
  rcv: {ssh: rcv, boot: grub}
transfer: {duration: 20ms}
""",
    "r.yaml",
)
CHANGE = Change(1, "rcv", "b", "mtu", "link", ("eth0", "mtu"), "9000", "1500\n", network=7)
UNDO = ("un", "do it"), ("cat", "f")
COMMAND = Change(1, "rcv", "b", "mine", "exec", ("x",), "", "was\n", *UNDO, "", 7, "m")
ORIGINAL = OriginalKernel("snd", "b", "6.1", "quiet")
LINK = ModulesShown("rcv", "/lib/modules/a b", False)
MODULES = ModulesShown("rcv", "/lib/modules/6.12", True)
BOOTS_BACK = "boots back to 6.1, where it is not running: runs `/opt/boot 'a word'`"
CONNECTS = "rcv: connects to rcv by /config"


@pytest.mark.parametrize(
    ("change", "on"),
    [
        (CHANGE, "network"),
        (replace(CHANGE, network=0), "network other"),  # of an older version
        (replace(CHANGE, op="file", target=("/proc/sys/net/ipv4/tcp_sack",)), "network"),
        (replace(CHANGE, op="file", target=("/proc/sys/vm/swappiness",)), "network other"),
        (replace(CHANGE, op="neighbours", target=("only", "file:0 /proc/sys/vm")), "network other"),
        (replace(CHANGE, op="neighbours", target=("only", "link:2 eth0")), "network"),
        (replace(CHANGE, op="file", target=("/proc/sys/net/x",), network=FIRST), "network other"),
        (replace(CHANGE, network=FIRST), ""),
        (replace(CHANGE, op="file", target=("/sys/devices/virtual/net/data0/x",)), "network"),
        (COMMAND, "network other boot"),
        (replace(COMMAND, of_machine=""), "network other"),
    ],
)
def test_where_a_change_may_be_seen(change: Change, on: str) -> None:
    places = {"network": ("b", 7, "m"), "other": ("b", 8, "m"), "boot": ("c", 7, "m")}
    assert [name for name, place in places.items() if change.is_on(*place)] == on.split()
    assert not change.is_on("c", 7, "")
    assert change.is_below(replace(COMMAND, number=2, network=8)) == ("network other" in on)


@pytest.mark.parametrize(
    ("entries", "shown"),
    [
        ([CHANGE], [CONNECTS, "rcv: mtu: sets link eth0 mtu to '1500'"]),
        ([CHANGE, Restored((1,), "rcv")], []),
        ([CHANGE, Restored((1,), "snd")], [CONNECTS, "rcv: mtu: sets link eth0 mtu to '1500'"]),
        ([COMMAND], [CONNECTS, "rcv: mine: runs `cat f`; runs `un 'do it'`"]),
        ([ORIGINAL], ["snd: connects to root@snd by /config", f"snd: {BOOTS_BACK}"]),
        ([ORIGINAL, Back("snd", "b")], []),
        ([MODULES], [CONNECTS, "rcv: unmounts /lib/modules/6.12"]),
        ([LINK], [CONNECTS, "rcv: removes the link '/lib/modules/a b'"]),
        ([MODULES, ModulesHidden("rcv", "/lib/modules/6.12")], []),
        ([Ended("lost"), MadeSink("/out", "rcv", "b", 1, 2), Booted(1, "rcv", "b", "6.1")], []),
        ([BootBegun(1, "k", "rcv", "6.1", "b"), Change(9, "other", "", "", "", (), "", "")], []),
    ],
)
def test_every_act_is_shown_with_its_host(entries: list[Entry], shown: list[str]) -> None:
    journal = Journal()
    for entry in entries:
        journal.write(entry)
    assert restore_plan(CAMPAIGN, journal) == shown
