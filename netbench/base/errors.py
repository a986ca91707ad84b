"""The exception tree: every error that a user can meet says what happened, to what, and what to do.

`NetbenchError.exit_code` is the command line's exit status for it (1: a run or host failed;
2: the request was wrong).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

APT_INSTALL = "apt-get install -y --no-install-recommends"  # remedies end with it, as in README.md


class NetbenchError(Exception):
    """Base of all errors that netbench raises on purpose."""

    exit_code = 1


@contextmanager
def unreadable(place: object) -> Iterator[list[str]]:
    """Of one result of many: notes why it cannot be read, so that it stops none of the others."""
    why: list[str] = []
    try:
        yield why
    except (NetbenchError, OSError) as error:
        why.append(str(error))
    except Exception as error:
        why.append(f"{place}: cannot be read: {type(error).__name__}: {error}")


class RequestError(NetbenchError):
    """The request (command line, path, option) was wrong; nothing was run."""

    exit_code = 2


class LimitReached(KeyboardInterrupt):
    """The time that a campaign may take is over. It ends the run in flight as Ctrl-C does."""


class Problem(NamedTuple):
    """One thing wrong in a campaign file.

    `line` is 1-based (0 where no line can be named), `path` the dotted path in the file
    (`transfer.chunk`, `sweep.send[2]`), `message` what was found and what was expected, `nearest`
    the nearest valid word or "". `source`: the file that it is in, "" for the campaign file.
    """

    line: int
    path: str
    message: str
    nearest: str = ""
    source: str = ""

    def __str__(self) -> str:
        hint = f" (did you mean {self.nearest!r}?)" if self.nearest else ""
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message}{hint}"


class CampaignError(RequestError):
    """A campaign file is not valid: all its problems at once, in file order."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.source = source
        self.problems = tuple(sorted(problems, key=lambda p: (p.source, p.line, p.path)))
        places = (
            ":".join([p.source or source, *([str(p.line)] if p.line else [])])
            for p in self.problems
        )
        super().__init__(
            "\n".join(f"{at}: {p}" for at, p in zip(places, self.problems, strict=True))
        )


class EngineError(NetbenchError):
    """The native engine failed: code, errno, operation and remedy, of the worker's ERROR frame."""

    def __init__(
        self, code: int, errno: int, operation: str, message: str, remedy: str = "", host: str = ""
    ) -> None:
        self.code = code
        self.errno = errno
        self.operation = operation
        self.message = message
        self.remedy = remedy
        self.host = host
        text = f"{operation}: {message}" if operation else message
        if host:
            text = f"{host}: {text}"
        super().__init__(f"{text}; {remedy}" if remedy else text)


class Lost(NetbenchError):
    """A host, or the worker on it, cannot be talked to."""


class WorkerLost(Lost):
    """A worker died or fell silent."""


class ProtocolError(WorkerLost):
    """A frame from a worker is malformed, out of bounds or out of order; or its version or layout
    is not that of this netbench. A worker that sends one is as good as dead.
    """


class HostError(Lost):
    """A host could not be reached, or a command on it failed."""


class RootRefused(HostError):
    """A host gives no root, which changing it needs: nothing was run."""

    exit_code = 2


class HostGone(HostError):
    """A host that was lost did not come back in time, or in another boot: no attempt helps."""


class HostBusy(HostError):
    """Another campaign uses the host."""


class HostKeyError(HostError):
    """A host's key is unknown, revoked, or not the one that is known."""


class BootError(NetbenchError):
    """A host could not be brought up on a kernel."""


class SettingRefused(NetbenchError):
    """A host does not take a level of a setting."""


class StoreError(NetbenchError):
    """A result folder cannot be read or written."""


class PlaceError(StoreError, RequestError):
    """A place that was named for what is to be written cannot take it; nothing was run."""


class ReportError(RequestError):
    """A report was asked of something that holds no result."""


class LabError(NetbenchError):
    """A lab could not be made or removed."""


class LabRefused(LabError, RequestError):
    """A lab that cannot be had here: a wrong name, no root, a missing tool, a name in use."""
