"""Campaign files that netbench writes for its user: never over one that is there."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from netbench.base.errors import PlaceError, RequestError


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
