"""Result folders and files: whole or not at all, append-only, nothing lost but the run in flight."""

from __future__ import annotations

import os
import stat
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from netbench import api
from netbench.base.errors import PlaceError, ProtocolError
from netbench.base.json_lines import to_line
from netbench.base.whole_file import replacing
from netbench.result.journal import MadeSink, Restored
from netbench.result.record import Record
from netbench.result.store import Store
from tests.support.paths import ROOT
from tests.support.sshd import open_folder


def record(run: int, reason: str = "") -> Record:
    started = "2026-03-01T12:00:00.123456Z"
    return Record(run, "all", "here>here", 0, 0, {}, "failed", reason, started)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.create(tmp_path / "results", "name", "netbench: 1\n", {"cells": []})
    made.lock()
    return made


def test_what_takes_the_place_of_a_result_is_not_written(tmp_path: Path) -> None:
    """The folder above may be another account's, who may move it away: also before it is locked."""
    store = Store.create(tmp_path / "results", "name", "netbench: 1\n", {"cells": []})
    other = tmp_path / "other"
    for folder in (other, other / "samples"):
        folder.mkdir()
    made = store.path.rename(tmp_path / "away")
    store.path.symlink_to(other)
    store.lock()
    store.append(record(1))
    store.noise({"block": 0, "host": "here", "ns": [0, 0]})
    store.journal.write(Restored((1,), "here"))
    store.facts({})
    store.samples(1, [])
    assert list(other.rglob("*")) == [other / "samples"]
    assert b"restored" in (made / "journal.jsonl").read_bytes()
    assert {"facts.json", "000001.jsonl"} <= {file.name for file in made.rglob("*")}
    store.close()
    assert Store.open(made).path == made


def test_a_line_that_no_reader_takes_is_not_written(store: Store) -> None:
    with pytest.raises(ProtocolError, match="16 MiB long"):
        store.append(record(1, "x" * (16 << 20)))


