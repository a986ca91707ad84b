"""`check`: whether a campaign can run here."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from netbench import api
from netbench.base.errors import RequestError
from netbench.cli.output import fold, say, say_json
from netbench.cli.verb import add_campaign, add_json, load_campaign

if TYPE_CHECKING:
    from netbench.run.finding import Finding


def run(options: argparse.Namespace) -> int:
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    add_campaign(parser)
