"""Undoing changes from a journal, on their host, after their worker is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from netbench.errors import EngineError
from netbench.journal import Change, Restored
from netbench.settings.base import Worker
from netbench.settings.file import CHOICE


def put_back(
    worker: Worker, boot_id: str, changes: Sequence[Change], write: Callable[[Restored], None]
) -> Iterator[str]:
    """Undo changes of a journal on their host, the last first. Gives what was done, and writes
    `Restored` for each.

    Errors: EngineError with what could not be put back, once all others are.
    """
    failed: list[EngineError] = []
    for change in changes:
        try:
            line = f"{change}: {_put_back(worker, boot_id, change)}"
        except EngineError as error:
            failed.append(error)
        else:
            write(Restored((change.number,), change.host))
            yield line
    if failed:
        first = failed[0]
        more = "".join(f"; {error}" for error in failed[1:])
        raise EngineError(
            first.code, first.errno, first.operation, f"{first.message}{more}", first.remedy
        )


def _put_back(worker: Worker, boot_id: str, change: Change) -> str:
    """Undo one change; what was done. A worker that lost its controller may have undone it already:
    nothing is done twice.
    """
    if change.boot_id != boot_id and not change.undo:  # what a program made may be in files
        return "gone, the host was booted since"
    source = change.look or (() if change.undo else change.target)
    if source and worker.operate(change.op, source)[0] == change.before:
        return "is as it was"
    if change.undo:
        worker.operate("exec", change.undo)
        return f"undone by {' '.join(change.undo)}"
    _, now = worker.operate(change.op, change.target, _settable(change.before))
    if now != change.before:
        what = f"{change} reads {now!r}, was {change.before!r}"
        raise EngineError(0, 0, "restore", what, "restore it by hand")
    return "put back"


def _settable(text: str) -> str:
    """Of a choice such as `always [madvise] never` the word that can be written."""
    chosen = CHOICE.search(text) if "\n" not in text.strip() else None
    return chosen[1] if chosen else text