def test_a_new_folder_and_its_facts_are_forced_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file and its folder before the folder appears, then the names above."""
    forced: list[str] = []
    honest = os.fsync

    def fsync(fd: int) -> None:
        forced.append(os.readlink(f"/proc/self/fd/{fd}"))
        honest(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    store = Store.create(tmp_path / "results", "name", "netbench: 1\n", {"cells": []})
    draft = str(store.path.parent / f".{store.path.name}.new")
    made = {path.name for path in store.path.iterdir() if path.is_file()}
    assert {"campaign.yaml", "plan.json", "records.jsonl", "journal.jsonl"} <= made
    assert store.state
    state = str(store.state.path)
    own = {path.name for path in store.state.path.iterdir()}
    assert own == {"campaign.yaml", "plan.json", "journal.jsonl", "result"}
    last = len(forced) - 1 - forced[::-1].index(draft)
    before = forced[:last]
    for place, inside in ((draft, made), (state, own)):
        within = {each for each in before if each.startswith(f"{place}/")}
        assert within == {f"{place}/{name}" for name in inside}
    assert str(store.state.path.parent) in before
    assert forced[last + 1 :] == [str(tmp_path / "results" / "name")]
    assert {str(tmp_path / "results"), str(tmp_path)} <= set(before)
    forced.clear()
    store.facts({})
    assert [Path(each).parent for each in forced] == [store.path, store.path.parent]


@pytest.mark.parametrize(("lines", "cut"), [(2, 1), (2, 23), (1, 23)])
def test_a_line_cut_short_by_a_kill_is_dropped_and_the_rest_kept(
    store: Store, lines: int, cut: int
) -> None:
    written = [record(run, reason="a\nb \u2028 ü") for run in range(1, lines + 1)]
    for each in written:
        store.append(each)
    store.journal.write(MadeSink("/one", "h", "b", 1, 2))
    store.close()
    file = store.path / "records.jsonl"
    assert file.read_bytes() == b"".join(to_line(each.to_json()) for each in written)
    file.write_bytes(file.read_bytes()[:-cut])
    with (store.path / "journal.jsonl").open("a") as journal:
        journal.write('{"time":"2026","kind":"en')
    assert list(store.records()) == written[:-1]
    again = Store.open(store.path)
    again.lock()
    again.append(record(3))
    assert [r.run for r in again.records()] == [*[1, 2][: lines - 1], 3]
    again.journal.write(MadeSink("/three", "h", "b", 1, 2))
    assert [sink.path for sink in again.journal.all(MadeSink)] == ["/one", "/three"]


# Files that appear whole or not at all, and what else may be at their place


def write(file: Path, text: str) -> None:
    with replacing(file) as draft:
        draft.write_text(text)


def test_a_file_is_replaced_whole_or_left(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("old")
    with suppress(ZeroDivisionError), replacing(file) as draft:
        draft.write_text("half")
        raise ZeroDivisionError
    assert file.read_text() == "old"
    write(file, "new")
    assert file.read_text() == "new"
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "elsewhere" / "f"
    file.parent.mkdir()
    link.symlink_to(file)
    for text in ("new", "newer"):  # the first time it leads to no file
        write(link, text)
        assert link.is_symlink()
        assert file.read_text() == text


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a link to another account")
@pytest.mark.parametrize("name", ["f", "device", "above/f", "own"])
def test_a_link_of_another_account_is_not_followed(tmp_path: Path, name: str) -> None:
    """Nor to a device, nor one above the file, nor one that an own link leads to."""
    folder, result = tmp_path / "folder", tmp_path / "results"
    for each in (folder, result):
        each.mkdir()
    own = folder / "f"
    own.write_text("root's")
    for link, target in (("f", own), ("device", Path("/dev/full")), ("above", folder)):
        (tmp_path / link).symlink_to(target)
        os.lchown(tmp_path / link, 1234, 1234)
    (tmp_path / "own").symlink_to("f")
    for to_write in (write, lambda file, text: api.write_index(result, file)):
        with pytest.raises(PlaceError, match="is a link of user 1234, which is not followed; cho"):
            to_write(tmp_path / name, "new")
    assert (own.read_text(), list(folder.iterdir())) == ("root's", [own])


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a link to another account")
def test_in_a_user_namespace_all_other_accounts_are_others() -> None:
    """There root of the machine, and its `/`, have the number that any account unknown has."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from pathlib import Path\n"
    code += "from netbench.base import opening; print('begun')\n"
    code += "with opening.folder_of(Path(sys.argv[1])): print('followed')"
    as_another = ("setpriv", "--reuid=4321", "--regid=4321", "--clear-groups")
    with open_folder() as folder:
        (folder / "link").symlink_to("own")
        os.lchown(folder / "link", 1234, 1234)
        argv = [*as_another, "unshare", "--user", "--map-root-user", "/usr/bin/python3", "-c", code]
        argv.append(str(folder / "link"))
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.stdout[:5] != "begun":
        pytest.skip(f"no account can run it in a user namespace here: {done.stderr[-90:]}")
    assert "which is not followed" in done.stderr
    assert "followed" not in done.stdout


def test_what_takes_the_place_of_a_draft_is_not_written(tmp_path: Path) -> None:
    """By the owner of the folder, and by that of the folder above."""
    own, folder = tmp_path / "own", tmp_path / "folder"
    own.write_text("root's")
    folder.mkdir()
    with suppress(PlaceError), replacing(folder / "f") as draft:
        (made,) = folder.iterdir()
        made.rename(tmp_path / "away")
        made.mkdir()
        (made / "f").symlink_to(own)
        draft.write_text("new")
    assert own.read_text() == "root's"
    with replacing(folder / "g") as draft:
        folder.rename(tmp_path / "moved")
        folder.symlink_to(tmp_path)
        draft.write_text("new")
    assert (tmp_path / "moved" / "g").read_text() == "new"
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFSOCK])
def test_what_is_no_file_stays(tmp_path: Path, kind: int) -> None:
    """As root a rename would put a file in the place of /dev/null."""
    os.mknod(tmp_path / "odd", 0o600 | kind)
    with pytest.raises(PlaceError, match=r"odd: it is no regular file; choose another place"):
        write(tmp_path / "odd", "x")
    assert [stat.S_IFMT(each.lstat().st_mode) for each in tmp_path.iterdir()] == [kind]


def test_a_folder_is_no_place_nor_a_file_of_a_result(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="Is a directory; choose another place"):
        write(tmp_path, "x")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "records.jsonl").touch()
    with pytest.raises(PlaceError, match="it is a result's own; choose another place"):
        write(tmp_path / "plan.json", "x")
