"""One thing that `check` has found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from netbench.base import hostlist

LENGTH = 2000  # of what is said: it may quote a host


class Finding(NamedTuple):
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


def together(findings: Iterable[Finding]) -> list[Finding]:
    """Findings that say the same of several hosts as one of them all, where the first was."""
    hosts: dict[Finding, list[str]] = {}
    for finding in findings:
        hosts.setdefault(finding._replace(host=""), []).append(finding.host)
    return [
        finding._replace(host=hostlist.fold(sorted(set(named), key=hostlist.order)))
        for finding, named in hosts.items()
    ]
