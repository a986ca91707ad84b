"""Files that appear whole or not at all: written beside their place, then renamed to it. Campaign
files for the user: never over one that is there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from netbench.base.errors import PlaceError, RequestError


def is_of_others(file: Path) -> bool:
    """Whether it is a link of another account's: it may lead to what that one may not write."""
    return file.is_symlink() and file.lstat().st_uid not in (0, os.geteuid())


@contextmanager
def replacing(
    file: Path, remedy: str = "choose another place", make_folder: bool = False
) -> Iterator[Path]:
    """A name to write to, whose file is at `file` in the end. What a symbolic link names is
    replaced, not the link, unless that is another account's. A device or a pipe stays one, and gets
    the contents. Errors: PlaceError with `remedy`.
    """
    try:
        others = is_of_others(file)
        place = file if others else Path(os.path.realpath(file))
        is_stream = not others and file.exists() and not file.is_file() and not file.is_dir()
        if make_folder and not file.parent.exists():
            file.parent.mkdir(parents=True)
        beside = None if is_stream else place.parent
        with tempfile.TemporaryDirectory(prefix=".netbench-", dir=beside) as folder:
            draft = Path(folder) / file.name
            yield draft
            if is_stream:
                with draft.open("rb") as whole, file.open("wb") as out:
                    shutil.copyfileobj(whole, out)
            else:
                os.replace(draft, place)
    except OSError as error:
        raise PlaceError(f"cannot write {file}: {error.strerror}; {remedy}") from error


def refuse_existing(file: Path, verb: str) -> None:
    """Errors: RequestError where there is such a file, which may have been edited."""
    if os.path.lexists(file):
        raise RequestError(
            f"{verb}: {file} is there already; `run {file}` runs it, --output names another"
        )


def write_unless_same(text: str, file: Path, verb: str) -> None:
    """Write a campaign to a new file; one that holds this text already is as good. Errors:
    RequestError where there is another; PlaceError.
    """
    with suppress(OSError, ValueError):
        if file.read_text(encoding="utf-8") == text:
            return
    write_new(text, file, verb)


def write_new(text: str, file: Path, verb: str) -> None:
    """Write a campaign to a new file. Errors: RequestError where there is one; PlaceError."""
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        refuse_existing(file, verb)
    except OSError as error:
        raise PlaceError(
            f"cannot write {file}: {error.strerror}; choose another place with --output"
        ) from error
