"""What meters need root to open: a helper opens it and passes it to a mover that may not."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from netbench.base.errors import EngineError, RootRefused
from netbench.engine.worker import Worker


def lend(mover: Worker, meters: Iterable[str], helper: Callable[[], Worker]) -> list[str]:
    """Pass what these meters need from the helper to the mover, where it cannot read them; from
    then on its catalogue says what can be read, or, where there is no helper or it refuses, that
    too. Returns those that can. Errors: Lost.
    """
    known = mover.catalogue.meters
    lacking = [name for name in meters if name in known and known[name].row.why]
    return [name for name in lacking if known[name].has("by_helper") and _lend(mover, name, helper)]


def _lend(mover: Worker, name: str, helper: Callable[[], Worker]) -> bool:
    why = mover.catalogue.meters[name].row.why
    try:
        giver = helper()
        theirs = giver.catalogue.meters[name].unread
        if name in theirs:  # root lacks it too
            mover.catalogue = mover.catalogue.explaining(name, theirs)
            return False
        socket = (mover.operate("meter_socket", name, "open")[1] or "").strip()
        giver.operate("meter_files", (name, socket, str(mover.hello.user)), "passed")
        mover.operate("meter_socket", name, "taken")
    except RootRefused:
        mover.catalogue = mover.catalogue.explaining(
            name, {name: f"{why}, and `sudo -n` gives none"}
        )
    except EngineError as error:
        mover.catalogue = mover.catalogue.explaining(name, {name: f"{why}, and {error.message}"})
    else:
        mover.catalogue = mover.catalogue.explaining(name, theirs)
        return True
    return False
