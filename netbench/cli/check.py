"""`check`: whether a campaign can run here."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from netbench.base.errors import RequestError
from netbench.cli.output import fold, say, say_json
from netbench.cli.verb import Verb, add_campaign, load_campaign

if TYPE_CHECKING:
    from netbench.run.finding import Finding


def _run(options: argparse.Namespace) -> int:
    from netbench import api
    from netbench.run.finding import together

    findings = api.check(load_campaign(options))
    possible = all(finding.level != "error" for finding in findings)
    if options.json:
        say_json({"possible": possible, "findings": _rows(findings)})
    else:
        say("\n".join(map(_told, together(findings))))
    return 0 if possible else RequestError.exit_code


def _told(finding: Finding) -> str:
    """A finding in lines of 80 columns; what follows a line break is a command, to be copied."""
    text, *commands = str(finding).split("\n")
    return "\n".join([fold(text), *commands])


def _rows(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    return [
        {"level": f.level, "host": f.host, "what": f.what, "remedy": f.remedy} for f in findings
    ]


VERB = Verb(
    "check",
    "whether a campaign can run here, and what will disturb it; changes no setting",
    _run,
    add_campaign,
    to_json=True,
)
