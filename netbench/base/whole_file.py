"""Files that appear whole or not at all: written beside their place, then renamed to it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netbench.base.errors import PlaceError


@contextmanager
def replacing(
    file: Path, remedy: str = "choose another place", make_folder: bool = False
) -> Iterator[Path]:
    """A name to write to, whose file is at `file` in the end. What a symbolic link names is
    replaced, not the link. A device or a pipe stays one, and gets the contents. Errors: PlaceError
    with `remedy`.
    """
    try:
        place = Path(os.path.realpath(file))
        is_stream = file.exists() and not file.is_file() and not file.is_dir()
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
