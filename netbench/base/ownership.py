"""Whose a file is: what decides whether a process may act on what the file says."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from netbench.base.errors import StoreError


def refuse_foreign(path: Path, private: bool = False, opened: int | None = None) -> None:
    """Refuse a file or folder, as it is at the path or `opened`, that is a symbolic link, belongs
    to neither this user nor root, or that others may write (`private`: or read). Errors:
    StoreError; OSError where there is none.
    """
    info = path.lstat() if opened is None else os.fstat(opened)
    what = ""
    if stat.S_ISLNK(info.st_mode):
        what = "is a symbolic link, which is not followed; name what it leads to"
    elif info.st_uid not in (os.geteuid(), 0):
        owner = user_name(info.st_uid)
        what = f"belongs to {owner}, who may have changed it; work as {owner}, or `cp -r` it"
    elif info.st_mode & (0o077 if private else 0o022):
        may, bits = ("read", "go=") if private else ("write", "go-w")
        mode = f"{stat.S_IMODE(info.st_mode):04o}"
        what = f"is a place that others may {may} (mode {mode}); look at it, then `chmod {bits}` it"
    if what:
        raise StoreError(f"{path} {what}")


def refuse_exchangeable(folder: Path) -> None:
    """Refuse a folder that another account can put another one in the place of: it, all above it,
    and where links of its path lead, are root's or this user's, and others may write none, but
    where only an owner may rename (the sticky bit of /tmp). Errors: StoreError; OSError.
    """
    own = own_users()
    for each in (folder, *folder.parents):
        info = each.lstat()
        if info.st_uid not in own:
            raise StoreError(f"{each} belongs to {user_name(info.st_uid)}, who may exchange it")
        if stat.S_ISLNK(info.st_mode):
            refuse_exchangeable(each.parent / os.readlink(each))
        elif info.st_mode & 0o022 and not info.st_mode & stat.S_ISVTX:
            raise StoreError(f"others may write {each}, and exchange what is in it")


def own_users() -> set[int]:
    """This user, and root. A user namespace that does not map root shows it, and every other
    account, as one that is not known.
    """
    return {0, os.geteuid()}


def user_name(user: int) -> str:
    """The name of a user, or `user N` where it has none."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
