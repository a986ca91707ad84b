"""Files that appear whole or not at all: written beside their place, then renamed to it. Campaign
files for the user: never over one that is there.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from netbench.base.errors import PlaceError, RequestError
from netbench.base.opening import folder_of, force_names, open_inside, read_inside


@contextmanager
def whole(file: Path, mode: int = 0, forced: bool = False) -> Iterator[int]:
    """A descriptor to write to, whose contents are at `file` in the end. What one's own symbolic
    link names is replaced, not the link. A pipe or a device is refused.
    `mode`: folders that are missing are made. `forced`: it is on the disk at the end. Errors:
    OSError.
    """
    with folder_of(file, mode) as (folder, name, there):
        if there and not stat.S_ISREG(there) and not stat.S_ISDIR(there):
            raise OSError(errno.EINVAL, "it is no regular file")  # root could replace a device
        temporary = f".netbench-{secrets.token_hex(8)}"
        how = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        opened = os.open(temporary, how, 0o644, dir_fd=folder)
        try:
            yield opened
            if forced:
                os.fsync(opened)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            if forced:
                force_names(".", folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        finally:
            os.close(opened)


@contextmanager
def replacing(
    file: Path, remedy: str = "choose another place", make_folder: bool = False
) -> Iterator[Path]:
    """A name to write to, at `file` in the end, as by `whole`. Errors: PlaceError with `remedy`."""
    own = ("records.jsonl", "plan.json", "facts.json", "journal.jsonl", "campaign.yaml")
    if file.name in own and (file.parent / own[0]).exists():
        raise PlaceError(f"cannot write {file}: it is a result's own; {remedy}")
    try:
        with whole(file, 0o755 if make_folder else 0) as draft:
            yield Path(f"/proc/self/fd/{draft}")
    except OSError as error:
        raise PlaceError(f"cannot write {file}: {error.strerror}; {remedy}") from error


def write_new(text: str, file: Path, verb: str) -> None:
    """Write a campaign to a new file; one's own that holds this text is as good. Errors:
    RequestError where there is another, which may have been edited; PlaceError.
    """
    try:
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(open_inside(file, 0, how), "w", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError as error:
        with suppress(OSError):
            if read_inside(file, 0) == text.encode() and file.stat().st_uid == os.geteuid():
                return
        own = os.lstat(file).st_uid in (0, os.geteuid())
        what = f"`run {file}` runs it" if own else "it is another account's"
        why = f"{verb}: {file} is there already; {what}, --output names another"
        raise RequestError(why) from error
    except OSError as error:
        raise PlaceError(
            f"cannot write {file}: {error.strerror}; choose another place with --output"
        ) from error
