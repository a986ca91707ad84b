"""Kernels of a campaign that come from git: built before any host is touched, each of the commit
that its revision named when the campaign began.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from netbench import campaign
from netbench.base.control_characters import escape_controls
from netbench.base.terminal import Painter, is_drawable
from netbench.kernels.compile import Recipe, Told, build, recipe_of
from netbench.kernels.revision import commit_of
from netbench.model import Campaign, Kernel

EVERY = 30.0  # seconds between two lines of a build, where there is no terminal
AT_LEAST = 0.1  # between two drawings on one
WIDTH = 79


def pinned(wanted: Campaign) -> Campaign:
    """The campaign with commits in place of revisions: a branch may move before it is resumed.
    Errors: RequestError.
    """
    commits = {
        f"kernels.{name}.rev": commit_of(kernel)
        for name, kernel in wanted.kernels.items()
        if kernel.git
    }
    return campaign.changed(wanted, commits) if commits else wanted


def require_builds(wanted: Campaign) -> dict[str, Recipe]:
    """How kernels are built: what stops any is told before the first is. Errors: RequestError for
    programs and files that are not there.
    """
    return {name: recipe_of(kernel) for name, kernel in wanted.kernels.items() if kernel.git}


def with_built_kernels(
    wanted: Campaign, say: Callable[[str], None], jobs: int | None = None
) -> Campaign:
    """The campaign with a build tree's output for each kernel from git, built by `jobs` compilers
    at a time (None: one for each CPU). Errors: RequestError with the first error of a build;
    StoreError.
    """
    if not any(kernel.git for kernel in wanted.kernels.values()):
        return wanted
    recipes = require_builds(wanted)  # by which all are built, whoever edits a file meanwhile
    with _told(say) as told:
        kernels = {
            name: _built(kernel, told, jobs, recipes[name]) if kernel.git else kernel
            for name, kernel in wanted.kernels.items()
        }
    return wanted._replace(kernels=kernels)


def _built(kernel: Kernel, told: Told, jobs: int | None, recipe: Recipe) -> Kernel:
    trees = [each._replace(tree=str(build(each, told, jobs, recipe))) for each in kernel.each]
    return kernel._replace(builds=tuple(trees)) if len(trees) > 1 else trees[0]


@contextmanager
def _told(say: Callable[[str], None]) -> Iterator[Told]:
    """The last line of a build: in one place of a terminal, else now and then."""
    printed = time.monotonic()
    if is_drawable(sys.stderr):
        painter = Painter(sys.stderr)

        def say_above(line: str) -> None:
            painter.clear()
            say(line)

        def in_place(line: str) -> None:
            nonlocal printed
            if time.monotonic() - printed > AT_LEAST:
                printed = time.monotonic()
                painter.draw([escape_controls(line).replace("\t", " ")[:WIDTH]])

        yield Told(say_above, in_place)
        painter.clear()
        return

    def now_and_then(line: str) -> None:
        nonlocal printed
        if time.monotonic() - printed > EVERY:
            printed = time.monotonic()
            say(line)

    yield Told(say, now_and_then)
