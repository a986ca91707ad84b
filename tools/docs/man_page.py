"""The manual page netbench(1), from the parser: docs/share/netbench.1."""

from __future__ import annotations

import os
import re

from argparse_manpage.manpage import Manpage

from netbench.cli import parser
from tools.docs.__main__ import DOCS

FILE = DOCS / "share" / "netbench.1"
ABOUT = "what moving bytes over a network costs, and whether a change helped"
SECTIONS = {
    "exit status": r"""
.TP
.B 0
Done; also when cells reached `max` or are unsupported, or the campaign its limit.
.TP
.B 1
A cell failed, a host was lost, or a gate of `compare` fell.
.TP
.B 2
The request was wrong, and nothing was run.
.TP
.B 130
Interrupted; settings are put back and records are kept.""",
    "files": r"""
.TP
.I results/NAME/TIME-ID/
The result of a campaign, below the working directory or where --results says.
.TP
.I $XDG_STATE_HOME/netbench/campaigns/
What `resume` and `restore` act on (else ~/.local/state).
.TP
.I /etc/netbench/allow
On a measured host: what a login may change there.
.TP
.I /usr/local/libexec/netbench/worker-*
On a measured host: the helper that sudo may start.""",
    "see also": r"""
.BR iperf3 (1),
.BR sockperf (3),
.BR ethtool (8),
.BR tc (8),
.BR ss (8),
.BR ssh (1)""",
}


def written() -> str:
    """The page, as nroff reads it."""
    os.environ["COLUMNS"] = "80"  # argparse folds for the terminal that builds the page
    page = Manpage(
        parser.build(*parser.VERBS, program="netbench"),
        {"manual_title": "User Commands", "date": " ", "description": ABOUT},
    )
    for heading, text in SECTIONS.items():
        page.add_section(heading, ">", text.strip())
    return re.sub(r"(?m)^'", r"\\&'", str(page))  # a quote that begins a line is nroff's
