"""One thing that `check` has found."""

from __future__ import annotations

from dataclasses import dataclass

LENGTH = 2000  # of what is said: it may quote a host


@dataclass(frozen=True)
class Finding:
    """Level `error` (the campaign cannot run), `warning` (it can, but) or `ok`; on which host; what
    was found; what to do. `skips`: cells without it can run, and those that need it are
    `unsupported`.
    """

    level: str
    host: str
    what: str
    remedy: str = ""
    skips: bool = False

    def __str__(self) -> str:
        where = f"{self.host}: " if self.host else ""
        what = self.what if len(self.what) <= LENGTH else f"{self.what[:LENGTH]}..."
        return f"{self.level}: {where}{what}" + (f"; {self.remedy}" if self.remedy else "")
