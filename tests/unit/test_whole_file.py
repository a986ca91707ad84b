"""Files that appear whole or not at all, and what else may be at their place."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from netbench import api
from netbench.base.errors import PlaceError
from netbench.base.whole_file import replacing


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


def test_a_pipe_stays_one_and_gets_the_contents(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(PlaceError, match="No such device"):  # nobody reads: it is not waited for
        write(pipe, "x")
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:
        write(pipe, "all of it")
        assert reader.read() == "all of it"
        if os.geteuid() == 0:  # its reader need not read
            os.chown(pipe, 1234, -1)
            with pytest.raises(PlaceError, match="a pipe of user 1234, which is not written to"):
                write(pipe, "x")
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a device, as root")
def test_a_device_stays_one(tmp_path: Path) -> None:
    """As root a rename would put a file in the place of /dev/null."""
    null, full = tmp_path / "null", tmp_path / "full"
    for device, minor in ((null, 3), (full, 7)):
        os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, minor))
    write(null, "gone")
    with pytest.raises(PlaceError, match=r"full: No space left on device; choose another place"):
        write(full, "no room")
    assert null.is_char_device()
    assert full.is_char_device()


def test_a_folder_is_no_place(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="Is a directory; choose another place"):
        write(tmp_path, "x")
    assert list(tmp_path.iterdir()) == []
