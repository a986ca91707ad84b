"""Revisions of a git repository, checked out in a worktree of netbench's own: the user's checkout
is never touched. There is one worktree for each repository, configuration and compiler, which moves
from revision to revision, so that a build compiles what has changed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from netbench.base.errors import RequestError
from netbench.base.opening import open_folder
from netbench.model import Kernel

SECONDS = 600.0
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_WHERE = ("rev-parse", "--path-format=absolute", "--git-common-dir")
_OF_CALLER = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")
"""What git sets for its hooks: they would name the caller's checkout."""


def commit_of(kernel: Kernel) -> str:
    """The commit that a kernel's revision names, as 40 or 64 hex digits. Errors: RequestError."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{kernel.rev}^{{commit}}")
    repository(kernel)  # or why it is none; HEAD is that of the folder
    done = _git(kernel, Path(os.path.expanduser(kernel.git)), *words)
    if done.returncode:
        raise RequestError(
            f"kernel {kernel.name}: {kernel.git} has no revision {kernel.rev!r}; `git -C"
            f" {kernel.git} fetch`, or correct `rev:`"
        )
    return done.stdout.strip()


def named(kernel: Kernel) -> str:
    """A kernel's revision as messages call it: commits by 12 digits."""
    return kernel.rev[:12] if _COMMIT.fullmatch(kernel.rev) else kernel.rev


def has(kernel: Kernel, path: str) -> bool:
    """Whether a kernel's revision has a file. Errors: RequestError."""
    words = ("cat-file", "-e", f"{commit_of(kernel)}:{path}")
    return not _git(kernel, repository(kernel), *words).returncode


def repository(kernel: Kernel) -> Path:
    """The folder with a repository's objects, of all its worktrees. Errors: RequestError."""
    place = Path(os.path.expanduser(kernel.git))
    done = _git(kernel, place, *_WHERE)
    if "dubious ownership" in done.stderr:
        raise RequestError(
            f"kernel {kernel.name}: {place} belongs to another account, so git refuses it; `git"
            f" config --global --add safe.directory {place.resolve()}`, or use sudo from its"
            " owner's account"
        )
    if done.returncode:
        raise RequestError(
            f"kernel {kernel.name}: {place} is not a git repository of this machine; correct"
            " `git:`, or judge's --repo"
        )
    return Path(done.stdout.strip())


def check_out(kernel: Kernel, commit: str, tree: Path) -> None:
    """Bring a worktree, which is made if it is not there, to a commit; files that did not change
    keep their times. Errors: RequestError.
    """
    place = repository(kernel)
    if not _is_worktree(tree):
        shutil.rmtree(tree, ignore_errors=True)
        anyway = ("--force", "--force")  # also one whose folder was removed, or that is locked
        _must(kernel, place, "worktree", "add", *anyway, "--detach", str(tree), commit)
        _give(kernel, tree, place)
    _must(kernel, tree, "checkout", "--force", "--detach", commit)


def _is_worktree(tree: Path) -> bool:
    """Whether what git keeps about a worktree is there, and of this one."""
    try:
        kept = tree / (tree / ".git").read_text().removeprefix("gitdir: ").rstrip("\n")
        own = kept / (kept / "gitdir").read_text().rstrip("\n")
        return own.resolve() == (tree / ".git").resolve()
    except (OSError, ValueError):
        return False


def _give(kernel: Kernel, tree: Path, place: Path) -> None:
    """Let the folders that git keeps about a worktree belong to the repository's owner, who
    collects garbage and adds worktrees there without root. Through no link of theirs.
    """
    if os.geteuid() == 0:
        git = Path(_must(kernel, tree, "rev-parse", "--absolute-git-dir").strip())
        owner = place.stat()
        for folder in (git.parent, git, git / "logs"):
            with suppress(OSError):
                opened = open_folder(folder)
                os.chown(".", owner.st_uid, owner.st_gid, dir_fd=opened)
                os.close(opened)


def bisection(kernel: Kernel, bad: str, goods: Sequence[str]) -> list[str]:
    """The commits that may be the first bad one, `bad` among them: first those that halve them
    best. Errors: RequestError.
    """
    words = ("rev-list", "--bisect-all", bad, "--not", *goods)
    return [line.split()[0] for line in _must(kernel, repository(kernel), *words).splitlines()]


def require_ancestor(kernel: Kernel, good: str, bad: str) -> None:
    """Errors: RequestError where the good commit is no ancestor of the bad one."""
    if _git(kernel, repository(kernel), "merge-base", "--is-ancestor", good, bad).returncode:
        raise RequestError(
            f"kernel {kernel.name}: {good[:12]} is no ancestor of {bad[:12]}; give revisions of one"
            " history"
        )


def subject(kernel: Kernel, commit: str) -> str:
    """The first line of a commit's message. Errors: RequestError."""
    return _must(kernel, repository(kernel), "show", "-s", "--format=%s", commit).strip()


def _must(kernel: Kernel, place: Path, *words: str) -> str:
    done = _git(kernel, place, *words)
    if done.returncode:
        printed = " ".join(done.stderr.split()) or "it printed nothing"
        raise RequestError(
            f"kernel {kernel.name}: git {words[0]} in {place} failed (exit {done.returncode}):"
            f" {printed}"
        )
    return done.stdout


def _git(kernel: Kernel, place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("git")
    if program is None:
        raise RequestError(
            f"kernel {kernel.name}: git is not installed on this machine; on Debian: apt install"
            " git"
        )
    allowed = () if words == _WHERE else ("-c", f"safe.directory={place}")  # `repository` asked
    argv = (program, *allowed, "-C", str(place), *words)
    return run_to_end(argv, own_environment(), f"kernel {kernel.name}: git {words[0]}")


def run_to_end(
    argv: Sequence[str], environment: Mapping[str, str], what: str
) -> subprocess.CompletedProcess[str]:
    """What a program printed, and its exit status. Errors: RequestError with `what` it is where it
    cannot be run, or takes too long.
    """
    try:
        return subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=SECONDS,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RequestError(f"{what} failed: {error}") from error


def own_environment() -> Mapping[str, str]:
    """The environment without what names another checkout."""
    inherited = {name: word for name, word in os.environ.items() if name not in _OF_CALLER}
    return {**inherited, "LC_ALL": "C"}
