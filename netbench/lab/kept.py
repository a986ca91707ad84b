"""What a lab keeps in its cache, checked before it is used: a file or a folder whose content is no
longer what was kept is not used, but made or fetched anew.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path

from netbench.base.control_characters import escape_controls
from netbench.base.errors import LabRefused, NetbenchError, StoreError
from netbench.base.ownership import refuse_foreign
from netbench.kernels.cache import use
from netbench.kernels.source import digest

WIDTH = 80


def refuse_shared(place: Path) -> None:
    """Refuse a cache that others may have changed. Errors: LabRefused."""
    try:
        refuse_foreign(place)
    except StoreError as error:
        raise LabRefused(
            f"{error}; or set XDG_CACHE_HOME to a folder of your own: guests' kernels come from"
            " there"
        ) from error


def keep(draft: Path, place: Path) -> None:
    """Move a file or a folder to its place, and remember its content; what was changed there goes.
    Errors: OSError.
    """
    if _is_whole(place):
        return  # another lab made it first
    note = draft.with_name(f"{draft.name}.sha256")
    note.write_text(digest(draft))
    if place.is_dir() and not place.is_symlink():
        away = draft.with_name(f"{draft.name}.changed")
        place.rename(away)
        shutil.rmtree(away)
    note.replace(_note(place))
    draft.replace(place)


def is_kept(place: Path) -> bool:
    """Whether a file or a folder is there as it was kept, and then in use; says so where it was
    changed.
    """
    whole = use(place) and _is_whole(place)
    if not whole and place.exists() and _note(place).exists():
        say(f"{place} was changed after it was kept: it is made or fetched anew")
    return whole


def _is_whole(place: Path) -> bool:
    try:
        return digest(place) == _note(place).read_text()
    except (OSError, ValueError, NetbenchError):  # one of them is not there
        return False


def say(line: str) -> None:
    """Say something on standard error, folded on a terminal."""
    text = escape_controls(f"netbench: {line}")
    if sys.stderr.isatty():
        text = textwrap.fill(
            text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    print(text, file=sys.stderr, flush=True)


def _note(place: Path) -> Path:
    return place.with_name(f"{place.name}.sha256")
